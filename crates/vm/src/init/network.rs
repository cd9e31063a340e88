//! Loopback always; the interface to QEMU's user-mode network when asked for. Its
//! addresses are QEMU's own (`-nic user`): the guest is 10.0.2.15.

use super::{Failure, at};
use crate::sys::Interface;
use std::net::Ipv4Addr;

const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

pub fn bring_up(outside: bool) -> Result<(), Failure> {
    Interface::from_name("lo")
        .and_then(|lo| lo.bring_up())
        .map_err(at("bring up loopback"))?;
    if !outside {
        return Ok(());
    }
    Interface::from_name("eth0")
        .and_then(|eth| eth.set_address(GUEST, MASK).and_then(|()| eth.bring_up()))
        .map_err(at("bring up eth0"))?;
    // A port that is forwarded may be open on the loopback address only (ip-sysctl.rst).
    // QEMU lets nothing in but forwards.
    std::fs::write("/proc/sys/net/ipv4/conf/eth0/route_localnet", "1")
        .map_err(at("let eth0 route to loopback addresses"))
}
