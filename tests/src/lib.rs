//! Helpers that tests share: the path of the binary, one run at a time, programs that they
//! write, and an sshd.

#![allow(clippy::disallowed_methods)]

mod cable;
mod container;
mod disk;
mod machine;
mod slurm;
mod sshd;
mod terminal;
mod turn;

pub use cable::Cable;
pub use container::{Container, Image, own_containers};
pub use disk::SmallDisk;
pub use machine::Machine;
pub use slurm::Cluster;
pub use sshd::Sshd;
pub use terminal::Terminal;
pub use turn::{Turn, alone, beside_others, with_lock_of_runs};

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The schedlab binary that this `cargo test` built, beside the test's own.
pub fn schedlab() -> PathBuf {
    let mut dir = std::env::current_exe().expect("a test has a path");
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    let program = dir.join("schedlab");
    assert!(
        program.exists(),
        "{} is missing; run the tests with --workspace, or build it with: cargo build -p schedlab",
        program.display()
    );
    program
}

/// A program of this name on PATH, or where servers are, which is not on the PATH of everybody.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(usual);
    places.find_map(|directory| Some(directory.join(name)).filter(|program| program.is_file()))
}

/// Says why a test, or a part of it, did not run. `make test` prints all of this again at
/// its end, since the harness swallows what a passed test printed. As root on a Debian it fails
/// unless `tests/may-be-skipped` lists the reason (`scripts/skipped`).
#[track_caller]
#[expect(clippy::print_stdout, reason = "the harness shows it beside the test")]
pub fn skipped(why: impl std::fmt::Display) {
    println!("skipped: {why}");
    let place = std::panic::Location::caller().file();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    // One line, whatever the reason is.
    let why = why.to_string();
    let words: Vec<&str> = why.split_whitespace().collect();
    let line = format!("{place}: {test}: {}\n", words.join(" "));
    add_line("SCHEDLAB_SKIPPED", &line);
}

/// Adds to the file that a variable names, if there is one.
fn add_line(variable: &str, line: &str) {
    let Some(path) = std::env::var_os(variable) else {
        return;
    };
    let file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the file that the variable names is writable");
}

/// Why guests cannot be tested here, if so.
pub fn no_guests() -> Option<&'static str> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let missing = !qemu.is_ok_and(|o| o.status.success());
    missing.then_some("qemu-system-x86_64 is not installed")
}

/// A program that `make test` built below sched/.
pub fn sched_program(name: &str) -> Option<PathBuf> {
    let sched = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sched/target");
    let builds = std::fs::read_dir(sched).ok()?.flatten().map(|e| e.path());
    let mut programs = builds.map(|dir| dir.join("debug").join(name));
    programs.find(|p| p.exists())?.canonicalize().ok()
}

/// A temporary tree of `(path below the root, text)`, for what reads the kernel's files.
pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (path, text) in files {
        let path = root.path().join(path);
        let directory = path.parent().expect("it is below the root");
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    root
}

/// Write a program, by a process of its own: if this one had the file open for writing
/// while another test forks, the kernel would refuse to start the program (ETXTBSY).
pub fn write_program(path: &Path, contents: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut stdin = shell.stdin.take().expect("a pipe");
    stdin.write_all(contents.as_ref()).expect("all is written");
    drop(stdin);
    assert!(shell.wait().expect("the shell ends").success());
}

/// schedlab with its own state directory, so that tests never meet a user's journal.
#[derive(Debug)]
pub struct Bench {
    /// Working directory of the runs, removed with the bench.
    pub dir: tempfile::TempDir,
    /// Place of the lock of its runs, where that is not the one of the machine.
    lock: Option<tempfile::TempDir>,
    /// The place of the test among those without a turn.
    _commands: Option<turn::Commands>,
}

impl Default for Bench {
    fn default() -> Self {
        Bench {
            _commands: turn::Commands::wait_for_few(),
            dir: tempfile::tempdir().expect("a temporary directory"),
            lock: (!turn::has_lock_of_runs())
                .then(|| tempfile::tempdir().expect("a temporary directory")),
        }
    }
}

impl Bench {
    /// Path of a file or directory below the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command `schedlab ARGS…` in the working directory, without colours.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(schedlab());
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("SCHEDLAB_STATE_DIR", self.path("state"))
            .env("NO_COLOR", "1");
        if let Some(lock) = &self.lock {
            command.env("SCHEDLAB_TEST_LOCK", lock.path());
        }
        command
    }

    /// Waits until a process has made this file, and fails where it ends without.
    #[track_caller]
    pub fn wait_for_file(&self, child: &mut Child, name: &str) {
        while !self.path(name).exists() {
            let ended = child.try_wait().expect("it is asked");
            assert!(ended.is_none(), "{name} is not there: {ended:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Neither a folder nor a process is left of what ran here.
    #[track_caller]
    pub fn expect_nothing_left(&self) {
        let folders = std::fs::read_dir(self.path("state/folders"));
        assert_eq!(folders.map_or(0, Iterator::count), 0, "a folder is left");
        let state = self.path("state").display().to_string();
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let ours = processes.filter(|process| {
            let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ).contains(&state)
        });
        assert_eq!(ours.count(), 0, "a process is left");
    }

    /// Output of `schedlab ARGS…`, whatever its exit code.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("schedlab starts")
    }

    /// Write an experiment file and give its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a writable directory");
        path.display().to_string()
    }
}

/// Text on standard output as it was printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Text on standard error, on one line: messages are wrapped for people.
pub fn stderr(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let words = text.split_whitespace().filter(|w| *w != "│");
    words.collect::<Vec<_>>().join(" ")
}

/// Panics with everything that was said unless the exit code is this one.
#[track_caller]
pub fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout:\n{}\nstderr:\n{}",
        stdout(output),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Makes the mounts of a new mount namespace private, whatever they were before. In a chroot whose
/// root is no mount unshare(1) cannot do it, since `/` is none there: nsenter(1) goes to the root of
/// the namespace first. Else a mount below a shared one would be seen by the whole machine.
const MAKE_PRIVATE: &str = "nsenter --mount=/proc/self/ns/mnt mount --make-rprivate / || exit 9\n";

/// A shell in a mount namespace of its own, also in a chroot: nobody else sees what `script` mounts.
/// `options` are more of unshare(1), and arguments that are added are those of the script.
pub fn shell_with_own_mounts(options: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "unchanged"]);
    command.args(options);
    command.args(["sh", "-c", &format!("{MAKE_PRIVATE}{script}")]);
    command
}

/// True if [`shell_with_own_mounts`] works here.
#[track_caller]
pub fn own_mounts_or_skip() -> bool {
    let tried = shell_with_own_mounts(&[], "true").output();
    let why = match &tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skipped(format!("no mounts of its own: {why}"));
    false
}

/// True if python3, which serves as the application of a test, is there.
#[track_caller]
pub fn python_or_skip() -> bool {
    let python = Command::new("python3").arg("-V").output();
    let is_there = python.is_ok_and(|output| output.status.success());
    if !is_there {
        skipped("python3 is not installed");
    }
    is_there
}

/// Names of cgroups of schedlab that are there, where it makes groups with a weight or a quota.
pub fn own_cgroups() -> Vec<String> {
    let entries = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("schedlab-")).collect()
}

/// Those that nobody is there for: groups of an agent that runs belong to a test beside this one.
pub fn left_cgroups() -> Vec<String> {
    let is_left = |name: &String| {
        let pid = name.split('-').nth(1).unwrap_or_default();
        !Path::new("/proc").join(pid).join("status").exists()
    };
    own_cgroups().into_iter().filter(is_left).collect()
}

/// True if the tests run as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}
