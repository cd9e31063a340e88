//! An arm by itself: the middle and the mean of its trials, without comparing.

use crate::table::Summary;
use stats::summary::{mean, quantile};

/// None where there are no values.
pub fn summarise_values(values: impl Iterator<Item = f64>) -> Option<Summary> {
    let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    Some(Summary {
        trials: values.len(),
        mean: mean(&values)?,
        median: quantile(&values, 0.5)?,
        lower_quartile: quantile(&values, 0.25)?,
        upper_quartile: quantile(&values, 0.75)?,
    })
}

pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    summarise_values(values).map(|summary| summary.median)
}
