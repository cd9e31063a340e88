use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fmt::Write;

/// Extra messages of two programs, in percent; the second is compared with the first.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Pair {
    pub first: f64,
    pub second: f64,
}

impl Pair {
    /// Time by which the second takes longer than the first, in percent.
    pub fn change_percent(self) -> f64 {
        100.0 * ((100.0 + self.second) / (100.0 + self.first) - 1.0)
    }

    fn changed(random: &mut impl Rng) -> Pair {
        // Small and large ones alike: uniform in the logarithm.
        let extra = random.random_range(2.0_f64.ln()..15.0_f64.ln()).exp();
        match random.random() {
            true => Pair {
                first: extra,
                second: 0.0,
            },
            false => Pair {
                first: 0.0,
                second: extra,
            },
        }
    }
}

/// Pairs that were drawn, which nobody sees before all is judged.
#[derive(Debug)]
pub struct Sealed {
    pairs: Vec<Pair>,
    text: String,
}

#[derive(Serialize)]
struct Drawn<'a> {
    /// Without it the few possible texts could be tried.
    nonce: [u64; 4],
    pairs: &'a [Pair],
}

impl Sealed {
    /// Pairs in random order, by the system's random numbers.
    pub fn draw(changes: usize, nulls: usize) -> Result<Sealed, Box<dyn Error>> {
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        let mut random = ChaCha8Rng::from_seed(seed);
        let equal = Pair {
            first: 0.0,
            second: 0.0,
        };
        let mut pairs: Vec<Pair> = (0..changes).map(|_| Pair::changed(&mut random)).collect();
        pairs.extend(vec![equal; nulls]);
        pairs.shuffle(&mut random);
        let nonce = random.random();
        let text = serde_json::to_string(&Drawn {
            nonce,
            pairs: &pairs,
        })?;
        Ok(Sealed { pairs, text })
    }

    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn seal(&self) -> String {
        hash(&self.text)
    }
}

/// Hash of a text, in hexadecimal digits.
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        })
}
