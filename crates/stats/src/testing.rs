//! Helpers that the tests of this crate share: closeness, and seeded values.

use crate::regret::BlockGains;

/// Equal within a relative error of 1e-9.
#[track_caller]
pub fn assert_close(actual: Option<f64>, expected: f64) {
    assert_near(actual, expected, 1e-9);
}

#[track_caller]
pub fn assert_near(actual: Option<f64>, expected: f64, relative: f64) {
    let Some(actual) = actual else {
        panic!("nothing where {expected} was expected");
    };
    let tolerance = relative * expected.abs().max(1e-3);
    assert!(
        (actual - expected).abs() <= tolerance,
        "{actual:e} where {expected:e} was expected"
    );
}

/// Standard normal values by Box and Muller over xorshift64*.
pub struct Normal(u64);

impl Normal {
    pub fn from_seed(seed: u64) -> Normal {
        Normal(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next_value(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// In (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }
}

/// Blocks of a baseline and of arms with these gains, whose noise has this standard deviation.
pub fn blocks_of_gains(seed: u64, count: usize, gains: &[f64], sd: f64) -> Vec<BlockGains> {
    let mut normal = Normal::from_seed(seed);
    let mut block = || {
        let arms = gains.iter();
        let arms = arms.map(|gain| Some(gain + sd * normal.next_value()));
        std::iter::once(Some(0.0)).chain(arms).collect()
    };
    (0..count).map(|_| block()).collect()
}
