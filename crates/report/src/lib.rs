//! From a results directory to an answer. The crate makes these products:
//!
//! - [`Table`]: everything that was measured, judged, as plain values; [`FORMATS`] says
//!   as what it can be written;
//! - [`certificate`]: the noise of a machine, from runs that compare an arm with itself;
//! - [`forecast`]: the time that a question will take, from the noise of earlier results;
//! - [`compare`]: two results side by side;
//! - [`gate`]: a new run judged against a stored one, for a check that is to fail;
//! - [`recommend`]: which arm to use, over somebody's own mix of work;
//! - [`proof`]: what was in force in the trials, and which of them do not count;
//! - [`page`]: parts of the pages that other crates make;
//! - [`verify`]: every number of a report made again from the results.
//!
//! All read the results directory and nothing else, and the same directory always gives
//! the same bytes: no clock, no order of hash maps, no machine.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod certificate;
pub mod compare;
pub mod forecast;
pub mod gate;
pub mod lacks;
pub mod page;
pub mod picture;
pub mod proof;
pub mod race;
pub mod recommend;
mod render;
mod table;
pub mod verify;

// Shared by all of them.
mod columns;
mod fold;
pub mod hlog;
mod noise;
mod quantity;
mod shift;
mod words;

pub use columns::{table_lines, wrap_text};
pub use quantity::{
    format_change, format_count, format_interval, format_rough_time, signed_with_unit, with_unit,
};
pub use render::conclusion::arm_sentences as conclusion;
pub use render::events::describe_time_to_call;
pub use render::hgrm::{ReportFile, hgrm_files};
pub use render::json::render as json;
pub use render::{FORMATS, Format, Options, ReportError};
pub use table::{CellTable, Comparison, LogRatio, Standing, Table, Tally, Verdict};
