//! Sizes of keys and values.
//!
//! ETC: B. Atikoglu, Y. Xu, E. Frachtenberg, S. Jiang, M. Paleczny, "Workload
//! Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012, section 5: key sizes
//! follow a generalized extreme value distribution, value sizes of 15 bytes and above
//! a generalized Pareto distribution; shorter values have the shares of table 6.

use load::units::parse_size;
use load::written;
use model::Invalid;
use model::check::check_size;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Spread of sizes over the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "spread", rename_all = "kebab-case")]
pub enum Sizes {
    /// One size for all keys.
    Fixed {
        /// Size of each.
        bytes: u64,
    },
    /// Every size between the two with equal probability, both included.
    Uniform {
        /// Smallest size.
        low_bytes: u64,
        /// Largest size.
        high_bytes: u64,
    },
    /// Sizes as published of Facebook's pool ETC (Atikoglu et al., SIGMETRICS 2012).
    Etc,
}

/// `64B`, `16B-1KiB`, `etc`.
fn parse_sizes(text: &str) -> Result<Sizes, String> {
    if text == "etc" {
        return Ok(Sizes::Etc);
    }
    let Some((low, high)) = text.split_once('-') else {
        let bytes = parse_size(text)?;
        return Ok(Sizes::Fixed { bytes });
    };
    let (low_bytes, high_bytes) = (parse_size(low)?, parse_size(high)?);
    if low_bytes > high_bytes {
        return Err(format!("`{text}` ends before it begins"));
    }
    Ok(Sizes::Uniform {
        low_bytes,
        high_bytes,
    })
}

written!(
    WrittenSizes,
    Sizes,
    parse_sizes,
    "sizes, such as \"64B\", \"16B-1KiB\" or \"etc\""
);

impl Sizes {
    /// Sizes under this key that no load can have.
    pub fn check(self, key: &str) -> Result<(), Invalid> {
        let largest = match self {
            Sizes::Fixed { bytes } => bytes,
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } if low_bytes > high_bytes => {
                return Err(Invalid::new(key, format!("`{key}` ends before it begins")));
            }
            Sizes::Uniform { high_bytes, .. } => high_bytes,
            Sizes::Etc => return Ok(()),
        };
        // A size of 0 is one too.
        check_size(key, largest.max(1))
    }
}

/// memcached takes longer keys for an error.
pub const LONGEST_KEY: u64 = 250;
/// memcached's own limit for an item is 1 MiB, with its header.
pub const LARGEST_VALUE: u64 = 1_000_000;

/// Location, scale and shape.
struct Shape {
    mu: f64,
    sigma: f64,
    k: f64,
}

const ETC_KEY: Shape = Shape {
    mu: 30.7984,
    sigma: 8.20449,
    k: 0.078688,
};
const ETC_VALUE: Shape = Shape {
    mu: 15.0,
    sigma: 214.476,
    k: 0.348238,
};
/// Share of the values of 0, 1, … 14 bytes.
const ETC_SMALL: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];

/// The size of one key.
pub fn key_bytes(sizes: Sizes, random: &mut impl Rng) -> u64 {
    match sizes {
        Sizes::Etc => extreme_value(&ETC_KEY, random),
        sizes => plain(sizes, random),
    }
    .clamp(1, LONGEST_KEY)
}

/// The size of one value.
pub fn value_bytes(sizes: Sizes, random: &mut impl Rng) -> u64 {
    match sizes {
        Sizes::Etc => etc_value(random),
        sizes => plain(sizes, random),
    }
    .min(LARGEST_VALUE)
}

fn plain(sizes: Sizes, random: &mut impl Rng) -> u64 {
    match sizes {
        Sizes::Fixed { bytes } => bytes,
        Sizes::Uniform {
            low_bytes,
            high_bytes,
        } => random.random_range(low_bytes..=high_bytes.max(low_bytes)),
        Sizes::Etc => 0,
    }
}

/// In (0, 1].
fn uniform(random: &mut impl Rng) -> f64 {
    1.0 - random.random::<f64>()
}

/// By inversion of the distribution function.
fn extreme_value(shape: &Shape, random: &mut impl Rng) -> u64 {
    let exponential = -uniform(random).ln();
    let size = shape.mu + shape.sigma * (exponential.powf(-shape.k) - 1.0) / shape.k;
    model::truncate_to_u64(size.round())
}

fn pareto(shape: &Shape, random: &mut impl Rng) -> u64 {
    let size = shape.mu + shape.sigma * (uniform(random).powf(-shape.k) - 1.0) / shape.k;
    model::truncate_to_u64(size)
}

fn etc_value(random: &mut impl Rng) -> u64 {
    let mut left = random.random::<f64>();
    for (size, share) in ETC_SMALL.iter().enumerate() {
        if left < *share {
            return size as u64;
        }
        left -= share;
    }
    pareto(&ETC_VALUE, random)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const COUNT: usize = 100_000;

    fn sorted(draw: impl Fn(&mut ChaCha8Rng) -> u64) -> Vec<u64> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut sizes: Vec<u64> = (0..COUNT).map(|_| draw(&mut random)).collect();
        sizes.sort_unstable();
        sizes
    }

    fn share_below(sizes: &[u64], limit: u64) -> f64 {
        sizes.partition_point(|size| *size < limit) as f64 / sizes.len() as f64
    }

    #[test]
    fn sizes_are_fixed_a_range_or_published_ones() {
        assert_eq!(parse_sizes("64B"), Ok(Sizes::Fixed { bytes: 64 }));
        let range = Sizes::Uniform {
            low_bytes: 16,
            high_bytes: 1024,
        };
        assert_eq!(parse_sizes("16B-1KiB"), Ok(range));
        assert_eq!(parse_sizes("etc"), Ok(Sizes::Etc));
        assert!(parse_sizes("2KiB-1KiB").is_err());
        assert!(parse_sizes("large").is_err());
    }

    #[test]
    fn etc_keys_follow_the_generalized_extreme_value_distribution() {
        let sizes = sorted(|random| key_bytes(Sizes::Etc, random));
        let distribution =
            |x: f64| (-(1.0 + 0.078688 * (x - 30.7984) / 8.20449).powf(-1.0 / 0.078688)).exp();
        for limit in [20, 31, 40, 60] {
            let expected = distribution(f64::from(limit as u32) - 0.5);
            assert!(
                (share_below(&sizes, limit) - expected).abs() < 0.01,
                "{limit}"
            );
        }
        assert!(sizes[COUNT - 1] <= LONGEST_KEY);
    }

    #[test]
    fn etc_values_are_small_or_follow_the_generalized_pareto_distribution() {
        let sizes = sorted(|random| value_bytes(Sizes::Etc, random));
        let small: f64 = ETC_SMALL.iter().sum();
        assert!((share_below(&sizes, 15) - small).abs() < 0.01);
        let pareto = |x: f64| 1.0 - (1.0 + 0.348238 * (x - 15.0) / 214.476).powf(-1.0 / 0.348238);
        for limit in [100, 500, 2_000] {
            let expected = small + (1.0 - small) * pareto(limit as f64);
            assert!(
                (share_below(&sizes, limit) - expected).abs() < 0.01,
                "{limit}"
            );
        }
        assert!(sizes[COUNT - 1] <= LARGEST_VALUE);
    }

    #[test]
    fn uniform_sizes_reach_both_ends() {
        let sizes = Sizes::Uniform {
            low_bytes: 3,
            high_bytes: 5,
        };
        let sizes = sorted(|random| value_bytes(sizes, random));
        assert_eq!((sizes[0], sizes[COUNT - 1]), (3, 5));
        assert!((share_below(&sizes, 4) - 1.0 / 3.0).abs() < 0.01);
    }
}
