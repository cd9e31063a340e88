//! Ports of a guest that this machine reaches while the guest runs, for loads that run here.

use crate::machine::Machine;
use model::{Experiment, Place, Workload};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Ports beyond those that are needed: other programs may take some while a run lasts.
const SPARE: usize = 8;

/// Ports of this machine that QEMU may listen on, and those that it listens on now.
#[derive(Debug, Clone, Default)]
pub struct Forwards {
    /// Chosen before QEMU starts, because it may listen on no others.
    ports: Vec<u16>,
    /// How many of them, from the first on, lead to the guest.
    used: usize,
}

impl Forwards {
    /// As many as the loads of an experiment need at once, and some to spare.
    pub(crate) fn for_experiment(experiment: &Experiment) -> io::Result<Self> {
        let apart = experiment.workloads.iter();
        let apart = apart.filter(|workload| workload.load_on == Place::Controller);
        let needed = apart.map(ports_of).max();
        Ok(Forwards {
            ports: free_ports(needed.map_or(0, |needed| needed + SPARE))?,
            used: 0,
        })
    }

    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Lets these ports of the guest be reached, in place of earlier ones; gives the ports
    /// of this machine, in the same order.
    pub fn change_ports(&mut self, machine: &Machine, guest_ports: &[u16]) -> io::Result<Vec<u16>> {
        let mut monitor = machine.monitor()?;
        for port in &self.ports[..self.used] {
            monitor.forward_no_more(*port)?;
        }
        // The others come first, so that a late packet meets no other server.
        self.ports.rotate_left(self.used);
        self.used = 0;
        if guest_ports.len() > self.ports.len() {
            return Err(io::Error::other(
                "the workload has more ports than were planned",
            ));
        }
        for guest in guest_ports {
            self.lead_to(*guest, |host, guest| monitor.forward(host, guest))?;
        }
        Ok(self.ports[..self.used].to_vec())
    }

    /// Lets the next port that nobody else has taken since they were chosen lead to one of the guest.
    fn lead_to(
        &mut self,
        guest: u16,
        mut forward: impl FnMut(u16, u16) -> io::Result<()>,
    ) -> io::Result<()> {
        for place in self.used..self.ports.len() {
            let host = self.ports[place];
            match forward(host, guest) {
                Ok(()) => {
                    self.ports.swap(self.used, place);
                    self.used += 1;
                    return Ok(());
                }
                // QEMU's words differ between its versions.
                Err(_) if is_taken(host) => {}
                Err(error) => return Err(error),
            }
        }
        Err(all_taken(&self.ports[self.used..]))
    }
}

/// Another program listens on it, or has a connection from it.
fn is_taken(port: u16) -> bool {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn all_taken(ports: &[u16]) -> io::Error {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let what = format!(
        "other programs have taken all ports of this machine that were chosen for it ({}); \
         `ss -tanp` shows them: end them, or start the run anew, which chooses others",
        ports.join(", ")
    );
    io::Error::new(io::ErrorKind::AddrInUse, what)
}

/// Those of its services, and that of its server.
fn ports_of(workload: &Workload) -> usize {
    let of_services = workload.services.iter().map(|service| service.ports.len());
    of_services.sum::<usize>() + 1
}

/// Ports that nobody listens on now.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners: Vec<TcpListener> = (0..count).map(listen).collect::<io::Result<_>>()?;
    let number = |l: &TcpListener| Ok(l.local_addr()?.port());
    listeners.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port that nobody has is forwarded; QEMU says the same of all others.
    fn forward(host: u16, _guest: u16) -> io::Result<()> {
        match is_taken(host) {
            true => Err(io::Error::other("could not set up the rule")),
            false => Ok(()),
        }
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_port_that_another_program_took_is_passed_over() {
        let (_theirs, taken) = listener();
        let ports = free_ports(2).unwrap();
        let mut forwards = Forwards {
            ports: vec![taken, ports[0], ports[1]],
            used: 0,
        };
        forwards.lead_to(80, forward).unwrap();
        forwards.lead_to(81, forward).unwrap();
        assert_eq!((forwards.used, &forwards.ports[..2]), (2, &ports[..]));
        // It is there for later, when nobody may have it.
        assert_eq!(forwards.ports[2], taken);
    }

    #[test]
    fn ports_that_are_all_taken_are_named_with_a_remedy() {
        let (_theirs, taken) = listener();
        let mut forwards = Forwards {
            ports: vec![taken],
            used: 0,
        };
        let error = forwards.lead_to(80, forward).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let said = error.to_string();
        assert!(
            said.contains(&taken.to_string()) && said.contains("start the run anew"),
            "{said}"
        );
    }

    #[test]
    fn a_refusal_for_another_reason_is_told_as_it_is() {
        let ports = free_ports(2).unwrap();
        let mut forwards = Forwards { ports, used: 0 };
        let refused = |_, _| Err(io::Error::other("no such network"));
        let error = forwards.lead_to(80, refused).unwrap_err();
        assert_eq!(error.to_string(), "no such network");
        assert_eq!(forwards.used, 0);
    }
}
