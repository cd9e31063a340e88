//! Start a program as another user, and in a view of this machine's files that holds
//! what it needs and not what is private.
//!
//! Two mechanisms, each for what the other cannot: root gives the program mounts of its
//! own (mount_namespaces(7)), where what is hidden is an empty directory and what is
//! shown is there although it lies below a directory that the user may not enter.
//! Everybody can restrict it with Landlock (landlock(7)). All is done in the child
//! between fork and exec, so no helper program is needed.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod child;
mod landlock;
mod sys;
mod user;
mod view;

pub use landlock::Restriction;
pub use user::{User, holds_a_home};
pub use view::{Step, View};

use child::Ops;
use std::env;
use std::ffi::CString;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The rights and the view of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Whom it becomes; only root can become somebody else.
    pub user: Option<User>,
    /// Files that it sees.
    pub view: View,
    /// Show the view by mounts, which only root can.
    pub mounts: bool,
    /// A copy of the mounted view, for others than the program itself.
    pub export: Option<Export>,
    /// Devices that this machine keeps from the user, in a directory that the view hides. With mounts
    /// the program finds nodes of its own there; where they cannot be made, none.
    pub own_devices: Vec<PathBuf>,
    /// It sees no process but its own, and none of them outlives it. With mounts only.
    pub own_processes: bool,
    /// It only reads: its mounts are read-only, and Landlock restricts it where the
    /// kernel has that.
    pub restriction: Option<Restriction>,
}

/// Files that the program serves to somebody else, who is to see less than it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Below a directory that the view hides.
    pub at: PathBuf,
    /// Directories that the view hides, and the program sees all the same.
    pub kept: Vec<PathBuf>,
}

impl Confinement {
    /// Path of the view that is for others.
    pub fn exported_path(&self) -> &Path {
        match &self.export {
            Some(export) if self.mounts => &export.at,
            _ => Path::new("/"),
        }
    }

    /// Make a command start so. What is prepared for its child after this runs as the
    /// user, and sees the view.
    pub fn apply_to(&self, command: &mut Command) -> io::Result<Applied> {
        let mut ops = Ops::default();
        let mut devices = Vec::new();
        if self.mounts {
            ops.mount_view(&self.view, self.export.as_ref())?;
            devices = self.make_devices(&mut ops)?;
            if self.own_processes {
                ops.list.push(child::Op::OwnProcesses);
            }
            ops.work_in(&working_directory(command)?)?;
            let read_only = self.restriction.is_some().then_some(child::Op::ReadOnly);
            ops.list.extend(read_only);
        }
        if let Some(restriction) = &self.restriction {
            let ruleset = landlock::make_ruleset(&self.view, restriction);
            let ruleset = ruleset.map_err(|e| io::Error::other(format!("Landlock: {e}")))?;
            let restrict = |ruleset| child::Op::Restrict { ruleset, devices };
            ops.list.extend(ruleset.map(restrict));
        }
        if let Some(user) = &self.user {
            ops.become_user(user);
        }
        if self.mounts && self.own_processes {
            ops.list.push(child::Op::EndWithParent);
        }
        let steps = ops.list.iter().map(child::Op::describe).collect();
        let (told, mut tell) = io::pipe()?;
        let closure = ops.into_closure(move |step| drop(tell.write(&step.to_ne_bytes())));
        sys::before_exec(command, closure);
        Ok(Applied { told, steps })
    }

    /// Paths of the devices for which there is a place.
    fn make_devices(&self, ops: &mut Ops) -> io::Result<Vec<CString>> {
        let mut made = Vec::new();
        for path in &self.own_devices {
            if let Some(user) = &self.user
                && ops.own_device(&self.view, user, path)?
            {
                made.push(CString::new(path.as_os_str().as_bytes())?);
            }
        }
        Ok(made)
    }

    /// Start the program. An error names the step that failed.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.apply_to(&mut command)?.spawn(command)
    }

    /// True if something keeps the program from what its view hides.
    pub fn can_hide(&self) -> bool {
        self.mounts || self.restriction.is_some() && landlock::is_there()
    }

    /// True if the program sees this file or directory and its user may read it. The path has no
    /// link in it. Where the user is who asks, only opening it tells about rights.
    pub fn may_read(&self, path: &Path) -> bool {
        const READ: u32 = 4;
        const SEARCH: u32 = 1;
        if !self.view.is_visible(path) {
            return false;
        }
        let Some(user) = &self.user else {
            return true;
        };
        // A mount leads past the directories above it.
        let mounted = self.view.shown_by(path).filter(|_| self.mounts);
        let from = mounted.unwrap_or(Path::new("/"));
        let mut above = path.ancestors().skip(1).filter(|dir| dir.starts_with(from));
        above.all(|dir| user.can_access(SEARCH, dir)) && user.can_access(READ, path)
    }

    /// True if the program can open this file for reading and writing.
    #[expect(clippy::disallowed_methods, reason = "the door is built on this crate")]
    pub fn can_use(&self, device: &Path) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", ": <> \"$1\"", "sh"]).arg(device);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        let status = self.spawn(command).and_then(|mut child| child.wait());
        status.is_ok_and(|status| status.success())
    }

    /// Starts a program like this, to see that it works here.
    #[expect(clippy::disallowed_methods, reason = "the door is built on this crate")]
    pub fn try_out(&self) -> io::Result<()> {
        let mut command = Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.spawn(command)?.wait().map(drop)
    }
}

/// Directory in which the command runs.
fn working_directory(command: &Command) -> io::Result<PathBuf> {
    let own = env::current_dir()?;
    Ok(command
        .get_current_dir()
        .map_or(own.clone(), |dir| own.join(dir)))
}

/// The pipe that tells which step failed in the child.
#[derive(Debug)]
pub struct Applied {
    told: PipeReader,
    steps: Vec<String>,
}

impl Applied {
    /// Start the command that this was made with.
    pub fn spawn(self, mut command: Command) -> io::Result<Child> {
        let child = command.spawn();
        // Our end of the pipe for writing goes with the closure.
        drop(command);
        child.map_err(|e| match failed_step(self.told, &self.steps) {
            Some(step) => io::Error::new(e.kind(), format!("{step}: {e}")),
            None => e,
        })
    }
}

fn failed_step(mut told: PipeReader, steps: &[String]) -> Option<&String> {
    let mut step = [0; 4];
    told.read_exact(&mut step).ok()?;
    steps.get(u32::from_ne_bytes(step) as usize)
}
