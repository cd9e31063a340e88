//! Switches, migrations and page faults of the load, of threads that come and go too:
//! software perf events. The process of a workload has its counters itself, since they
//! take the place of the readings in /proc (`counters`); here is what is known of them.

use super::def::{CollectorDef, nothing_missing};
use std::time::Duration;

pub const DEF: CollectorDef = CollectorDef {
    name: "switches",
    text: "switches, migrations and page faults of the load (perf; on demand)",
    usual: false,
    metrics: &[],
    logs: &[],
    limit: Duration::ZERO,
    missing: nothing_missing,
    start: |_| None,
};
