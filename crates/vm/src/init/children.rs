//! Children of init: started under the lock of the reaper, which hands their status to whom
//! it belongs.

use super::super::frame::Setup;
use doors::started::{Agreed, named_command};
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The port that frames to the host go through.
pub type Host = Arc<Mutex<File>>;

/// Children by process id; whoever starts one puts in where its status goes, under
/// the same lock, so that the reaper cannot be faster.
#[derive(Default)]
pub struct Children {
    waiting: Mutex<BTreeMap<i32, Sender<WaitStatus>>>,
    started: Condvar,
}

impl Children {
    pub fn start(
        &self,
        command: &mut Command,
        tell: Sender<WaitStatus>,
    ) -> std::io::Result<Started> {
        let mut waiting = lock(&self.waiting);
        let child = command.spawn()?;
        let pid = child.id() as i32;
        waiting.insert(pid, tell);
        self.started.notify_all();
        Ok(Started { pid, child })
    }

    /// Reap for ever: children of our own and what they leave to us.
    pub fn reap(&self) -> ! {
        // Looks first and reaps under the lock: a program that is not there ends within `spawn`,
        // which waits for it itself and panics where somebody else has reaped it.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::All, look) {
                Ok(_) => self.reap_one(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => self.sleep_until_started(),
            }
        }
    }

    fn reap_one(&self) {
        let mut waiting = lock(&self.waiting);
        if let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG)
            && let Some(tell) = waiting.remove(&pid.as_raw_nonzero().get())
        {
            let _ = tell.send(status);
        }
    }

    fn sleep_until_started(&self) {
        let waiting = lock(&self.waiting);
        drop(
            self.started
                .wait_while(waiting, |waiting| waiting.is_empty()),
        );
    }
}

/// A child whose status comes through the channel, never through `child.wait`.
pub struct Started {
    pub pid: i32,
    pub child: std::process::Child,
}

/// In the guest's environment and directory.
pub fn base_command(program: &str, setup: &Setup) -> Command {
    let mut command = named_command(program, Agreed::by_trial());
    command.env_clear().envs(&setup.environment);
    if setup.directory.is_dir() {
        command.current_dir(&setup.directory);
    }
    command
}

/// As a shell tells it.
pub fn exit_code(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    u8::try_from(code).unwrap_or(255)
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
