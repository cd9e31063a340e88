//! A container of the real Podman, whose files are made on the spot from a static busybox: no registry is
//! asked.

use crate::{Bench, skipped, stdout};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Script that runs a command where the root of the mount namespace is that of this process. Else what joins the
/// container later has the root outside of a chroot, and not that of the container. The mounts are in a namespace that
/// nobody else sees. nsenter(1) goes to its root first, since a chroot is none.
const AS_A_MOUNT: &str = r#"
nsenter --mount=/proc/self/ns/mnt mount --make-rprivate /
nsenter --mount=/proc/self/ns/mnt sh -ec '
  cd /
  mount --rbind "/proc/$0/root" "/proc/$0/root$1"
  cd "/proc/$0/root$1"
  pivot_root . .
  umount -l .
  shift
  exec chroot . "$@"' $$ "$0" "$@"
"#;
const BUSYBOX: &str = "/bin/busybox";
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A container that runs until this is dropped.
#[derive(Debug)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub id: String,
}

impl Container {
    /// True where containers can be had; else it is said why not.
    #[track_caller]
    pub fn is_possible_or_skip() -> bool {
        let missing = ["podman", "runc"]
            .iter()
            .any(|n| crate::program(n).is_none());
        if missing {
            skipped("podman or runc is not installed");
        }
        !missing
    }

    /// Starts one with these options of `podman run` and this command. Its files are in this bench. Limits
    /// are given since Podman raises them otherwise, which needs CAP_SYS_RESOURCE.
    pub fn start(bench: &Bench, options: &[&str], command: &[&str]) -> Self {
        let root = make_root(bench);
        let mounts = bench.path("mounts");
        std::fs::create_dir(&mounts).expect("a directory");
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("lab-{}-{number}", std::process::id());
        let output = Command::new("unshare")
            .args([
                "--mount",
                "--propagation=unchanged",
                "sh",
                "-ec",
                AS_A_MOUNT,
            ])
            .arg(&mounts)
            .args(["podman", "--runtime=runc", "--cgroup-manager=cgroupfs"])
            .args(["--events-backend=file", "run", "--detach", "--network=host"])
            .args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"])
            .args(["--name", &name])
            .args(options)
            .arg("--rootfs")
            .arg(root)
            .args(command)
            .output()
            .expect("unshare");
        assert!(output.status.success(), "{output:?}");
        let id = stdout(&output).trim().to_owned();
        Container { name, id }
    }

    /// Answer of Podman to a question about it.
    pub fn inspect(&self, what: &str) -> String {
        let asked = ["inspect", "--format", what, &self.name];
        stdout(&podman(&asked)).trim().to_owned()
    }

    /// Ends all its processes at once.
    pub fn kill(&self) {
        let output = podman(&["kill", &self.name]);
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = podman(&["rm", "--force", "--time=0", &self.name]);
    }
}

/// True where the root of this process is not that of the machine's first one, or cannot be compared with it.
pub fn is_in_a_chroot() -> bool {
    let place = |path| std::fs::metadata(path).map(|of| (of.dev(), of.ino())).ok();
    place("/") != place("/proc/1/root/")
}

/// The files of a system that has busybox and nothing else.
fn make_root(bench: &Bench) -> PathBuf {
    let root = bench.path("root");
    for directory in ["bin", "proc", "sys", "dev", "tmp", "run", "etc", "lab"] {
        std::fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    std::fs::copy(BUSYBOX, root.join("bin/busybox")).expect("a static busybox");
    let applets = Command::new(BUSYBOX).arg("--list").output();
    for applet in stdout(&applets.expect("busybox")).lines() {
        // It has itself in its list.
        let _ = symlink("busybox", root.join("bin").join(applet));
    }
    root
}

/// An image of busybox that Podman has until this is dropped.
#[derive(Debug)]
pub struct Image {
    /// Its name.
    pub name: String,
}

impl Image {
    /// True where Podman can make images; else it is said why not.
    #[track_caller]
    pub fn is_possible_or_skip() -> bool {
        if !Container::is_possible_or_skip() {
            return false;
        }
        let is_possible = !is_in_a_chroot();
        if !is_possible {
            skipped(
                "Podman makes no image in a chroot: it mounts its root anew, which is no mount there",
            );
        }
        is_possible
    }

    /// Makes one. Its files are in this bench.
    pub fn make(bench: &Bench) -> Self {
        let (root, tar) = (make_root(bench), bench.path("root.tar"));
        let mut command = Command::new("tar");
        let packed = command.arg("-cf").arg(&tar).arg("-C").arg(&root).arg(".");
        assert!(packed.status().expect("tar").success());
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("localhost/lab-{}-{number}:1", std::process::id());
        let imported = podman(&["import", &tar.display().to_string(), &name]);
        assert!(imported.status.success(), "{imported:?}");
        Image { name }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = podman(&["rmi", "--force", &self.name]);
    }
}

/// Names of the containers that Podman has, running or not, which schedlab made.
pub fn own_containers() -> Vec<String> {
    let listed = podman(&["ps", "--all", "--format", "{{.Names}}"]);
    let names = stdout(&listed)
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    names
        .into_iter()
        .filter(|name| name.starts_with("schedlab-"))
        .collect()
}

fn podman(args: &[&str]) -> Output {
    let output = Command::new("podman").args(args).output();
    output.expect("podman")
}
