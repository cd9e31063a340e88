//! The latency of server and kernel alone: one connection, one request at a time, and
//! a client that never sleeps, neither until a request is due nor until its answer is
//! there. What a generator reports beyond this is its own part.

use crate::schedlab::Speaks;
use crate::side::{Load, Run};
use rustix::thread::{
    CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The median and the 99th percentile at a rate.
pub fn measure(load: &Load, speaks: Speaks) -> Result<Run, Box<dyn Error>> {
    let before = sched_getaffinity(None)?;
    let mut own = CpuSet::new();
    own.set(load.cpu as usize);
    sched_setaffinity(None, &own)?;
    let run = poll(load, speaks);
    sched_setaffinity(None, &before)?;
    run
}

fn poll(load: &Load, speaks: Speaks) -> Result<Run, Box<dyn Error>> {
    let rate_per_sec = load.rate_per_sec.ok_or("the floor needs a rate")?;
    let gap = Duration::from_secs_f64(1.0 / rate_per_sec);
    let mut stream = TcpStream::connect(load.address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let (request, end) = talk(speaks);
    let start = Instant::now();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "room for some seconds of a rate that a CPU sustains"
    )]
    let requests = (rate_per_sec * load.window.as_secs_f64()) as usize;
    let mut latencies = Vec::with_capacity(requests);
    let mut due = start;
    while start.elapsed() < load.window {
        // A request that the last one has delayed begins late: this is no queue.
        due = (due + gap).max(Instant::now());
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        exchange(&mut stream, request, end)?;
        latencies.push(due.elapsed());
    }
    Ok(summary(latencies, load.window))
}

/// CPU time, in percent of a CPU, of a thread that does nothing but sleep until the next
/// request would be due: what sending each one in time costs before it is sent.
pub fn sleeping_percent(load: &Load) -> Result<f64, Box<dyn Error>> {
    let load = *load;
    let thread = std::thread::spawn(move || sleep_through(&load).map_err(|e| e.to_string()));
    let slept = thread.join().map_err(|_| "the thread panicked")?;
    Ok(slept?)
}

/// Share of a CPU, in percent, that the calling thread uses when it only sleeps from one
/// request to the next.
fn sleep_through(load: &Load) -> Result<f64, Box<dyn Error>> {
    let rate_per_sec = load.rate_per_sec.ok_or("the floor needs a rate")?;
    let mut own = CpuSet::new();
    own.set(load.cpu as usize);
    sched_setaffinity(None, &own)?;
    set_current_timer_slack(NonZeroU64::new(1))?;
    let used = || clock_gettime(ClockId::ThreadCPUTime).try_into() as Result<Duration, _>;
    let now = || clock_gettime(ClockId::Monotonic).try_into() as Result<Duration, _>;
    let gap = Duration::from_secs_f64(1.0 / rate_per_sec);
    let (start, before) = (now()?, used()?);
    let mut due = start;
    while due < start + load.window {
        due += gap;
        clock_nanosleep_absolute(ClockId::Monotonic, &due.try_into()?)?;
    }
    let share = (used()? - before).as_secs_f64() / (now()? - start).as_secs_f64();
    Ok(100.0 * share)
}

/// A request, and how its answer ends.
fn talk(speaks: Speaks) -> (&'static [u8], &'static [u8]) {
    match speaks {
        Speaks::Http => (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"ok\n"),
        Speaks::Memcached => (b"get x\r\n", b"END\r\n"),
    }
}

fn exchange(stream: &mut TcpStream, request: &[u8], end: &[u8]) -> Result<(), Box<dyn Error>> {
    stream.write_all(request)?;
    let (mut buffer, mut length) = ([0; 4096], 0);
    while !buffer[..length].ends_with(end) {
        match stream.read(&mut buffer[length..]) {
            Ok(0) => return Err("the server hung up".into()),
            Ok(n) => length += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

fn summary(mut latencies: Vec<Duration>, window: Duration) -> Run {
    latencies.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the number of latencies: the share is at most 1"
        )]
        let index = (latencies.len() as f64 * share) as usize;
        let found = latencies.get(index).or(latencies.last());
        found.map_or(f64::NAN, |latency| latency.as_nanos() as f64 / 1e3)
    };
    Run {
        rate_per_sec: latencies.len() as f64 / window.as_secs_f64(),
        p50_us: at(0.5),
        p99_us: at(0.99),
        cpu_percent: 100.0,
    }
}
