//! Pure mathematics on numbers: safe tests, intervals, verdicts.
//!
//! Everything here works on slices of `f64` in memory, does no I/O, and knows
//! no other crate of ours. The unit of observation is the *block*: for a metric
//! that is a rate or a time, `x = ln(arm / baseline)` of the two trials of one
//! block. Samples inside a trial never enter a test.
//!
//! | module | answers |
//! |---|---|
//! | [`verdict`] | better, worse, same or unknown, and how many blocks it would take |
//! | [`safe_test`] | the e-value and the confidence sequence behind a verdict |
//! | [`summary`] | mean, spread and quantiles |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod safe_test;
pub mod summary;
pub mod verdict;

#[cfg(test)]
mod testing;

pub use safe_test::Interval;
pub use verdict::{Better, Judgement, Params, Verdict, judge, log_ratio};
