//! The network between a load on the controller and its services: whether it lets connections through, and how
//! long its way is.

use crate::RunError;
use crate::connection::Connection;
use model::{Experiment, Listening, Measurement, MetricDef, Place, Problem, Trial, Way, Workload};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time after which a connection is not waited for any longer.
const LIMIT: Duration = Duration::from_secs(3);
/// Connections whose shortest time is that of the way there and back.
const TRIES: usize = 5;

/// Name of the fact in `system.json` about the way of loads on the controller.
pub(crate) const WAY: &str = "load.way";

const ROUND_TRIP: MetricDef = MetricDef::explaining(
    "network_round_trip",
    "ns",
    "Time in which the target takes a connection of the controller, the shortest of five before the load.",
);

/// Does the load of the workload reach its services over the network?
pub(crate) fn goes_over_network(workload: &Workload) -> bool {
    workload.load_on == Place::Controller && workload.load_way == Way::Network
}

/// The way of the loads on the controller, for `system.json`; `None` where there are none.
pub(crate) fn way_in_words(
    experiment: &Experiment,
    connection: &Connection,
) -> Result<Option<String>, RunError> {
    let apart = experiment.workloads.iter();
    let mut apart = apart.filter(|workload| workload.load_on == Place::Controller);
    let tunnel = apart.clone().any(|workload| !goes_over_network(workload));
    let tunnel = tunnel.then(|| "through a tunnel".to_owned());
    let network = match apart.any(goes_over_network) {
        true => Some(format!(
            "over the network to {}",
            connection.network_address()?
        )),
        false => None,
    };
    let ways: Vec<String> = tunnel.into_iter().chain(network).collect();
    Ok((!ways.is_empty()).then(|| ways.join(" or ")))
}

/// The reason why loads would not reach the target over the network, where some are to. Found by a port on
/// which the target's agent listens for it.
pub(crate) fn find_obstacle(
    experiment: &Experiment,
    connection: &mut Connection,
) -> Result<Option<Problem>, RunError> {
    let mut workloads = experiment.workloads.iter();
    let Some(workload) = workloads.find(|workload| goes_over_network(workload)) else {
        return Ok(None);
    };
    let problem = |what: String, remedy: &str| Problem {
        object: format!("workload {}", workload.name),
        what: format!("load-way = \"network\": {what}"),
        remedy: remedy.to_owned(),
    };
    let address = connection.network_address()?;
    let fixed = find_fixed_port(workload);
    let port = match connection.listen_at(address, fixed.unwrap_or(0))? {
        Ok(port) => port,
        Err(why) => {
            let what = format!("the target cannot listen at {address}: {why}");
            let remedy = "give [target] an address that the target itself has (ip address), and end what \
                          listens at the port of the server";
            return Ok(Some(problem(what, remedy)));
        }
    };
    let tried = measure_round_trip((address, port).into());
    Ok(tried.err().map(|error| {
        let what = format!("this machine does not reach {address}, port {port}: {error}");
        let remedy = match fixed {
            Some(_) => {
                "let the firewall there take connections of this machine at that port, or correct the \
                 address in [target]"
            }
            None => {
                "let the firewall there take connections of this machine at the ports that its kernel \
                 chooses (sysctl net.ipv4.ip_local_port_range), or give the server a port, or correct the \
                 address in [target]"
            }
        };
        problem(what, remedy)
    }))
}

/// The port that the experiment gives the workload's server.
fn find_fixed_port(workload: &Workload) -> Option<u16> {
    let server = workload.server.as_ref()?;
    let port = server.program.params().get("port")?.as_u64()?;
    u16::try_from(port).ok()
}

/// The way to the services that the load asks, as a figure of the trial, or the first that is not reached.
pub(crate) fn reach_services(
    workload: &Workload,
    address: IpAddr,
    services: &[Listening],
) -> Result<Option<Measurement>, (io::ErrorKind, Problem)> {
    let named = |l: &&Listening| workload.names_port(&l.service, &l.port);
    let mut asked: Vec<&Listening> = services.iter().filter(named).collect();
    if asked.is_empty() {
        asked.extend(services.iter().filter(|service| service.is_asked));
    }
    let mut shortest = None;
    for service in asked {
        let at = SocketAddr::from((address, service.number));
        let time = measure_round_trip(at)
            .map_err(|error| (error.kind(), not_reached(workload, service, at, &error)))?;
        shortest = Some(shortest.map_or(time, |shortest: Duration| shortest.min(time)));
    }
    Ok(shortest.map(|time| ROUND_TRIP.to_measurement(model::whole_nanos(time) as f64)))
}

/// Did the load of the trial reach its services over the network?
pub(crate) fn has_round_trip(trial: &Trial) -> bool {
    let mut metrics = trial.result.metrics.iter();
    metrics.any(|metric| metric.metric == ROUND_TRIP.name)
}

fn not_reached(
    workload: &Workload,
    Listening { service, .. }: &Listening,
    at: SocketAddr,
    error: &io::Error,
) -> Problem {
    Problem {
        object: format!("workload {}", workload.name),
        what: format!("{service} is not reached at {at} over the network: {error}"),
        remedy: format!(
            "let {service} listen at {{target.address}}, as in its command or its files, and a firewall take \
             connections of this machine"
        ),
    }
}

/// A connection is there after one way and back; whatever else comes makes it longer.
fn measure_round_trip(at: SocketAddr) -> io::Result<Duration> {
    let mut shortest = LIMIT;
    for _ in 0..TRIES {
        let began = Instant::now();
        TcpStream::connect_timeout(&at, LIMIT)?;
        shortest = shortest.min(began.elapsed());
    }
    Ok(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Kind;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_service_that_listens_has_a_round_trip_and_another_is_told_with_its_address() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let services = [Listening {
            service: "api".to_owned(),
            port: "http".to_owned(),
            number: listener.local_addr().unwrap().port(),
            is_asked: true,
        }];
        let workload = Workload::new(Kind::new("http"));
        let reach = || reach_services(&workload, Ipv4Addr::LOCALHOST.into(), &services);
        let found = reach().unwrap().unwrap();
        assert!(found.metric == "network_round_trip" && found.value > 0.0);
        drop(listener);
        let (kind, problem) = reach().unwrap_err();
        assert_eq!(kind, io::ErrorKind::ConnectionRefused);
        let at = format!("api is not reached at 127.0.0.1:{}", services[0].number);
        assert!(problem.what.starts_with(&at), "{problem:?}");
        assert!(problem.remedy.contains("{target.address}"), "{problem:?}");
        assert_eq!(
            reach_services(&workload, Ipv4Addr::LOCALHOST.into(), &[]),
            Ok(None)
        );
    }
}
