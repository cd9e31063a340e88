//! Time that a guest takes: from power-on to an agent that answers, and from power-on to the
//! output of `uname -r`, in turns with another program that does the same.
//!
//! ```text
//! cargo run --release -p boot -- target/schedlab ROUNDS [OTHER COMMAND…]
//! cargo run --release -p boot -- target/schedlab ROUNDS --saved IMAGE
//! cargo run --release -p boot -- target/schedlab ROUNDS --saved IMAGE PATH LINE
//! ```
//! Power-on is the moment when the command is typed: finding the kernel and starting
//! QEMU count. The other command boots a guest and runs `uname -r` in it; it gets a
//! terminal from script(1), and its clock stops at the line with the kernel's release,
//! so its power-off does not count, as ours does not. The second form boots a guest of a disk image,
//! saves it, and measures the time until its agent answers when it goes on. The third starts a
//! service in it by a line of the shell first, on port 7000 of all addresses of the guest, and measures the time until
//! the service answers a request for the path when it goes on.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

mod guest;
mod other;
mod saved;
mod service;

use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

/// The seconds of one way to boot.
struct Series {
    what: &'static str,
    seconds: Vec<f64>,
    failed: u32,
}

impl Series {
    fn new(what: &'static str) -> Self {
        Series {
            what,
            seconds: Vec::new(),
            failed: 0,
        }
    }

    fn add(&mut self, measured: Result<Duration, Failure>) {
        match measured {
            Ok(time) => {
                println!("  {}: {:.2} s", self.what, time.as_secs_f64());
                self.seconds.push(time.as_secs_f64());
            }
            Err(why) => {
                println!("  {}: {why}", self.what);
                self.failed += 1;
            }
        }
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn print(&self) {
        let least = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.seconds.iter().copied().fold(0.0, f64::max);
        println!(
            "{:<28} median {:.2} s, from {least:.2} to {most:.2}, {} of {} came up",
            self.what,
            self.median(),
            self.seconds.len(),
            self.seconds.len() + self.failed as usize,
        );
    }
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: boot SCHEDLAB ROUNDS [OTHER COMMAND…]";
    let program = args.next().ok_or(usage)?;
    let rounds: u32 = args.next().ok_or(usage)?.parse()?;
    let other: Vec<String> = args.collect();
    match &other[..] {
        [option, image] if option == "--saved" => return saved::rounds(&program, image, rounds),
        [option, image, service @ ..] if option == "--saved" => {
            return service::rounds(&program, image, service, rounds);
        }
        _ => {}
    }

    let mut agent = Series::new("agent ready");
    let mut ours = Series::new("uname -r, schedlab");
    let mut theirs = Series::new("uname -r, the other");
    // What is made once (lists, kernel, initramfs) is there before the clock starts.
    let release = guest::command(&program)?.release;
    for round in 0..rounds {
        println!("round {}", round + 1);
        // In turns, and who is first changes.
        if round % 2 == 1 && !other.is_empty() {
            theirs.add(other::command(&other, &release));
        }
        ours.add(guest::command(&program).map(|run| run.time));
        if round % 2 == 0 && !other.is_empty() {
            theirs.add(other::command(&other, &release));
        }
        agent.add(guest::agent(&program));
    }
    agent.print();
    ours.print();
    if !other.is_empty() {
        theirs.print();
        println!(
            "ratio of the medians {:.2}",
            ours.median() / theirs.median()
        );
    }
    Ok(())
}
