//! One boot of another kernel that is installed on this machine: by kexec(8), GRUB or systemd-boot.
//!
//! The default of the boot loader is never changed. A kernel is booted once, with an argument that
//! makes a panic restart the machine, so whatever happens the boot after it is the machine's own.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod grub;
mod kexec;
mod loader_entry;
mod program;
mod record;
mod systemd_boot;

pub use record::{Asked, FRUITLESS, Record, RecordError, Up};

use doors::started::tool_command;
use model::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Argument by which a boot is known to be one of ours.
const MARK: &str = "schedlab.boot=once";
/// Arguments of a kernel that is booted once, so that what does not come up restarts. `panic` is in
/// seconds and rules the kernel as well as the first file system of Debian (kernel-parameters.txt,
/// initramfs-tools(7)); the first file system of others is dracut's (dracut.cmdline(7)), and the
/// last one is of systemd(1).
const ARGUMENTS: &str =
    "panic=10 rd.shell=0 rd.emergency=reboot systemd.crash_reboot=1 schedlab.boot=once";
/// Name of the one boot where a boot loader wants one.
const NAME: &str = "schedlab-once";

/// The way in which a kernel is booted once, as a person asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The first that works here: kexec, GRUB, systemd-boot.
    #[default]
    Auto,
    /// kexec(8): without firmware and boot loader.
    Kexec,
    /// An entry of GRUB for the next boot only.
    Grub,
    /// An entry of systemd-boot for the next boot only.
    SystemdBoot,
}

impl By {
    /// All, as they are written.
    pub const NAMES: [(&'static str, By); 4] = [
        ("auto", By::Auto),
        ("kexec", By::Kexec),
        ("grub", By::Grub),
        ("systemd-boot", By::SystemdBoot),
    ];
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, by)| by == self);
        f.write_str(name.map_or("auto", |(name, _)| name))
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, by)| *by).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            format!("`{text}` is no way to boot a kernel once: {names}")
        })
    }
}

/// A kernel that is installed here, and the way in which it is booted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    release: String,
    way: Way,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Kexec(kexec::Kexec),
    Grub(grub::Grub),
    SystemdBoot(systemd_boot::SystemdBoot),
}

impl Once {
    /// Looks for the kernel and a way to boot it. Nothing is changed.
    pub fn find(root: &Path, release: &str, by: By) -> Result<Self, Problem> {
        check_name(release).map_err(|what| problem(release, what, NAMES))?;
        if !root.join("run/systemd/system").is_dir() {
            let what = "this machine was not booted with systemd, which restarts it in order";
            return Err(problem(release, what.to_owned(), "use the target vm"));
        }
        let kexec = || kexec::Kexec::find(root, release).map(Way::Kexec);
        let grub = || grub::Grub::find(root, release).map(Way::Grub);
        let systemd_boot = || systemd_boot::SystemdBoot::find(root, release).map(Way::SystemdBoot);
        let way = match by {
            By::Kexec => kexec(),
            By::Grub => grub(),
            By::SystemdBoot => systemd_boot(),
            By::Auto => kexec().or_else(|first| {
                let others = grub().or_else(|grub| systemd_boot().map_err(|other| (grub, other)));
                others.map_err(|(grub, other)| format!("{first}; {grub}; {other}"))
            }),
        };
        let way = way.map_err(|what| problem(release, what, NAMES))?;
        let release = release.to_owned();
        Ok(Once { release, way })
    }

    /// The way in a word.
    pub fn way(&self) -> By {
        match self.way {
            Way::Kexec(_) => By::Kexec,
            Way::Grub(_) => By::Grub,
            Way::SystemdBoot(_) => By::SystemdBoot,
        }
    }

    /// Makes it the kernel of the next boot, and of that alone.
    pub fn prepare(&self) -> Result<(), Problem> {
        let prepared = match &self.way {
            Way::Kexec(kexec) => kexec.prepare(),
            Way::Grub(grub) => grub.prepare(),
            Way::SystemdBoot(systemd_boot) => systemd_boot.prepare(),
        };
        prepared.map_err(|what| {
            let stays = clear_prepared(Path::new("/")).err();
            let stays = stays.map_or_else(String::new, |stays| format!("; {}", stays.what));
            let what = what + &stays;
            problem(&self.release, what, "boot it once by hand to see why")
        })
    }
}

/// Restarts the machine, which boots what was prepared, or else its own kernel. It returns before
/// the machine goes down.
pub fn restart_machine(by: By) -> Result<(), Problem> {
    let verb = if by == By::Kexec { "kexec" } else { "reboot" };
    let restarted = program::run_program("systemctl", &["--no-block", verb]).map(drop);
    restarted.map_err(|what| Problem {
        object: "this machine".to_owned(),
        what,
        remedy: "restart it by hand".to_owned(),
    })
}

/// Is there something that starts at a boot and has not started yet?
pub fn is_starting() -> bool {
    // Its status is not 0 where a unit has failed, too.
    let state = doors::read::output_of(tool_command("systemctl").arg("is-system-running"));
    let state = state.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    matches!(
        state.as_deref().map(str::trim),
        Ok("initializing" | "starting")
    )
}

/// Waits until everything that starts at a boot has started, at most for a minute.
pub fn wait_for_services() {
    for _ in 0..60 {
        if !is_starting() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Is this a boot that was prepared here? The next one is the machine's own.
pub fn is_once(root: &Path) -> bool {
    let arguments = doors::read::kernel_text(root.join("proc/cmdline")).unwrap_or_default();
    arguments.split_whitespace().any(|word| word == MARK)
}

/// Takes back what [`Once::prepare`] left, after the boot or in place of it. It may be done again.
pub fn clear_prepared(root: &Path) -> Result<(), Problem> {
    let cleared = [
        grub::remove_entry(root),
        systemd_boot::remove_entry(root),
        kexec::unload_kernel(root),
    ];
    let failed: Vec<String> = cleared.into_iter().filter_map(Result::err).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Problem {
            object: "boot loader".to_owned(),
            what: failed.join("; "),
            remedy: format!("remove the entry {NAME} by hand"),
        }),
    }
}

/// Refuses what is no name of an installed kernel.
pub fn check_name(release: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "+-._~".contains(c);
    match !release.is_empty() && release.chars().all(is_good) && !release.starts_with(['-', '.']) {
        true => Ok(()),
        false => Err(format!(
            "`{release}` is no release of an installed kernel, such as 6.12.43+deb13-amd64"
        )),
    }
}

/// Release of the running kernel.
pub fn running_release() -> String {
    let names = rustix::system::uname();
    names.release().to_string_lossy().into_owned()
}

/// True for an argument that a kernel which is booted once has besides its own.
pub fn is_of_once(argument: &str) -> bool {
    ARGUMENTS.split(' ').any(|ours| ours == argument)
}

/// Releases of the kernels that are installed here, older ones first.
pub fn installed_releases(root: &Path) -> Vec<String> {
    let files = std::fs::read_dir(root.join("boot")).into_iter().flatten();
    let names = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned());
    let mut releases: Vec<String> = names
        .filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned))
        .collect();
    releases.sort_by(|one, other| model::compare_releases(one, other));
    releases
}

/// Name of this boot, another one after each (proc(5), random/boot_id).
pub fn boot_id(root: &Path) -> String {
    let path = root.join("proc/sys/kernel/random/boot_id");
    let text = doors::read::kernel_text(path).unwrap_or_default();
    text.trim().to_owned()
}

const NAMES: &str = "`ls /boot/vmlinuz-*` has the names of those that are installed";

fn problem(release: &str, what: String, remedy: &str) -> Problem {
    Problem {
        object: format!("kernel {release}"),
        what,
        remedy: remedy.to_owned(),
    }
}

/// The image of the kernel, and its first file system where it has one.
fn image(root: &Path, release: &str) -> Result<(PathBuf, Option<PathBuf>), String> {
    let boot = root.join("boot");
    let kernel = boot.join(format!("vmlinuz-{release}"));
    if !kernel.is_file() {
        return Err(format!("there is no /boot/vmlinuz-{release}"));
    }
    let names = [
        format!("initrd.img-{release}"),
        format!("initramfs-{release}.img"),
        format!("initrd-{release}"),
    ];
    let mut first = names.iter().map(|name| boot.join(name));
    Ok((kernel, first.find(|path| path.is_file())))
}

/// A file that may not be there. One that cannot be read is an error: it must not be replaced.
fn read_if_there(path: &Path) -> Result<String, String> {
    match doors::read::small_file_text(path) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(format!("read {}: {e}", path.display())),
    }
}

/// These arguments of a kernel with ours. What is behind ` -- ` is for the first process.
fn with_ours(arguments: &str) -> String {
    match arguments.split_once(" -- ") {
        Some((kernel, first)) => format!("{kernel} {ARGUMENTS} -- {first}"),
        None => format!("{} {ARGUMENTS}", arguments.trim_end()),
    }
}

/// Beginning of the names of files that are being written. A kill can leave one.
const PARTIAL: &str = ".schedlab-partial-";

/// Removes what a kill left of [`replace`].
fn remove_partials(directory: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_partial = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(PARTIAL);
    for entry in entries.filter(|entry| is_partial(&entry.file_name())) {
        let path = entry.path();
        doors::written::remove_file(&path)
            .map_err(|e| format!("remove {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Replaces a file in one step, with its mode; what was there stays until then.
#[expect(
    clippy::disallowed_methods,
    reason = "what is left of it is known by a prefix of its own"
)]
fn replace(path: &Path, text: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("write {}: {e}", path.display());
    let there = std::fs::canonicalize(path);
    let path = there.as_deref().unwrap_or(path);
    let directory = path.parent().unwrap_or(Path::new("/"));
    let partial = tempfile::Builder::new()
        .prefix(PARTIAL)
        .tempfile_in(directory);
    let mut file = partial.map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    if let Ok(before) = std::fs::metadata(path) {
        file.as_file()
            .set_permissions(before.permissions())
            .map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    let directory = std::fs::File::open(directory).map_err(failed)?;
    directory.sync_all().map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_kernel_is_named_by_its_release() {
        for good in ["6.1.0-50-amd64", "6.12.43+deb13-amd64", "6.9.0-rc1~x_y"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "debian:sid", "../x", "a b", "-x", "a\"b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_boot_of_ours_is_known_by_its_arguments() {
        let root = tempfile::tempdir().unwrap();
        assert!(ARGUMENTS.ends_with(MARK));
        std::fs::create_dir(root.path().join("proc")).unwrap();
        for (arguments, once) in [("ro quiet", false), (ARGUMENTS, true)] {
            std::fs::write(root.path().join("proc/cmdline"), arguments).unwrap();
            assert_eq!(is_once(root.path()), once);
        }
    }

    #[test]
    fn ways_are_read_as_they_are_written() {
        for (name, by) in By::NAMES {
            assert_eq!((name.parse(), by.to_string().as_str()), (Ok(by), name));
            assert_eq!(serde_json::to_value(by).unwrap(), name);
        }
        assert!("lilo".parse::<By>().unwrap_err().contains("systemd-boot"));
    }

    #[test]
    fn a_kernel_that_is_not_installed_is_named() {
        let root = tempfile::tempdir().unwrap();
        let why = |by| Once::find(root.path(), "6.1.0-9-amd64", by).unwrap_err();
        assert!(why(By::Auto).what.contains("systemd"));
        std::fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
        let what = why(By::Auto).what;
        assert!(what.contains("/boot/vmlinuz-6.1.0-9-amd64"), "{what}");
    }
}
