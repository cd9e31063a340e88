//! The system calls that std and rustix have no safe form of: what a child does
//! between fork and exec, and the network ioctls of netdevice(7).

use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The child is killed when the *thread* that starts it ends, however it ends, leads a
/// session of its own, and keeps the descriptors `inherit` open under their numbers.
/// Becoming another user comes before: the kernel forgets the death signal then.
pub fn bind_to_parent(command: &mut Command, inherit: Vec<RawFd>) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above.
        if getppid() != Some(parent) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        // A terminal's Ctrl-C is for this program, which ends the child in order.
        setsid()?;
        inherit.iter().try_for_each(|fd| keep_open(*fd))
    };
    // SAFETY: between fork and exec the closure only makes system calls
    // (prctl, getppid, setsid, fcntl) and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

fn keep_open(fd: RawFd) -> io::Result<()> {
    // SAFETY: the caller of `bind_to_parent` holds the descriptor open until the
    // child is started; the borrow ends with this call.
    let fd = unsafe { rustix::fd::BorrowedFd::borrow_raw(fd) };
    Ok(fcntl_setfd(fd, FdFlags::empty())?)
}

/// The child leads a session of its own, so that a signal reaches all of it; with
/// `terminal` its standard input becomes the controlling terminal.
pub fn lead_session(command: &mut Command, terminal: bool) {
    let prepare = move || {
        setsid()?;
        if terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls
    // (setsid, ioctl) and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// A CPU set for one thread of another process.
pub fn pin_thread(tid: i32, cpus: &[u32]) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize) {
        // The set has room for the kernel's usual 1024.
        if cpu < rustix::thread::CpuSet::MAX_CPU {
            set.set(cpu);
        }
    }
    Ok(rustix::thread::sched_setaffinity(Pid::from_raw(tid), &set)?)
}

/// A network interface of this (guest) machine.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Interface {
    pub fn from_name(name: &str) -> io::Result<Self> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut field = [0; libc::IFNAMSIZ];
        for (to, from) in field.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        Ok(Interface {
            socket,
            name: field,
        })
    }

    pub fn set_address(&self, address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_addr = socket_address(address);
        self.ioctl(libc::SIOCSIFADDR, &mut request)?;
        request.ifr_ifru.ifru_addr = socket_address(mask);
        self.ioctl(libc::SIOCSIFNETMASK, &mut request)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "both flags are among the lower seven bits"
    )]
    pub fn bring_up(&self) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        self.ioctl(libc::SIOCSIFFLAGS, &mut request)
    }

    fn request(&self) -> libc::ifreq {
        libc::ifreq {
            ifr_name: self.name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_ifindex: 0 },
        }
    }

    fn ioctl(&self, number: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the socket is open, and these requests read one ifreq, which
        // lives until the call returns.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), number, request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the number of the family is 2"
)]
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let inet = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.octets()),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: both are plain data of 16 bytes, and the kernel reads a sockaddr of
    // family AF_INET as a sockaddr_in.
    unsafe { std::mem::transmute(inet) }
}
