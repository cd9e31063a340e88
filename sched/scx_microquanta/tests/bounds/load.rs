//! Threads that want the CPU: always, or for a moment every now and then.

use crate::machine::{is_shared, last_cpu};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that runs until this is stopped or dropped.
pub struct Worker<T> {
    tid: Pid,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// `name` decides how it is scheduled; `cpu` is where it has to run.
    fn start(
        name: &str,
        cpu: Option<usize>,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let (tell_tid, tid) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                if let Some(cpu) = cpu {
                    pin(cpu);
                }
                tell_tid
                    .send(rustix::thread::gettid())
                    .expect("tell the thread's id");
                work(&told)
            });
        Worker {
            thread: Some(thread.expect("start a thread")),
            tid: tid.recv().expect("the thread's id"),
            stop,
        }
    }

    /// CPU time so far, from the kernel.
    pub fn cpu_time(&self) -> Duration {
        cpu_time_in(&self.proc_file("schedstat"))
    }

    fn proc_file(&self, name: &str) -> String {
        format!("/proc/self/task/{}/{name}", self.tid.as_raw_nonzero())
    }

    pub fn set_nice(&self, nice: i32) {
        setpriority_process(Some(self.tid), nice).expect("set the nice value");
    }

    /// `SCHED_FIFO`: before all of sched_ext.
    pub fn set_real_time(&self) {
        let tid = self.tid.as_raw_nonzero().to_string();
        let status = Command::new("chrt").args(["-f", "-p", "1", &tid]).status();
        assert!(status.expect("start chrt").success());
    }

    /// Under another name from now on.
    pub fn rename(&self, name: &str) {
        fs::write(self.proc_file("comm"), name).expect("rename the thread");
    }

    pub fn allow_all_cpus(&self) {
        let mut set = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
        sched_setaffinity(Some(self.tid), &set).expect("free the thread");
    }

    pub fn stop(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("stopped once");
        thread.join().expect("the thread did not panic")
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Counts of a `schedstat` file under /proc, for one thread.
pub fn cpu_time_in(schedstat: &str) -> Duration {
    let text = fs::read_to_string(schedstat).expect("read the thread's schedstat");
    let ns = text.split_whitespace().next().and_then(|w| w.parse().ok());
    Duration::from_nanos(ns.expect("its first number"))
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("pin the thread to a CPU");
}

/// Always wants the CPU. Gives the gaps in its running that were longer than
/// 100 us.
pub fn spinner(name: &str, cpu: usize) -> Worker<Vec<Duration>> {
    Worker::start(name, Some(cpu), |stop| {
        let mut gaps = Vec::new();
        let mut last = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now - last > Duration::from_micros(100) {
                gaps.push(now - last);
            }
            last = now;
        }
        gaps
    })
}

/// Spinners that start on the last CPU and may run anywhere.
pub fn free_spinners(number: usize) -> Vec<Worker<Vec<Duration>>> {
    let free: Vec<_> = (0..number).map(|_| spinner("free", last_cpu())).collect();
    free.iter().for_each(Worker::allow_all_cpus);
    free
}

/// Sleeps 3 ms and then runs for a moment. Gives the CPUs on which it ran.
pub fn sleeper(name: &str, cpu: Option<usize>) -> Worker<Vec<usize>> {
    Worker::start(name, cpu, |stop| {
        let mut cpus = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(3));
            cpus.push(rustix::thread::sched_getcpu());
        }
        cpus
    })
}

/// CPU time of each worker within `window`.
pub fn cpu_times<T: Send + 'static>(workers: &[&Worker<T>], window: Duration) -> Vec<Duration> {
    let before: Vec<Duration> = workers.iter().map(|w| w.cpu_time()).collect();
    std::thread::sleep(window);
    let after = workers.iter().map(|w| w.cpu_time());
    after.zip(before).map(|(a, b)| a - b).collect()
}

/// Each worker's share of the CPU time that all of them got in `window`.
pub fn shares<T: Send + 'static>(workers: &[&Worker<T>], window: Duration) -> Vec<f64> {
    let times = cpu_times(workers, window);
    let total: Duration = times.iter().sum();
    let share = |time: &Duration| time.as_secs_f64() / total.as_secs_f64();
    times.iter().map(share).collect()
}

/// The first worker's.
pub fn share<T: Send + 'static>(workers: &[&Worker<T>], window: Duration) -> f64 {
    shares(workers, window)[0]
}

/// The longest; on CPUs that are shared with others, but for one in a hundred.
pub fn longest(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    let skipped = if is_shared() { times.len() / 100 } else { 0 };
    let kept = times.len().saturating_sub(skipped);
    times
        .get(kept.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}
