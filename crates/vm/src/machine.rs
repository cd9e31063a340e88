//! A running QEMU: its process, its console and its channels. It ends with the
//! object, and with this program however that ends.

use super::architecture::Architecture;
use super::console::Console;
use super::failure::{io, unmet_error};
use super::launch::Launch;
use super::qemu::{CommandLine, Descriptors};
use super::qmp::Monitor;
use super::sys;
use crate::VmError;
use confine::Confinement;
use doors::started::tool_command;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io::PipeReader;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// A QEMU that was killed has this long to be gone.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A QEMU that runs one guest. Dropping it ends the guest.
#[derive(Debug)]
pub struct Machine {
    /// Text that the guest printed on its console.
    pub console: Console,
    process: OwnedFd,
    pid: u32,
    end: Arc<End>,
    monitor: Mutex<Monitor>,
    /// Files that console and agent write into, in virtual time.
    files: Option<Files>,
}

/// Ends of a guest that only writes.
#[derive(Debug)]
struct Files {
    console: Mutex<File>,
    agent: Mutex<File>,
}

/// The host ends of the guest's channels.
#[derive(Debug)]
pub(crate) struct Channels {
    pub control: UnixStream,
    pub agent: UnixStream,
}

/// End of QEMU, once it has ended.
#[derive(Debug, Default)]
struct End {
    how: Mutex<Option<String>>,
    changed: Condvar,
}

impl Machine {
    /// Start QEMU; `line.descriptors` and what is shared are filled in here.
    pub(crate) fn start(
        mut line: CommandLine,
        launch: &Launch,
    ) -> Result<(Self, Channels), VmError> {
        let pair = || UnixStream::pair().map_err(io("create", Path::new("a socket pair")));
        let (console, monitor, control, agent) = (pair()?, pair()?, pair()?, pair()?);
        let image = line.root.image().map(open_image).transpose()?;
        let memory = line.incoming.as_deref().map(feed).transpose()?;
        // It has no name that QEMU could open, whoever it runs as.
        let is_own = line.virtual_time.is_some();
        let initramfs = is_own.then(|| open_image(&line.initramfs)).transpose()?;
        let files = match is_own {
            true => Some((output_file()?, output_file()?)),
            false => None,
        };
        let fd = |socket: &UnixStream, file: Option<&File>| {
            file.map_or(socket.as_raw_fd(), AsRawFd::as_raw_fd)
        };
        line.descriptors = Descriptors {
            console: fd(&console.1, files.as_ref().map(|((_, end), _)| end)),
            monitor: monitor.1.as_raw_fd(),
            control: control.1.as_raw_fd(),
            agent: fd(&agent.1, files.as_ref().map(|(_, (_, end))| end)),
            image: image.as_ref().map(AsRawFd::as_raw_fd),
            memory: memory.as_ref().map(AsRawFd::as_raw_fd),
            initramfs: initramfs.as_ref().map(AsRawFd::as_raw_fd),
        };
        line.shared = launch.confinement.exported_path().to_owned();
        let end = Arc::new(End::default());
        let (pid, process) = start_warden(line, launch.clone(), end.clone())?;
        let log = Console::default();
        log.follow(console.0);
        let machine = Machine {
            console: log,
            process,
            pid,
            end,
            monitor: Mutex::new(Monitor::new(monitor.0)),
            files: files.map(|((console, _), (agent, _))| Files {
                console: Mutex::new(console),
                agent: Mutex::new(agent),
            }),
        };
        let channels = Channels {
            control: control.0,
            agent: agent.0,
        };
        Ok((machine, channels))
    }

    /// Adds what the guest has printed since the last call, where its console is a file.
    pub(crate) fn follow_console(&self) -> std::io::Result<()> {
        if let Some(files) = &self.files {
            self.console.add_bytes(&rest_of(&files.console)?);
        }
        Ok(())
    }

    /// Bytes that the agent has written since the last call, where it writes into a file.
    pub(crate) fn read_written(&self) -> std::io::Result<Vec<u8>> {
        let files = self.files.as_ref();
        files.map_or(Ok(Vec::new()), |files| rest_of(&files.agent))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// End of QEMU in words; `None` while it runs.
    pub(crate) fn end_reason(&self) -> Option<String> {
        self.end.lock().clone()
    }

    pub(crate) fn wait_for_end(&self, limit: Duration) -> Option<String> {
        let how = self.end.lock();
        let waited = self
            .end
            .changed
            .wait_timeout_while(how, limit, |how| how.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// The monitor, for one user at a time.
    pub(crate) fn monitor(&self) -> std::io::Result<MutexGuard<'_, Monitor>> {
        let mut guard = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        guard.connect()?;
        Ok(guard)
    }

    /// State of QEMU and of each CPU, for a guest that does not answer: whether it runs, and where.
    pub fn state(&self) -> String {
        let asked = self.monitor().and_then(|mut monitor| monitor.state());
        asked.unwrap_or_else(|error| format!("QEMU does not answer either: {error}"))
    }

    /// End it; nothing in it is worth a clean shutdown.
    pub(crate) fn kill_qemu(&self) {
        // It may be gone already, which is what is wanted.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        self.wait_for_end(END_LIMIT);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill_qemu();
    }
}

impl End {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, how: String) {
        *self.lock() = Some(how);
        self.changed.notify_all();
    }
}

/// Whoever QEMU runs as: who starts it may read the image.
fn open_image(path: &Path) -> Result<File, VmError> {
    File::open(path).map_err(io("open", path))
}

/// More than any trial leaves.
const MOST_WRITTEN: u64 = 512 << 20;

fn rest_of(file: &Mutex<File>) -> std::io::Result<Vec<u8>> {
    let file = file.lock().unwrap_or_else(PoisonError::into_inner);
    doors::read::stream_bytes(&*file, MOST_WRITTEN)
}

/// A file in memory: an end to read from, and one that QEMU writes to.
fn output_file() -> Result<(File, File), VmError> {
    use rustix::fs::{MemfdFlags, memfd_create};
    let failed = |e| io("make", Path::new("a file for a guest"))(e);
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    // Each end has a position of its own.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let end = File::options().write(true).open(path).map_err(failed)?;
    Ok((file.into(), end))
}

/// The memory of a saved guest, through a pipe. QEMU opens no file of its own for it.
fn feed(path: &Path) -> Result<PipeReader, VmError> {
    let memory = doors::read::open_file(path).map_err(io("open", path))?;
    let (reader, mut writer) = std::io::pipe().map_err(io("create", Path::new("a pipe")))?;
    // QEMU says itself when the memory is not whole.
    std::thread::spawn(move || doors::read::copy_within(memory, &mut writer, u64::MAX));
    Ok(reader)
}

fn spawn(line: &CommandLine, confinement: &Confinement) -> std::io::Result<Child> {
    let mut command = tool_command(line.architecture.qemu);
    command
        .args(line.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let confined = confinement.apply_to(&mut command)?;
    sys::bind_to_parent(&mut command, line.descriptors.raw_fds());
    confined.spawn(command)
}

/// The thread that calls, in sched_setaffinity(2).
const THIS_THREAD: i32 = 0;

/// QEMU is bound to the thread that starts it, so that thread lives as long as QEMU.
fn start_warden(
    line: CommandLine,
    launch: Launch,
    end: Arc<End>,
) -> Result<(u32, OwnedFd), VmError> {
    let architecture = line.architecture;
    let (tell, started) = mpsc::channel();
    std::thread::spawn(move || {
        // Its threads inherit that, so that also a guest that boots keeps off the CPUs of others.
        let pinned = match &launch.cpus[..] {
            [] => Ok(()),
            cpus => sys::pin_thread(THIS_THREAD, cpus),
        };
        let child = pinned.and_then(|()| spawn(&line, &launch.confinement));
        let child = child.and_then(|child| Ok((pidfd(&child)?, child)));
        match child {
            Err(e) => drop(tell.send(Err(e))),
            Ok((fd, child)) => {
                let _ = tell.send(Ok((child.id(), fd)));
                end.set(wait(child));
            }
        }
    });
    let started = started
        .recv()
        .unwrap_or_else(|e| Err(std::io::Error::other(e)));
    started.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => not_installed(architecture),
        _ => io("start", Path::new(architecture.qemu))(e),
    })
}

pub(crate) fn not_installed(qemu: &Architecture) -> VmError {
    unmet_error(
        qemu.qemu,
        "it is not installed, and the target vm runs in it",
        &format!("install the package {}", qemu.qemu_package),
    )
}

fn pidfd(child: &Child) -> std::io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// `exit status: 1: qemu-system-x86_64: …`.
fn wait(mut child: Child) -> String {
    let errors = child.stderr.take().map(first_words).unwrap_or_default();
    match child.wait() {
        Err(e) => format!("QEMU cannot be waited for: {e}"),
        Ok(status) => match errors.trim() {
            "" => format!("QEMU ended with {status}"),
            errors => format!("QEMU ended with {status}: {errors}"),
        },
    }
}

/// A guest can make QEMU complain without end.
fn first_words(errors: ChildStderr) -> String {
    const KEPT: u64 = 16 * 1024;
    let mut errors = errors;
    let kept = doors::read::start_of(&mut errors, KEPT);
    // What cannot be read is not there.
    let _ = doors::read::discard_rest(errors);
    String::from_utf8_lossy(&kept).into_owned()
}
