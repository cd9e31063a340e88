//! Parts that the drivers of both protocols share: the usual values, addresses, problems.

use super::config::Config;
use super::generate::FILES_BESIDE;
use load::latency as m;
use load::recording::samples_needed;
use load::{Asks, Job, Usual, sys};
use model::stack::{self, Named};
use model::{Arrivals, Kind, Load, Problem, Workload, format_duration_ns};
use std::net::SocketAddr;
use std::path::Path;

/// hosts(5).
pub const HOSTS: &str = "/etc/hosts";

/// Values that hold for both where the experiment file says nothing.
pub const USUAL: Usual = Usual {
    load: Load::RatePerSec(1_000.0),
    duration_ns: 5_000_000_000,
    warmup_ns: 1_000_000_000,
    time_limit_ns: None,
};

/// `written`: an address that the file names.
pub fn request_receiver(written: bool, usual: Kind) -> Asks {
    match written {
        true => Asks::Elsewhere,
        false => Asks::Server(usual),
    }
}

/// An address or URL as it is written, with port 1 for a port of a service and the loopback address for that
/// of the target: they are known when the services start, and then stand in place of the name.
pub fn before_start(written: &str, job: &Job) -> String {
    let names = stack::known_names(&job.workload.services, None);
    stack::fill_placeholders(written, |name| match names.get(name)? {
        Named::Port(..) => Some("1".to_owned()),
        Named::Address => Some("127.0.0.1".to_owned()),
        Named::Folder(_) | Named::Container(_) => None,
    })
}

/// `HOST[:PORT]` as it is written, or the workload's own server. Before the server
/// runs its address is not known: then it is port 1 of the loopback address.
pub fn address(written: Option<&str>, usual_port: u16, job: &Job) -> Result<SocketAddr, String> {
    match (written, job.server, job.workload.can_answer()) {
        (Some(text), _, _) => super::address::resolve(text, usual_port, Path::new(HOSTS)),
        (None, Some(address), _) => Ok(address),
        (None, None, true) => Ok(SocketAddr::from(([127, 0, 0, 1], 1))),
        (None, None, false) => Err("it has neither an address nor a server".to_owned()),
    }
}

/// Problems that keep the job from running here.
pub fn require(job: &Job, config: Result<Config, String>) -> Vec<Problem> {
    let problem = |what: String, remedy: &str| job.problem(what, remedy);
    let config = match config {
        Ok(config) => config,
        Err(what) => return vec![problem(what, "correct the workload in the experiment file")],
    };
    let mut problems = Vec::new();
    if let Some(what) = config.fault() {
        problems.push(problem(what, "correct the workload in the experiment file"));
    }
    let share = config.ramps.request_share(config.duration_ns);
    problems.extend(find_undecidable(job, share).map(|(what, remedy)| problem(what, &remedy)));
    if let Some(what) = too_many_files(config.connections, sys::most_files()) {
        let remedy = "take fewer connections, or raise the limit (ulimit -Hn, limits.conf(5))";
        problems.push(problem(what, remedy));
    }
    let client = job.workload.client.as_ref();
    let list = client.and_then(|client| client.load_cpus.as_deref());
    problems.extend(absent_cpu(job, &config.cpus, list));
    problems
}

/// First CPU in `load-cpus` that this process may not use.
pub fn absent_cpu(job: &Job, cpus: &[u32], list: Option<&str>) -> Option<Problem> {
    let allowed = sys::allowed_cpus();
    let cpu = cpus.iter().find(|cpu| !allowed.contains(cpu))?;
    let list = list.unwrap_or_default();
    let what = format!("load-cpus = \"{list}\": there is no CPU {cpu} to run on here");
    Some(job.problem(what, "name CPUs of this machine that the agent may use"))
}

/// More connections than a process may open files; `most` is the hard limit, if any.
fn too_many_files(connections: u32, most: Option<u64>) -> Option<String> {
    let needed = u64::from(connections) + FILES_BESIDE;
    let most = most.filter(|most| *most < needed)?;
    Some(format!(
        "{connections} connections need {needed} open files, and the hard limit of a process is \
         {most}"
    ))
}

/// A metric that decides and that a window is too short for, with the remedy. `share` is what
/// ramps leave of the requests of the window.
pub fn find_undecidable(job: &Job, share: f64) -> Option<(String, String)> {
    let Load::RatePerSec(rate) = job.load else {
        return None;
    };
    let workload = &job.workload;
    let rate = rate * share;
    let requests = rate * workload.duration_ns as f64 / 1e9;
    let quantiles = [m::REQUEST, m::SERVICE].into_iter().flatten();
    let decides = |name: &str| workload.metrics.iter().any(|metric| metric == name);
    let needed = quantiles
        .filter(|(def, _)| decides(def.name))
        .filter_map(|(def, permille)| Some((def.name, samples_needed((*permille)?))))
        .max_by_key(|(_, needed)| *needed)
        .filter(|(_, needed)| requests < surely(workload, *needed));
    needed.map(|(metric, needed)| {
        let seconds = (1.1 * surely(workload, needed) / rate).ceil();
        (
            format!(
                "{} makes {requests:.0} requests in {}, and {metric}, which decides, needs {needed}",
                job.load,
                format_duration_ns(workload.duration_ns)
            ),
            format!(
                "duration = \"{seconds}s\", a higher rate, or a lower quantile: metrics = [\"request_p50\"]"
            ),
        )
    })
}

/// Requests to ask for so that this many are made: Poisson arrivals vary by their root.
fn surely(workload: &Workload, needed: u64) -> f64 {
    let arrivals = workload.client.as_ref().map(|client| client.arrivals);
    let spread = match arrivals {
        Some(Arrivals::Poisson) => 4.0 * (needed as f64).sqrt(),
        _ => 0.0,
    };
    needed as f64 + spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_limit_of_open_files_are_a_problem() {
        assert_eq!(too_many_files(100, None), None);
        assert_eq!(too_many_files(100, Some(100 + FILES_BESIDE)), None);
        let what = too_many_files(200_000, Some(1024)).unwrap();
        assert!(what.contains("200000 connections need 200064"), "{what}");
        assert!(what.contains("hard limit of a process is 1024"), "{what}");
    }
}
