//! Pure mathematics on numbers: tests that may be looked at, intervals, verdicts.
//!
//! Everything here works on slices of `f64` in memory, does no I/O, and knows
//! no other crate of ours but `model`, for the direction in which a metric improves. The unit of observation is the *block*: for a metric
//! that is a rate or a time, `x = ln(arm / baseline)` of the two trials of one
//! block. Samples inside a trial never enter a test.
//!
//! | module | answers |
//! |---|---|
//! | [`coins`] | the verdict on blocks: better, worse, same or unknown, and how many it would take |
//! | [`randomization`] | the e-value and the confidence sequence behind it, by the coins that drew the order of the arms, whatever the noise |
//! | [`differences`] | the verdict on differences, where a value is 0 or below |
//! | [`verdict`] | what a verdict is, and that of the t-test where no coin drew anything |
//! | [`safe_test`] | the e-value and the confidence sequence of the t-test |
//! | [`events`] | the verdict on counts of rare events at their exposures |
//! | [`frames`] | the rates and lows that players' tools compute of frame times |
//! | [`turns`] | the verdict on such pairs, by process |
//! | [`ebh`] | which calls survive, of many |
//! | [`wealth`] | the error that a session of many questions may spend |
//! | [`planner`] | what a number of blocks can show, and how many are needed |
//! | [`population`] | the change over machines in general, and on the next one |
//! | [`prediction`] | where the next value of a steady series lies |
//! | [`chance`] | how likely more blocks decide what is open |
//! | [`change`] | since which run a series of runs is another one |
//! | [`levels`] | on which level (boots, blocks) the variance is |
//! | [`trend`] | drift over the order of measuring, and dependence |
//! | [`correlation`] | which figures move together from block to block |
//! | [`race`] | which of many candidates cannot be the best any more, and which is ahead |
//! | [`regret`] | how far each of several arms stays behind the best, over a mix |
//! | [`bounds`] | how well a share or a spread is known |
//! | [`correlation`] | do two series go up and down together |
//! | [`summary`] | mean, spread and quantiles |
//! | [`rank`], [`t_test`] | tests of a fixed size, for data measured elsewhere |

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod bounds;
pub mod chance;
pub mod change;
pub mod coins;
pub mod correlation;
mod crossing;
pub mod differences;
pub mod ebh;
pub mod events;
pub mod frames;
pub mod levels;
pub mod planner;
pub mod population;
pub mod prediction;
pub mod race;
pub mod randomization;
pub mod rank;
pub mod regret;
pub mod safe_test;
mod search;
pub mod summary;
pub mod t_test;
pub mod trend;
pub mod turns;
pub mod verdict;
pub mod wealth;

#[cfg(test)]
mod testing;

pub use coins::judge;
pub use differences::Difference;
pub use model::Better;
pub use safe_test::Interval;
pub use verdict::{Judgement, Params, Test, Verdict, log_ratio};
