//! The list of all that can be named: kinds of load, servers and antagonists. An entry is defined in the crate of
//! its kind; here is its line.

use kinds::{
    attach, command, fio, frames, gatling, hackbench, netperf, periodic, rr, schbench, tbench,
    wakeup,
};
use load::Catalogue;
use services::{http, memcached, programs};

/// All entries, the main one of each sort first.
pub static CATALOGUE: Catalogue = Catalogue {
    kinds: &[
        &wakeup::KIND,
        &schbench::KIND,
        &hackbench::KIND,
        &netperf::KIND,
        &rr::KIND,
        &tbench::KIND,
        &fio::KIND,
        &periodic::KIND,
        &frames::KIND,
        &burnwait::KIND,
        &command::KIND,
        &attach::KIND,
        &http::KIND,
        &memcached::KIND,
        &gatling::KIND,
    ],
    servers: &[
        &programs::echo::SERVER,
        &programs::memcached::SERVER,
        &programs::nginx::SERVER,
        &programs::http_echo::SERVER,
        &programs::rr::SERVER,
        &programs::tbench::SERVER,
        &programs::server_command::SERVER,
    ],
    antagonists: &[
        &programs::spinner::ANTAGONIST,
        &burnwait::antagonist::ANTAGONIST,
        &programs::stress_ng::ANTAGONIST,
        &programs::provoke::ANTAGONIST,
        &programs::antagonist_command::ANTAGONIST,
    ],
    installable: command::INSTALLABLE,
};

/// Makes all entries known to this process; a program calls it first.
pub fn install() {
    load::install(&CATALOGUE);
}

#[cfg(test)]
mod tests;
