//! `[workload.server]`: the server that a client asks.

use crate::error::PlanError;
use crate::placement::check_placement;
use crate::program::read_program;
use crate::table::Value;
use load::roles::SERVERS;
use load::units::Duration;
use model::{Kind, Placement, Server};
use serde::Deserialize;

const SECOND_NS: u64 = 1_000_000_000;
const READY_LIMIT_NS: u64 = 10 * SECOND_NS;

/// Keys that every kind has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileServer {
    ready_limit: Option<Duration>,
}

/// Placed nowhere in particular.
pub(crate) fn usual_server(program: Kind) -> Server {
    Server {
        program,
        placement: Placement::default(),
        ready_limit_ns: READY_LIMIT_NS,
    }
}

pub(crate) fn server(value: Value) -> Result<Server, PlanError> {
    let span = value.span();
    read_server(value).map_err(|e| e.with_span(span))
}

fn read_server(value: Value) -> Result<Server, PlanError> {
    let (program, placement, file): (_, _, FileServer) = read_program(&SERVERS, value)?;
    let server = Server {
        program,
        placement,
        ready_limit_ns: file.ready_limit.map_or(READY_LIMIT_NS, |d| d.0),
    };
    check_server(&server)?;
    Ok(server)
}

pub(crate) fn check_server(server: &Server) -> Result<(), PlanError> {
    check_placement(&server.placement)?;
    let program = SERVERS.open(&server.program).map_err(PlanError::new)?;
    Ok(program.check()?)
}
