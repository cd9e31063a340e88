//! CPU time of a process from outside: the first number of
//! /proc/PID/task/TID/schedstat, nanoseconds on a CPU.

use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// In percent of one CPU, over a time from now on.
pub fn percent_of(pid: u32, time: Duration) -> io::Result<f64> {
    let (start, before) = (Instant::now(), cpu_ns(pid)?);
    thread::sleep(time);
    let used_ns = cpu_ns(pid)?.saturating_sub(before);
    Ok(used_ns as f64 / 1e7 / start.elapsed().as_secs_f64())
}

fn cpu_ns(pid: u32) -> io::Result<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next();
        total += first.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(total)
}
