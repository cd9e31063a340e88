//! The table of collectors. To add one: its file, and a line here.

use super::def::CollectorDef;
use super::{
    delays, distances, energy, hardware, pace, record, runqueue, schedstat, switches, trace, work,
};

/// In the order of lists. When the window opens they begin the other way round, so that
/// what takes longest to begin is the first, and the last to end.
pub static COLLECTORS: &[&CollectorDef] = &[
    &switches::DEF,
    &delays::DEF,
    &work::DEF,
    &distances::DEF,
    &pace::DEF,
    &hardware::DEF,
    &schedstat::DEF,
    &energy::DEF,
    &runqueue::DEF,
    &record::SAMPLES_DEF,
    &record::EVENTS_DEF,
    &trace::DEF,
];

/// The collector of a name.
pub fn find(name: &str) -> Option<&'static CollectorDef> {
    COLLECTORS.iter().copied().find(|def| def.name == name)
}
