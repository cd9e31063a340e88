//! Runs over months. A store has the figures of each run, one line a run. Runs whose figures may be compared form a
//! *series*: the ratio of an arm to its *anchor*, the baseline that was measured in the same blocks. So a machine that
//! became slower moves no series. Where a series changed there is an *alarm*, which keeps its place whatever comes
//! later, and is closed by a measurement of both versions beside each other.
//!
//! ```text
//! STORE/
//!   index.jsonl            a line for each run, alarm, end of an alarm and last search; written under a lock
//!   experiments/HASH.json  the experiment of runs, as they were measured; written before the line that names it
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alarm;
mod digest;
mod gate;
mod page;
mod pair;
mod prune;
mod run;
mod search;
mod series;
mod store;
mod stretch;
#[cfg(test)]
mod testing;
pub mod words;

pub use alarm::{Alarm, End, Outcome, Tracked, Turn};
pub use gate::judge_by_history;
pub use page::{PageError, render_page};
pub use prune::{Pruning, plan_pruning};
pub use run::{Figure, MachineClass, Refusal, Run, Version};
pub use search::{Found, Look, Settings, find_alarms};
pub use series::{Series, SeriesKey, group_series, tell_runs_apart};
pub use store::{Added, Contents, Store, StoreError};
pub use stretch::{Stretch, split_series};
