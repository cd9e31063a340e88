//! The few kinds of load, servers and antagonists that the tests of the agent name: not all that there are, so that
//! a change of another one compiles nothing of the agent.

use kinds::{command, hackbench, wakeup};
use load::Catalogue;
use services::programs;

static FEW: Catalogue = Catalogue {
    kinds: &[&wakeup::KIND, &hackbench::KIND, &command::KIND],
    servers: &[
        &programs::echo::SERVER,
        &programs::memcached::SERVER,
        &programs::http_echo::SERVER,
        &programs::server_command::SERVER,
    ],
    antagonists: &[
        &programs::spinner::ANTAGONIST,
        &programs::stress_ng::ANTAGONIST,
        &programs::antagonist_command::ANTAGONIST,
    ],
    installable: &[],
};

/// Makes them known to this process.
pub fn install() {
    load::install(&FEW);
}
