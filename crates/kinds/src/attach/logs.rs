//! Lines that a service adds to a log, or sends in datagrams of StatsD, while it runs: figures of those that
//! came within each window.

use super::Attach;
use crate::command::{Grown, Line, OwnMetric, Source, figures_of_windows};
use load::gate::Timing;
use load::{Job, Parsed};
use model::Invalid;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::path::Path;

/// Beginning of the place of lines that come as datagrams, before the address.
const STATSD: &str = "statsd:";

/// Places where lines come from.
pub(super) enum Place<'a> {
    Log(&'a Path),
    StatsD(SocketAddr),
}

impl<'a> Place<'a> {
    /// The place that `from` names; an error where it is none.
    pub fn parse(from: &'a str) -> Result<Self, String> {
        match from.strip_prefix(STATSD) {
            Some(address) => match address.parse::<SocketAddr>() {
                Ok(address) if address.ip().is_loopback() => Ok(Place::StatsD(address)),
                Ok(_) => Err(format!("`{address}` is no loopback address")),
                Err(_) => Err(format!("`{address}` is no address with a port")),
            },
            None if from.starts_with('/') => Ok(Place::Log(Path::new(from))),
            None => Err(format!("`{from}` is no log")),
        }
    }

    /// Begins to read the lines that come from now on.
    pub fn follow(&self) -> Result<Grown, String> {
        match self {
            Place::Log(path) => Grown::follow(path.to_path_buf()),
            Place::StatsD(address) => Grown::receive(*address),
        }
    }

    /// Why nothing can be read from there.
    pub fn find_obstacle(&self) -> Option<String> {
        match self {
            Place::Log(path) if path.is_file() => None,
            Place::Log(path) => Some(format!("there is no log {}", path.display())),
            Place::StatsD(address) => Grown::receive(*address).err(),
        }
    }
}

/// Logs that are followed, by where metrics have them from.
#[derive(Debug)]
pub(super) struct Logs(BTreeMap<Source, Grown>);

impl Logs {
    /// Begins to read what is added from now on.
    pub fn follow(attach: &Attach) -> Result<Self, String> {
        let mut logs = BTreeMap::new();
        for path in attach.logs() {
            let from = Source::File(path.to_owned());
            if let Entry::Vacant(new) = logs.entry(from) {
                new.insert(Place::parse(path)?.follow()?);
            }
        }
        Ok(Logs(logs))
    }

    /// Adds the figures of the lines to those of the service.
    pub fn add_to(
        mut self,
        parsed: &mut Parsed,
        attach: &Attach,
        job: &Job,
        timing: &Timing,
    ) -> Result<(), String> {
        let mut lines = BTreeMap::new();
        for (from, grown) in &mut self.0 {
            lines.insert(from.clone(), grown.take_lines(from)?);
        }
        let window = timing.window;
        let Some(turns) = &job.turns else {
            let within = |line: &&Line| (window.begin_ns..window.end_ns).contains(&line.at_ns);
            for metric in &attach.logged {
                let all = lines.get(&metric.from).map_or(&[][..], Vec::as_slice);
                let lines: Vec<Line> = all.iter().filter(within).cloned().collect();
                parsed.metrics.push(whole(metric, &lines)?);
            }
            return Ok(());
        };
        let found = figures_of_windows(&attach.logged, turns, window.begin_ns, &lines)?;
        parsed.metrics.extend(found.metrics);
        for (of_turn, more) in parsed.turns.iter_mut().zip(found.turns) {
            of_turn.whole.extend(more.whole);
            for (half, more) in of_turn.halves.iter_mut().zip(more.halves) {
                half.extend(more);
            }
        }
        Ok(())
    }
}

/// The figure of the one window.
fn whole(metric: &OwnMetric, lines: &[Line]) -> Result<model::Measurement, String> {
    let timed = metric.timed_figures(lines)?;
    let values: Vec<(u64, f64)> = timed.iter().map(|(at, f)| (*at, f.value)).collect();
    let value = metric.pick.pick_from(&values).ok_or_else(|| {
        format!(
            "the metric `{}`: the window has too few lines with it in {}: {}",
            metric.name,
            metric.from,
            values.len()
        )
    })?;
    Ok(metric.measurement(value, timed.iter().map(|(_, figure)| figure)))
}

/// Refuses a metric that is in no log that grows.
pub(super) fn check(metric: &OwnMetric) -> Result<(), Invalid> {
    metric.check()?;
    if let Some(what) = metric.never_in_turns() {
        let remedy = "regex, or csv, and pick = \"p99\", \"mean\", \"sum\" or \"rate\"";
        return Err(Invalid::new("", what).with_remedy(remedy));
    }
    let from = String::from(metric.from.clone());
    Place::parse(&from).map(drop).map_err(|what| {
        let remedy = "from = \"/var/log/nginx/access.log\", or from = \"statsd:127.0.0.1:8125\"";
        Invalid::new("from", what).with_remedy(remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    /// A port that is free a moment later, too, unless somebody else takes it.
    fn free_address() -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.local_addr().unwrap()
    }

    #[test]
    fn lines_of_datagrams_are_kept_in_their_order() {
        let address = free_address();
        let from = format!("statsd:{address}");
        let place = Place::parse(&from).unwrap();
        assert_eq!(place.find_obstacle(), None);
        let mut heard = place.follow().unwrap();
        let said = place.find_obstacle().unwrap();
        assert!(said.contains("Address already in use"), "{said}");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for datagram in ["a:1|c\nb:2|ms\n", "a:3|c"] {
            sender.send_to(datagram.as_bytes(), address).unwrap();
        }
        let source = Source::File(from);
        let mut lines = Vec::new();
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while lines.len() < 3 && std::time::Instant::now() < limit {
            lines.extend(heard.take_so_far(&source).unwrap());
        }
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["a:1|c", "b:2|ms", "a:3|c"]);
    }
}
