//! `schedlab spin`: threads that do nothing but use the CPU. The native antagonist.

use std::hint::black_box;
use std::thread::Builder;

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "spinner";
const THREAD_NAME: &std::ffi::CStr = c"spinner";

/// Counts on `threads` threads until the process is killed.
pub fn spin_main(threads: u32) -> Result<(), String> {
    // The first thread counts too, and a trace is to call it what it is.
    rustix::thread::set_name(THREAD_NAME).map_err(|e| format!("name a spinner thread: {e}"))?;
    for _ in 1..threads.max(1) {
        Builder::new()
            .name(THREAD.to_owned())
            .spawn(spin)
            .map_err(|e| format!("start a spinner thread: {e}"))?;
    }
    spin()
}

/// No memory beyond a register, no system calls.
fn spin() -> ! {
    let mut count = 0u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}
