//! The open-loop generator of a service: its keys beside those of its kind of workload.

use crate::error::PlanError;
use crate::placement::check_cpus;
use load::Keys;
use model::OpenLoopParams;
use model::check::check_count;

const SECOND_NS: u64 = 1_000_000_000;

/// The keys of an open-loop generator, with what holds where the file says nothing.
pub(crate) fn client(keys: &mut Keys) -> OpenLoopParams {
    OpenLoopParams {
        connections: keys.get("connections").unwrap_or(32),
        threads: keys.get("threads").unwrap_or(1),
        arrivals: keys.get("arrivals").unwrap_or_default(),
        timeout_ns: keys.duration("timeout").unwrap_or(SECOND_NS),
        load_cpus: keys.get("load-cpus"),
        busy_poll: keys.get("busy-poll").unwrap_or(false),
        allow_remote: keys.get("allow-remote").unwrap_or(false),
    }
}

pub(crate) fn check_client(client: &OpenLoopParams) -> Result<(), PlanError> {
    check_count("connections", client.connections.into())?;
    check_count("threads", client.threads.into())?;
    check_cpus("load-cpus", client.load_cpus.as_ref())
}
