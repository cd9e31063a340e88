//! The words of schedlab as plain types: experiments, arms, workloads, trials,
//! evidence, results, and the messages between runner and agent. No I/O.
//!
//! Everything may depend on this crate; it depends on nothing of ours. Numbers
//! carry their unit in the field name (`_ns`, `_bytes`, `_per_sec`); durations
//! are whole nanoseconds.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod arm;
pub mod check;
pub mod cpus;
mod daemon;
pub mod event;
pub mod evidence;
pub mod experiment;
mod fact;
pub mod imported;
pub mod key;
pub mod message;
pub mod metric;
mod nearest;
mod pace;
pub mod preflight;
pub mod print;
pub mod printable;
pub mod problem;
pub mod program;
pub mod rail;
pub mod readings;
mod release;
pub mod schedule;
pub mod service;
pub mod stack;
pub mod start;
pub mod system;
pub mod trace;
pub mod trial;
pub mod turns;
pub mod units;
pub mod workload;

pub use arm::{Arm, Class, Policy, Revision, Role, Scheduler, Tunables};
pub use check::Invalid;
pub use cpus::{choose_cpus, parse_cpu_list};
pub use daemon::Daemon;
pub use event::{Happened, OfBaseline, RareEvent, When};
pub use evidence::{Evidence, EvidencePoint, Phase, RolePolicy, SchedExt, SchedulerBinary};
pub use experiment::{DecidedBy, Experiment, Observe, Once, Reset, StopRule, TargetSpec};
pub use fact::Fact;
pub use key::KeyDef;
pub use message::{
    Edge, KeptPiece, Listening, Opened, PROTOCOL_VERSION, Part, Reply, Request, Side, TrialFile,
    TrialSpec,
};
pub use metric::{Better, Measurement, MetricDef, Own, Quote, Scale};
pub use nearest::{find_nearest, slip_of};
pub use pace::{Latencies, Pace};
pub use preflight::{Check, CheckState};
pub use problem::{Problem, Severity, Warning};
pub use program::{Program, Task};
pub use rail::RailHit;
pub use release::compare_releases;
pub use schedule::{Cell, Plan, PlannedTrial};
pub use service::{Antagonist, OpenLoopParams, Placement, Server};
pub use stack::{Ready, Service, StopSignal};
pub use start::{Build, Machine, Start};
pub use system::System;
pub use trace::{Ran, Tracing, WorstTrace};
pub use trial::{Trial, TrialResult, TrialState};
pub use turns::{InPlace, Piloted, SoFar, TakingTurns, Turn, Turns, Windows};
pub use units::{Size, format_duration_ns, format_rate, parse_size, truncate_to_u64, whole_nanos};
pub use workload::{
    Arrivals, Calibration, KEEP_LIMIT_BYTES, Kind, Load, Place, ShareOfMax, Slo, Variant, Way,
    Workload,
};
