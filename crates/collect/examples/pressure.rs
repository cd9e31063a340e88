//! CPU time and CPU pressure of this machine over one second:
//! `cargo run -p schedlab-collect --example pressure`

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use collect::{psi, stat};
use std::path::Path;
use std::time::Duration;

fn main() {
    let root = Path::new("/");
    let read = || (stat::read(root), psi::read(root, psi::Resource::Cpu));
    let (cpu_before, stalled_before) = read();
    std::thread::sleep(Duration::from_secs(1));
    let (cpu_after, stalled_after) = read();
    if let (Some(before), Some(after)) = (cpu_before, cpu_after) {
        let spent = after.time_since(before);
        let percent = 100.0 * spent.busy_ns() as f64 / spent.total_ns().max(1) as f64;
        println!("busy: {percent:.1} % of all CPUs");
    }
    match (stalled_before, stalled_after) {
        (Some(before), Some(after)) => {
            let stalled_ns = after.some_ns.saturating_sub(before.some_ns);
            println!("some task waited for a CPU: {} us", stalled_ns / 1_000);
        }
        _ => println!("this kernel keeps no pressure stall information"),
    }
}
