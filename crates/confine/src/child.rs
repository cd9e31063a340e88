//! Steps of the child between fork and exec. All that it needs is made before the fork, so that
//! nothing is allocated here.

use crate::user::User;
use crate::view::{Step, View};
use crate::{Export, sys};
use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Mode, OFlags, chownat, mkdirat, mknodat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};
use rustix::process::{Gid, Signal, Uid, chdir, chroot, fchdir, set_parent_process_death_signal};
use rustix::thread::set_no_new_privs;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

const PRIVATE: MountPropagationFlags =
    MountPropagationFlags::PRIVATE.union(MountPropagationFlags::REC);
/// PATH_MAX has room for no more directories.
const DEEPEST_ROOT: u32 = 2048;

/// One thing to do, in the order of the list.
#[derive(Debug)]
pub enum Op {
    /// A mount namespace that nothing of the host's comes into or leaves.
    OwnMounts,
    /// Hold on to the mounts at and below a path, whatever is put over them later.
    Take {
        from: CString,
        tree: usize,
    },
    /// Put an empty directory over one, with options of tmpfs(5).
    Empty {
        at: CString,
        options: CString,
    },
    Directory(CString),
    File(CString),
    /// Put what was taken there.
    Place {
        tree: usize,
        at: CString,
    },
    /// The working directory by its path, as it is in the view; else the root.
    WorkIn(CString),
    /// A node of a device that is the user's, where the view has nothing.
    Device {
        at: CString,
        device: Dev,
        uid: Uid,
        gid: Gid,
    },
    /// A process that is the first one of its own process namespace, and proc(5) of that.
    OwnProcesses,
    /// It is killed when its parent ends, and all of its namespace with it. Whoever becomes another user
    /// forgets this, so that it comes last.
    EndWithParent,
    ReadOnly,
    Restrict {
        ruleset: OwnedFd,
        /// Devices that were made after the rules.
        devices: Vec<CString>,
    },
    Become {
        uid: Uid,
        gid: Gid,
        groups: Vec<Gid>,
    },
}

/// The operations in order, and how many trees they take.
#[derive(Debug, Default)]
pub struct Ops {
    pub list: Vec<Op>,
    trees: usize,
}

impl Ops {
    /// A mount namespace with only what the view shows, and with a copy of it.
    pub fn mount_view(&mut self, view: &View, export: Option<&Export>) -> io::Result<()> {
        self.list.push(Op::OwnMounts);
        let kept = export.map_or(&[][..], |export| &export.kept);
        let mut later = Vec::new();
        for step in view.steps() {
            let path = step.path();
            let at = c_path(path)?;
            match step {
                Step::Hide(path) if kept.contains(path) => {}
                Step::Hide(path) if path.is_dir() => later.push(empty(path)?),
                // A file gives way to an empty one.
                Step::Hide(_) => {
                    let tree = self.take(Path::new("/dev/null"))?;
                    later.push(Op::Place { tree, at });
                }
                Step::Show(_) => {
                    later.extend(directories_above(path)?);
                    let tree = self.take(path)?;
                    later.push(match path.is_dir() {
                        true => Op::Directory(at.clone()),
                        false => Op::File(at.clone()),
                    });
                    later.push(Op::Place { tree, at });
                }
            }
        }
        self.list.extend(later);
        export.map_or(Ok(()), |export| self.copy(export))
    }

    /// After all is hidden and shown.
    fn copy(&mut self, export: &Export) -> io::Result<()> {
        let tree = self.take(Path::new("/"))?;
        let at = c_path(&export.at)?;
        self.list.push(Op::Directory(at.clone()));
        self.list.push(Op::Place { tree, at });
        for path in &export.kept {
            let below = path.strip_prefix("/").unwrap_or(path);
            self.list.push(Op::Empty {
                at: c_path(&export.at.join(below))?,
                options: CString::new("mode=755")?,
            });
        }
        Ok(())
    }

    /// A node of this device that belongs to the user, where the view hides the machine's own. True
    /// if there is a place for it: a directory of this view alone, and not one of the machine.
    pub fn own_device(&mut self, view: &View, user: &User, path: &Path) -> io::Result<bool> {
        let hides = |step: &Step| matches!(step, Step::Hide(dir) if Some(&**dir) == path.parent());
        if !view.steps().iter().any(hides) || view.is_visible(path) {
            return Ok(false);
        }
        let found = fs::metadata(path)?;
        if !found.file_type().is_char_device() {
            return Ok(false);
        }
        self.list.push(Op::Device {
            at: c_path(path)?,
            device: found.rdev(),
            uid: Uid::from_raw(user.uid),
            gid: Gid::from_raw(user.gid),
        });
        Ok(true)
    }

    pub fn work_in(&mut self, directory: &Path) -> io::Result<()> {
        self.list.push(Op::WorkIn(c_path(directory)?));
        Ok(())
    }

    fn take(&mut self, from: &Path) -> io::Result<usize> {
        let (from, tree) = (c_path(from)?, self.trees);
        self.list.push(Op::Take { from, tree });
        self.trees += 1;
        Ok(tree)
    }

    pub fn become_user(&mut self, user: &User) {
        let groups = std::iter::once(&user.gid).chain(&user.groups);
        self.list.push(Op::Become {
            uid: Uid::from_raw(user.uid),
            gid: Gid::from_raw(user.gid),
            groups: groups.map(|gid| Gid::from_raw(*gid)).collect(),
        });
    }

    /// Work of the child; it tells `failed` which operation was the last.
    pub fn into_closure(
        self,
        mut failed: impl FnMut(u32) + Send + Sync + 'static,
    ) -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
        let mut trees: Vec<Option<OwnedFd>> = (0..self.trees).map(|_| None).collect();
        move || {
            for (index, op) in self.list.iter().enumerate() {
                let failed = |_: &io::Error| failed(u32::try_from(index).unwrap_or(u32::MAX));
                op.run(&mut trees).inspect_err(failed)?;
            }
            Ok(())
        }
    }
}

/// An empty directory in the place of this one, with its rights: `/tmp` stays for all. Others may
/// always look into it.
fn empty(directory: &Path) -> io::Result<Op> {
    const STICKY_AND_RIGHTS: u32 = 0o1777;
    const LOOKED_INTO: u32 = 0o755;
    let mode = fs::metadata(directory).map_or(0, |found| found.mode());
    let mode = mode & STICKY_AND_RIGHTS | LOOKED_INTO;
    Ok(Op::Empty {
        at: c_path(directory)?,
        options: CString::new(format!("mode={mode:o}"))?,
    })
}

/// Below a directory that was emptied there is nothing to put a tree on yet.
fn directories_above(path: &Path) -> io::Result<Vec<Op>> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.pop(); // the root
    let above = above.into_iter().rev();
    above.map(|dir| Ok(Op::Directory(c_path(dir)?))).collect()
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

impl Op {
    fn run(&self, trees: &mut [Option<OwnedFd>]) -> io::Result<()> {
        match self {
            Op::OwnMounts => own_mounts()?,
            Op::Take { from, tree } => trees[*tree] = Some(take(from)?),
            Op::Empty { at, options } => mount(
                "tmpfs",
                at.as_c_str(),
                "tmpfs",
                MountFlags::empty(),
                options.as_c_str(),
            )?,
            Op::Directory(at) => exists(mkdirat(CWD, at.as_c_str(), Mode::from_raw_mode(0o755)))?,
            Op::File(at) => {
                let new = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                exists(openat(CWD, at.as_c_str(), new, Mode::from_raw_mode(0o644)).map(drop))?;
            }
            Op::Place { tree, at } => place(trees[*tree].as_ref(), at)?,
            Op::Device {
                at,
                device,
                uid,
                gid,
            } => make_device(at, *device, *uid, *gid),
            Op::WorkIn(path) => chdir(path.as_c_str()).or_else(|_| chdir(c"/"))?,
            Op::OwnProcesses => own_processes()?,
            Op::EndWithParent => set_parent_process_death_signal(Some(Signal::KILL))?,
            // Linux before 5.12 cannot; the user may not write there anyway.
            Op::ReadOnly => drop(sys::make_all_read_only()),
            Op::Restrict { ruleset, devices } => {
                devices.iter().for_each(|path| allow(ruleset, path));
                set_no_new_privs(true)?;
                sys::restrict_self(ruleset)?;
            }
            Op::Become { uid, gid, groups } => {
                set_thread_groups(groups)?;
                set_thread_res_gid(*gid, *gid, *gid)?;
                set_thread_res_uid(*uid, *uid, *uid)?;
                set_no_new_privs(true)?;
            }
        }
        Ok(())
    }

    /// For the message of an error.
    pub fn describe(&self) -> String {
        let path = |path: &CStr| path.to_string_lossy().into_owned();
        match self {
            Op::OwnMounts => "give it mounts of its own".to_owned(),
            Op::Take { from, .. } => format!("show {}", path(from)),
            Op::Empty { at, .. } => format!("hide {}", path(at)),
            Op::Directory(at) | Op::File(at) | Op::Place { at, .. } => {
                format!("show or hide {}", path(at))
            }
            Op::WorkIn(directory) => format!("enter {}", path(directory)),
            Op::OwnProcesses => "give it processes of its own".to_owned(),
            Op::EndWithParent => "let it end with its parent".to_owned(),
            Op::ReadOnly => "make its files read-only".to_owned(),
            Op::Device { at, .. } => format!("make the device {}", path(at)),
            Op::Restrict { .. } => "restrict it with Landlock".to_owned(),
            Op::Become { uid, .. } => format!("make it the user {}", uid.as_raw()),
        }
    }
}

fn own_mounts() -> io::Result<()> {
    // What is made here is for the user to see.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    sys::own_mount_namespace()?;
    match mount_change(c"/", PRIVATE) {
        Err(Errno::INVAL) => make_root_a_mount(),
        done => Ok(done?),
    }
}

fn own_processes() -> io::Result<()> {
    sys::become_first_process()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", c"/proc", "proc", flags, None)?)
}

/// In a chroot(2) the root may be an ordinary directory. Then the mounts are made private
/// where the namespace has its root, which `..` leads to once this process has its root
/// below its working directory, and the directory becomes a mount, which is the root again.
fn make_root_a_mount() -> io::Result<()> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, c"/", how, Mode::empty())?;
    chroot(c"/dev")?;
    fchdir(&root)?;
    for _ in 0..DEEPEST_ROOT {
        chdir(c"..")?;
    }
    mount_change(c".", PRIVATE)?;
    fchdir(&root)?;
    chroot(c".")?;
    let tree = take(c"/")?;
    place(Some(&tree), c"/")?;
    fchdir(&tree)?;
    Ok(chroot(c".")?)
}

/// Best effort: a container may not be allowed to make devices, and then there is none.
fn make_device(at: &CStr, device: Dev, uid: Uid, gid: Gid) {
    let mode = Mode::RUSR | Mode::WUSR;
    if mknodat(CWD, at, FileType::CharacterDevice, mode, device).is_err() {
        return;
    }
    if chownat(CWD, at, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).is_err() {
        let _ = unlinkat(CWD, at, AtFlags::empty());
    }
}

/// A device that could not be made needs no rule.
fn allow(ruleset: &OwnedFd, path: &CStr) {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(node) = openat(CWD, path, how, Mode::empty()) {
        let _ = sys::allow_device(ruleset, &node);
    }
}

fn take(from: &CStr) -> io::Result<OwnedFd> {
    let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(
        CWD,
        from,
        copy | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )?)
}

fn place(tree: Option<&OwnedFd>, at: &CStr) -> io::Result<()> {
    let tree = tree.ok_or(io::ErrorKind::NotFound)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(tree, c"", CWD, at, flags)?)
}

fn exists(made: Result<(), Errno>) -> io::Result<()> {
    match made {
        Err(Errno::EXIST) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
