//! System calls that neither std nor rustix offers. The only unsafe code here.

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `SCHED_FLAG_RESET_ON_FORK`: children start with the default policy.
pub const RESET_ON_FORK: u64 = 0x01;
/// `SCHED_FLAG_DL_OVERRUN`: the thread's process gets SIGXCPU when the thread has used up its
/// runtime (Linux 4.16).
pub const DL_OVERRUN: u64 = 0x04;
/// `SCHED_FLAG_UTIL_CLAMP_MIN`: [`SchedAttr::util_min`] counts (Linux 5.3).
pub const UTIL_CLAMP_MIN: u64 = 0x20;
/// `SCHED_FLAG_UTIL_CLAMP_MAX`: [`SchedAttr::util_max`] counts.
pub const UTIL_CLAMP_MAX: u64 = 0x40;

/// `struct sched_attr` of `<linux/sched/types.h>`, up to `sched_util_max` (version 1).
/// Older kernels leave the last two at 0, and take them at 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedAttr {
    /// Size of the struct in bytes, by which the kernel knows its version.
    pub size: u32,
    /// Number of the policy (`SCHED_*` of `<linux/sched.h>`).
    pub policy: u32,
    /// Flags (`SCHED_FLAG_*`), such as [`RESET_ON_FORK`].
    pub flags: u64,
    /// Nice value, -20 to 19, for the policies `SCHED_OTHER` and `SCHED_BATCH`.
    pub nice: i32,
    /// Static priority, 1 to 99, for `SCHED_FIFO` and `SCHED_RR`.
    pub priority: u32,
    /// Runtime of `SCHED_DEADLINE`; the slice of EEVDF for `SCHED_OTHER` and `SCHED_BATCH`.
    pub runtime_ns: u64,
    /// Relative deadline of `SCHED_DEADLINE`.
    pub deadline_ns: u64,
    /// Period of `SCHED_DEADLINE`.
    pub period_ns: u64,
    /// Lowest utilization that the thread counts with, of 1024.
    pub util_min: u32,
    /// Highest utilization that the thread counts with, of 1024.
    pub util_max: u32,
}

impl SchedAttr {
    /// `SCHED_FLAG_KEEP_ALL`: policy and parameters stay as they are.
    pub const KEEP_ALL: u64 = 0x18;
}

/// sched_getattr(2) of one thread.
pub fn sched_getattr(tid: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: the pointer is valid for `size` bytes of plain integers, and the
    // kernel writes at most that many.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0u32) };
    check(result).map(|_| attr)
}

/// sched_setattr(2) of one thread.
pub fn sched_setattr(tid: i32, attr: &SchedAttr) -> io::Result<()> {
    #[expect(clippy::cast_possible_truncation, reason = "some dozens of bytes")]
    let size = size_of::<SchedAttr>() as u32;
    let attr = SchedAttr { size, ..*attr };
    // SAFETY: the kernel reads `size` bytes, which the struct has.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0u32) };
    check(result).map(|_| ())
}

/// `PERF_EVENT_IOC_SET_FILTER` of `<linux/perf_event.h>`: only events that the filter
/// (Documentation/trace/events.rst, "Event filtering") lets through are counted.
pub fn set_event_filter(event: &impl AsRawFd, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter)?;
    // SAFETY: the descriptor is open, and the kernel copies the string, which ends
    // with a zero, before the call returns.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) };
    check(result.into()).map(|_| ())
}

/// `_IOW('$', 6, char *)`.
const SET_FILTER: u64 = 1 << 30 | (size_of::<*const u8>() as u64) << 16 | 0x24 << 8 | 6;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// End of a process, and the resources that it used.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Exit code, or the signal that ended it.
    pub status: std::process::ExitStatus,
    /// Resources of the process and of the children that it waited for.
    pub usage: libc::rusage,
}

/// wait4(2): reap one child that has ended or will.
pub fn wait4(pid: i32) -> io::Result<Ended> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid, and the kernel writes whole structs.
    let result = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    check(result.into())?;
    Ok(Ended {
        status: std::os::unix::process::ExitStatusExt::from_raw(status),
        // SAFETY: zeroed before, and all-zero is a valid rusage.
        usage: unsafe { usage.assume_init() },
    })
}

/// A `timeval` that counts a time span.
pub fn to_duration(time: libc::timeval) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_usec).unwrap_or(0) * 1_000,
    )
}

/// Signature of the hypervisor from the CPUID instruction; `None` on bare metal.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // Safe since Rust 1.94.
pub fn hypervisor_signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // SAFETY: every x86-64 CPU has the instruction and leaf 1.
    let features = unsafe { __cpuid(1) };
    if features.ecx >> 31 == 0 {
        return None;
    }
    // SAFETY: as above; the bit says that this leaf is there.
    let leaf = unsafe { __cpuid(0x4000_0000) };
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx]
        .map(u32::to_le_bytes)
        .concat();
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches('\0').to_owned())
}

/// Signature of the hypervisor; `None`, because there is no CPUID instruction.
#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor_signature() -> Option<String> {
    None
}
