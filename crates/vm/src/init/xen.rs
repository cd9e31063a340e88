//! The first steps of dom0: the toolstack is made callable, and its daemons are started.
//!
//! The toolstack is Debian's, unpacked in the host's cache. It runs with the loader and the
//! libraries of its own suite, so the host may be any distribution.

use super::super::frame::XenSetup;
use super::super::hypervisor::{first_in, toolstack};
use super::{Failure, at, log};
use doors::started::tool_at;
use rustix::mount::{MountFlags, mount, mount_bind};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Directory of the scripts that call the toolstack, in PATH.
const PROGRAMS: &str = "/run/schedlab/xen";
const XENFS: &str = "/proc/xen";
/// Directories that the packages would have made.
const DIRECTORIES: [&str; 7] = [
    "/etc/xen",
    "/run/xen",
    "/run/xenstored",
    "/run/lock",
    "/var/lib/xen",
    "/var/lib/xenstored",
    "/var/log/xen",
];
/// Directories of libraries in Debian's packages, before and after the merge of / and /usr.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Makes this guest a dom0 that can be managed, and adds its programs to PATH.
pub fn start(
    setup: &XenSetup,
    release: &str,
    environment: &mut BTreeMap<String, String>,
) -> Result<(), Failure> {
    mount("xenfs", XENFS, "xenfs", MountFlags::empty(), c"").map_err(|e| {
        let step = at("mount xenfs (is Xen below this kernel?)");
        step(e.into())
    })?;
    for directory in DIRECTORIES {
        fs::create_dir_all(directory).map_err(at(directory))?;
    }
    // A root of packed files has none, and the toolstack goes by this name.
    if !Path::new("/var/run").exists() {
        symlink("/run", "/var/run").map_err(at("/var/run"))?;
    }
    // Without it, xl complains at each call.
    File::create("/etc/xen/xl.conf").map_err(at("/etc/xen/xl.conf"))?;
    let tools = Tools::of(&setup.tools)?;
    tools.write_scripts().map_err(at(PROGRAMS))?;
    let path = environment.entry("PATH".to_owned()).or_default();
    *path = format!("{PROGRAMS}:{path}");
    show(setup, release);
    tools.run("xenstored", &["--pid-file", "/run/xen/xenstored.pid"])?;
    tools.run("xen-init-dom0", &[])?;
    tools.run("xenconsoled", &["--pid-file", "/run/xen/xenconsoled.pid"])
}

/// Files below /boot, as a Debian dom0 has them: the kernel for guests, and what Xen was built
/// with.
fn show(setup: &XenSetup, release: &str) {
    let kernel = format!("/boot/vmlinuz-{release}");
    let shown = fs::create_dir_all("/boot")
        .and_then(|()| File::create(&kernel).map(drop))
        .and_then(|()| Ok(mount_bind(&setup.kernel, &kernel)?));
    let is_config = |file: &str| file.starts_with("xen-") && file.ends_with(".config");
    let config = first_in(&setup.tools.join("boot"), is_config);
    let copied = config.map_or(Ok(()), |from| {
        let to = Path::new("/boot").join(from.file_name().unwrap_or_default());
        fs::copy(&from, to).map(drop)
    });
    for (what, done) in [
        (kernel.as_str(), shown),
        ("the configuration of Xen", copied),
    ] {
        if let Err(e) = done {
            log(&format!("{what}: {e}"));
        }
    }
}

/// The unpacked toolstack.
struct Tools {
    /// Directories of programs, all of which are called.
    programs: Vec<PathBuf>,
    loader: PathBuf,
    /// For `--library-path`.
    libraries: String,
}

impl Tools {
    fn of(dir: &Path) -> Result<Self, Failure> {
        let lacks = |what: &str| Failure(format!("{} has no {what}", dir.display()));
        let libraries = LIBRARIES.map(|path| dir.join(path));
        let mut loaders = libraries.iter().map(|path| path.join(LOADER));
        let list: Vec<String> = libraries.iter().map(|p| p.display().to_string()).collect();
        Ok(Tools {
            programs: vec![
                toolstack(dir).ok_or_else(|| lacks("toolstack"))?,
                dir.join("usr/bin"),
            ],
            loader: loaders
                .find(|path| path.is_file())
                .ok_or_else(|| lacks(LOADER))?,
            libraries: list.join(":"),
        })
    }

    /// A script for each program, which starts it with its own loader.
    fn write_scripts(&self) -> io::Result<()> {
        fs::create_dir_all(PROGRAMS)?;
        for program in [
            "xl",
            "xenstored",
            "xenconsoled",
            "xen-init-dom0",
            "xenstore-read",
        ] {
            let mut paths = self.programs.iter().map(|dir| dir.join(program));
            let found = paths.find(|path| path.is_file());
            let path = found.ok_or_else(|| io::Error::other(format!("no {program}")))?;
            // The name tells one program which of several it is.
            let text = format!(
                "#!/bin/sh\nexec '{}' --argv0 {program} --library-path '{}' '{}' \"$@\"\n",
                self.loader.display(),
                self.libraries,
                path.display()
            );
            let script = Path::new(PROGRAMS).join(program);
            fs::write(&script, text)?;
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Runs a program to its end; a daemon ends when it is in the background.
    fn run(&self, program: &str, args: &[&str]) -> Result<(), Failure> {
        let failed = |why: String| Failure(format!("{program}: {why}"));
        let output = tool_at(&Path::new(PROGRAMS).join(program))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(super::serve::console())
            .status();
        match output {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("{status}; its words are on the console"))),
            Err(e) => Err(failed(e.to_string())),
        }
    }
}
