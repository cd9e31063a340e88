//! Ports of a guest that this machine reaches while the guest runs, for loads that run here.

use crate::machine::Machine;
use model::{Experiment, Place, Workload};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Ports of this machine that QEMU may listen on, and those that it listens on now.
#[derive(Debug, Clone, Default)]
pub struct Forwards {
    /// Chosen before QEMU starts, because it may listen on no others.
    ports: Vec<u16>,
    /// How many of them, from the first on, lead to the guest.
    used: usize,
}

impl Forwards {
    /// As many as the loads of an experiment need at once.
    pub(crate) fn for_experiment(experiment: &Experiment) -> io::Result<Self> {
        let apart = experiment.workloads.iter();
        let apart = apart.filter(|workload| workload.load_on == Place::Controller);
        Ok(Forwards {
            ports: free_ports(apart.map(ports_of).max().unwrap_or(0))?,
            used: 0,
        })
    }

    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Lets these ports of the guest be reached, in place of earlier ones; gives the ports
    /// of this machine, in the same order.
    pub fn change(&mut self, machine: &Machine, guest_ports: &[u16]) -> io::Result<Vec<u16>> {
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
        for (host, guest) in self.ports.iter().zip(guest_ports) {
            monitor.forward(*host, *guest)?;
            self.used += 1;
        }
        Ok(self.ports[..self.used].to_vec())
    }
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
