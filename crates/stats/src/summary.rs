//! Descriptive statistics: location, spread, quantiles.
//!
//! All return `None` where the number is undefined (no values, or one value for
//! a spread) rather than a NaN that travels. Values are expected to be finite.

/// Count, mean and sum of squared deviations, kept up to date value by value
/// (Welford 1962), so that a series can be judged at every length in one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Moments of a whole series.
    pub fn from_values(xs: &[f64]) -> Moments {
        let mut moments = Moments::default();
        xs.iter().for_each(|&x| moments.push(x));
        moments
    }

    /// A series of `count` values that is only known by its mean and its
    /// standard deviation (ddof = 1).
    pub fn from_mean_and_sd(count: u32, mean: f64, sd: f64) -> Moments {
        let squares = sd * sd * f64::from(count.saturating_sub(1));
        Moments {
            count,
            mean,
            squares,
        }
    }

    /// Adds the next value of the series.
    pub fn push(&mut self, x: f64) {
        self.count += 1;
        let delta = x - self.mean;
        self.mean += delta / f64::from(self.count);
        self.squares += delta * (x - self.mean);
    }

    /// Number of values so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// 0 for an empty series.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sum of squared deviations from the mean.
    pub fn squared_deviations(&self) -> f64 {
        self.squares
    }

    /// Standard deviation with ddof = 1.
    pub fn sd(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / f64::from(self.count - 1)).sqrt())
    }
}

/// Arithmetic mean; `None` without values.
pub fn mean(xs: &[f64]) -> Option<f64> {
    (!xs.is_empty()).then(|| Moments::from_values(xs).mean())
}

/// Standard deviation with ddof = 1.
pub fn sd(xs: &[f64]) -> Option<f64> {
    Moments::from_values(xs).sd()
}

/// Middle value in order of size, or the mean of the two middle ones; `None` without values.
pub fn median(xs: &[f64]) -> Option<f64> {
    quantile(xs, 0.5)
}

/// The `p`-quantile by linear interpolation between order statistics: type 7 of
/// Hyndman and Fan (1996), the default of R and of numpy. `p` is clamped to 0..=1.
pub fn quantile(xs: &[f64], p: f64) -> Option<f64> {
    let mut values = xs.to_vec();
    let last = values.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "from 0 to the index of the last value"
    )]
    let below = position.floor() as usize;
    let fraction = position - below as f64;
    let (_, at, beyond) = values.select_nth_unstable_by(below, f64::total_cmp);
    let next = beyond.iter().copied().min_by(f64::total_cmp).unwrap_or(*at);
    Some(*at + fraction * (next - *at))
}

pub(crate) fn sorted_copy(xs: &[f64]) -> Vec<f64> {
    let mut sorted = xs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;

    /// Michelson 1879, the first eight values: speed of light in km/s − 299 000.
    const LIGHT: [f64; 8] = [850.0, 740.0, 900.0, 1070.0, 930.0, 850.0, 950.0, 980.0];

    #[test]
    fn location_and_spread_agree_with_numpy() {
        // numpy 2.4.6: mean, std(ddof=1), median, quantile(method="linear").
        assert_close(mean(&LIGHT), 908.75);
        assert_close(sd(&LIGHT), 99.05806378079474);
        assert_close(median(&LIGHT), 915.0);
        assert_close(quantile(&LIGHT, 0.1), 817.0);
        assert_close(quantile(&LIGHT, 0.95), 1038.5);
    }

    #[test]
    fn nothing_is_said_about_too_few_values() {
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(sd(&[1.0]), None);
    }

    #[test]
    fn quantiles_reach_the_extremes_and_no_further() {
        assert_close(quantile(&LIGHT, 0.0), 740.0);
        assert_close(quantile(&LIGHT, 1.0), 1070.0);
        assert_close(quantile(&LIGHT, 7.0), 1070.0);
        assert_close(quantile(&[4.0], 0.3), 4.0);
    }

    #[test]
    fn equal_values_have_exactly_no_spread() {
        assert_eq!(sd(&[0.1; 7]), Some(0.0));
        assert_eq!(mean(&[0.1; 7]), Some(0.1));
    }

    #[test]
    fn an_expected_series_has_the_moments_it_was_given() {
        let moments = Moments::from_mean_and_sd(9, 0.03, 0.02);
        assert_eq!((moments.count(), moments.mean()), (9, 0.03));
        assert_close(moments.sd(), 0.02);
    }
}
