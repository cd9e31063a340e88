//! Files of this machine that a guest gets: those that an ordinary user may read, and nothing
//! that is private or the kernel's.

#![allow(clippy::disallowed_methods)]

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tests::{
    Bench, beside_others, expect_code, is_root, no_guests, stderr, stdout, with_lock_of_runs,
};

const KERNEL: &str = "debian:sid";

/// A guest in the background, started in a directory, which is ended with the test.
struct Lab<'a> {
    bench: &'a Bench,
    directory: PathBuf,
    /// Another user than the one who tests.
    user: Option<(&'a str, PathBuf)>,
}

impl<'a> Lab<'a> {
    fn new(bench: &'a Bench, directory: &Path) -> Self {
        Lab {
            bench,
            directory: directory.to_owned(),
            user: None,
        }
    }

    fn vm(&self, args: &[&str]) -> Output {
        let mut command = match &self.user {
            None => Command::new(tests::schedlab()),
            Some((user, program)) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", "nogroup", "--clear-groups"]);
                command.arg(program).env("HOME", self.bench.path("home"));
                command.env_remove("XDG_CACHE_HOME");
                command
            }
        };
        command.arg("vm").args(args).current_dir(&self.directory);
        let output = command.env("XDG_RUNTIME_DIR", self.bench.path("run"));
        output.output().expect("schedlab starts")
    }

    fn start(&self, more: &[&str]) {
        std::fs::create_dir_all(self.bench.path("run")).expect("made");
        let start = ["start", "--kernel", KERNEL, "--memory", "512M"];
        expect_code(&self.vm(&[&start[..], more].concat()), 0);
        // A second look at the root, below what the guest mounted over it.
        assert_eq!(
            self.sh("mkdir /x && mount --bind / /x && echo looks"),
            "looks\n"
        );
    }

    /// Standard output of a script in the guest, however it ends.
    fn sh(&self, script: &str) -> String {
        stdout(&self.vm(&["exec", "sh", "-c", script]))
    }

    /// QEMU below the keeper.
    fn qemu(&self) -> u32 {
        let status = stdout(&self.vm(&["status", "--format", "json"]));
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let keeper = status[0]["pid"].as_u64().expect("a guest runs");
        qemu_of(u32::try_from(keeper).expect("a process id")).expect("QEMU runs")
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        self.vm(&["stop"]);
    }
}

fn qemu_of(parent: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?;
    let lists = tasks.flatten().map(|task| task.path().join("children"));
    let lists = lists.filter_map(|path| std::fs::read_to_string(path).ok());
    let children: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|p| p.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    // Not one that is only asked for its version.
    let is_qemu = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.starts_with("qemu-system") && line.contains("\0-kernel\0"))
    };
    children.into_iter().find(is_qemu)
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
    set_mode(path, mode);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

/// A field of `/proc/PID/status`.
fn status_of(pid: u32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix(&format!("{field}:")));
    line.expect("the field").trim().to_owned()
}

#[test]
fn a_guest_of_root_has_an_ordinary_users_view_and_what_its_work_needs() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root's guests have another user's view");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    // As a project below /root: a directory that only root may enter.
    let private = bench.path("private");
    write(&private.join("project/data"), "of the project", 0o644);
    write(&private.join("secret"), "secret", 0o644);
    write(&bench.path("for root"), "secret", 0o600);
    set_mode(&private, 0o700);
    let lab = Lab::new(&bench, &private.join("project"));
    lab.start(&[]);

    assert_eq!(lab.sh("cat data"), "of the project");
    assert_eq!(lab.sh("touch new && echo written"), "written\n");
    assert!(
        !private.join("project/new").exists(),
        "in the guest's memory"
    );
    let empty = "for d in proc sys run root; do ls -A /x/$d; done; echo end";
    let of_root = lab.sh(empty);
    assert!(
        !of_root.contains("secret") && !of_root.contains("kcore"),
        "{of_root}"
    );
    for path in [
        "/x/proc/version",
        "/x/proc/kcore",
        "/x/sys/kernel",
        "/x/dev/vda",
        "/x/dev/mem",
    ] {
        assert_eq!(
            lab.sh(&format!("test -e {path} || echo hidden")),
            "hidden\n",
            "{path}"
        );
    }
    let secret = private.join("secret").display().to_string();
    let for_root = bench.path("for root").display().to_string();
    for path in ["/etc/shadow", "/etc/gshadow", &secret, &for_root] {
        assert_eq!(lab.sh(&format!("cat '{path}'")), "", "{path}");
    }

    let qemu = lab.qemu();
    assert!(!status_of(qemu, "Uid").starts_with("0\t"), "QEMU is root");
    assert_eq!(status_of(qemu, "CapEff"), "0000000000000000");
    assert_eq!(status_of(qemu, "NoNewPrivs"), "1");
    assert_eq!(status_of(qemu, "Seccomp"), "2", "QEMU's own sandbox");
    let session = std::fs::read_to_string(format!("/proc/{qemu}/stat")).expect("it runs");
    let session = session
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(
        session,
        Some(qemu.to_string().as_str()),
        "a session of its own"
    );
}

/// Standard output of a command in a guest in virtual time, which this program boots.
fn in_virtual_time(bench: &Bench, command: &str, more: &str) -> String {
    let command: Vec<String> = command.split(' ').map(|word| format!("{word:?}")).collect();
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nclock = \"virtual\"\nmemory = \"768M\"\n{more}\n\
         [[arm]]\nname = \"default\"\n\
         [[workload]]\nkind = \"command\"\ncommand = [{}]\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\n",
        command.join(", ")
    );
    let file = bench.file("virtual.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out", "-q"]);
    let log = std::fs::read_dir(bench.path("out/trials")).ok();
    let trial = log.and_then(|mut trials| trials.next()?.ok());
    let trial = trial.unwrap_or_else(|| panic!("no trial: {}", stderr(&output)));
    std::fs::read_to_string(trial.path().join("stdout.log")).unwrap_or_default()
}

#[test]
fn a_guest_in_virtual_time_has_the_same_view_as_one_with_the_hosts_clock() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root's guests have another user's view");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    set_mode(bench.dir.path(), 0o755);
    write(&bench.path("data/open"), "open", 0o644);
    write(&bench.path("data/for root"), "secret", 0o600);
    write(&bench.path("data/closed/below"), "secret", 0o644);
    set_mode(&bench.path("data/closed"), 0o700);
    write(&bench.path("data/setuid"), "x", 0o4755);
    let data = bench.path("data").display().to_string();
    let listed = in_virtual_time(
        &bench,
        &format!("find {data} /etc -type f -printf %m:%p\\n"),
        "",
    );
    let has = |line: &str| listed.lines().any(|l| l == line);
    assert!(has(&format!("644:{data}/open")), "{listed}");
    assert!(has(&format!("4755:{data}/setuid")), "modes stay: {listed}");
    for hidden in ["for root", "below", "/etc/shadow", "/etc/gshadow", "_key\n"] {
        assert!(!listed.contains(hidden), "{hidden}: {listed}");
    }
}

#[test]
fn what_is_private_is_shown_when_it_is_asked_for() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root's guests have another user's view");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let private = bench.path("private");
    write(&private.join("data/figures"), "figures", 0o644);
    write(&private.join("other"), "other", 0o644);
    set_mode(&private, 0o700);
    let lab = Lab::new(&bench, bench.dir.path());
    let data = private.join("data").display().to_string();
    lab.start(&["--expose", &data]);
    assert_eq!(lab.sh(&format!("cat {data}/figures")), "figures");
    assert_eq!(lab.sh(&format!("cat {data}/../other")), "");
}

#[test]
fn a_guest_of_an_ordinary_user_sees_neither_their_processes_nor_their_keys() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root can become another user");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    // Nobody has a list of all names of secrets.
    let secrets = ["home/.ssh/id", "home/.vault-token", "home/notes/diary"];
    for secret in secrets.map(|name| bench.path(name)) {
        write(&secret, "secret", 0o600);
    }
    write(&bench.path("home/project/data"), "of the project", 0o644);
    std::fs::create_dir(bench.path("run")).expect("made");
    let chown = Command::new("chown")
        .args(["-R", "nobody"])
        .arg(bench.dir.path())
        .status();
    assert!(chown.is_ok_and(|s| s.success()));
    // The tree may stand below a directory that only root may enter.
    let program = bench.path("schedlab");
    tests::write_program(
        &program,
        std::fs::read(tests::schedlab()).expect("the program"),
    );
    let mut lab = Lab::new(&bench, &bench.path("home/project"));
    lab.user = Some(("nobody", program));
    lab.start(&[]);
    assert_eq!(lab.sh("cat data"), "of the project");
    for secret in secrets.map(|name| bench.path(name).display().to_string()) {
        assert_eq!(lab.sh(&format!("cat {secret}")), "", "{secret}");
    }
    let qemu = lab.qemu();
    let parent = status_of(qemu, "PPid");
    assert_eq!(
        lab.sh(&format!("cat /x/proc/{parent}/environ | wc -c")),
        "0\n"
    );
    assert_eq!(lab.sh("cat /x/proc/version"), "");
    assert_eq!(status_of(qemu, "Seccomp"), "2");
}

#[test]
fn a_file_that_the_guest_could_not_read_is_said_before_anything_starts() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root's guests have another user's view");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    write(&bench.path("work"), "#!/bin/sh\n", 0o700);
    let work = bench.path("work").display().to_string();
    let args = [
        "run", "-o", "out", "--vm", KERNEL, "-a", "default", "--", &work,
    ];
    let output = bench.run(&args);
    expect_code(&output, 3);
    let said = stderr(&output);
    assert!(
        said.contains("runs as the user nobody") && said.contains("chmod"),
        "{said}"
    );
    let output = bench
        .command(&args)
        .env("SCHEDLAB_GUEST_USER", "no-such-user")
        .output();
    let said = stderr(&output.expect("schedlab starts"));
    assert!(said.contains("there is no such user"), "{said}");
}

#[test]
fn a_file_that_a_guest_does_not_see_is_named_with_the_key_that_shows_it() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    set_mode(bench.dir.path(), 0o755);
    write(&bench.path("elsewhere/notes"), "notes", 0o644);
    let notes = bench.path("elsewhere/notes").display().to_string();
    let script = format!("#!/bin/sh\ncat {notes}\n");
    write(&bench.path("project/work.sh"), &script, 0o755);
    let run = |to: &str, more: &[&str]| {
        let args = ["run", "-o", to, "--vm", KERNEL, "-a", "default"];
        let args = [&args[..], more, &["--max-blocks", "1", "--", "./work.sh"]].concat();
        let mut command = bench.command(&args);
        command.current_dir(bench.path("project"));
        command.output().expect("schedlab starts")
    };
    let output = run("hidden", &[]);
    let said = stdout(&output) + &stderr(&output);
    let said: Vec<&str> = said.split_whitespace().collect();
    let said = said.join(" ");
    assert!(said.contains(&format!("expose = [\"{notes}\"]")), "{said}");
    let output = run("shown", &["--expose", &notes]);
    expect_code(&output, 0);
}

/// The device may be for root alone, and then QEMU, which is another user, finds one of its own. What
/// it does with it is another question, which the probe answers.
#[test]
fn kvm_is_not_kept_from_a_guest_of_root_by_the_mode_of_its_device() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root's guests are another user's");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let args = ["check", "--vm", KERNEL, "-a", "default", "--", "true"];
    let output = bench.run(&args);
    expect_code(&output, 0);
    let said = stdout(&output);
    let line = said
        .lines()
        .find(|line| line.starts_with("CPUs of the guest by "));
    let line = line.unwrap_or_else(|| panic!("nothing of its CPUs: {said}"));
    assert!(!line.contains("Permission denied"), "{line}");
    assert!(
        line.contains("by kvm: ") || line.contains("by tcg: "),
        "{line}"
    );
}

#[test]
fn in_a_container_that_may_not_mount_a_guest_boots_and_the_report_says_what_is_missing() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !is_root() {
        return tests::skipped("only root has rights to lose");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let mut run = Command::new("setpriv");
    run.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
    run.arg(tests::schedlab())
        .args(["run", "-o", "out", "--vm", KERNEL, "-a", "default"]);
    run.args(["--max-blocks", "1", "--", "true"])
        .current_dir(bench.dir.path());
    let output = run.env("SCHEDLAB_STATE_DIR", bench.path("state")).output();
    let output = output.expect("setpriv");
    expect_code(&output, 0);
    let said: Vec<String> = stdout(&output)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let said = said.join(" ");
    assert!(said.contains("less confined than it should be"), "{said}");
}

#[test]
fn an_image_with_another_file_behind_it_is_refused() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    let mut head = vec![0u8; 512];
    head[..4].copy_from_slice(b"QFI\xfb");
    head[7] = 3;
    head[15] = 112; // offset of the backing file's name
    head[19] = 11;
    head[112..123].copy_from_slice(b"/etc/shadow");
    std::fs::write(bench.path("evil.qcow2"), head).expect("written");
    let lab = Lab::new(&bench, bench.dir.path());
    let output = lab.vm(&["start", "--root", "image:evil.qcow2"]);
    expect_code(&output, 3);
    let said = stderr(&output);
    assert!(
        said.contains("has a backing file") && said.contains("img convert -O raw"),
        "{said}"
    );
}

#[test]
fn a_runtime_directory_of_another_user_is_left_alone() {
    if !is_root() {
        return tests::skipped("only root meets other users' directories this way");
    }
    let bench = Bench::default();
    let theirs = bench.path("theirs");
    for file in ["lock", "status.json", "socket", "precious"] {
        write(&bench.path("precious").join(file), "keep", 0o644);
    }
    std::fs::create_dir_all(theirs.join("schedlab/vm")).expect("made");
    symlink(bench.path("precious"), theirs.join("schedlab/vm/guest")).expect("linked");
    let chown = Command::new("chown")
        .args(["-hR", "nobody"])
        .arg(&theirs)
        .status();
    assert!(chown.is_ok_and(|s| s.success()));
    for args in [
        &["vm", "status"][..],
        &["vm", "exec", "--name", "guest", "true"],
    ] {
        let mut command = bench.command(args);
        command.env("XDG_RUNTIME_DIR", &theirs);
        command.env("SCHEDLAB_CACHE_DIR", bench.path("cache"));
        command.output().expect("schedlab starts");
    }
    let left = std::fs::read_dir(bench.path("precious"))
        .expect("there")
        .count();
    assert_eq!(left, 4);
}

/// Signal as a shell sends it: to the whole foreground process group.
#[test]
fn ctrl_c_while_a_guest_boots_ends_the_run_and_boots_no_other() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let args = [
        "run", "-o", "out", "--vm", KERNEL, "-a", "default", "--", "true",
    ];
    let mut run = bench.command(&args);
    run.process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut run: Child = run.spawn().expect("schedlab starts");
    let limit = Instant::now() + Duration::from_secs(300);
    // Downloads come before, and the question whether KVM works.
    while qemu_of(run.id()).is_none() {
        assert!(
            run.try_wait().expect("it can be asked").is_none(),
            "it ended before it booted"
        );
        assert!(Instant::now() < limit, "no guest ever came");
        std::thread::sleep(Duration::from_millis(20));
    }
    let group = Pid::from_raw(run.id() as i32).expect("a process id");
    kill_process_group(group, Signal::INT).expect("it runs");
    let output = run.wait_with_output().expect("it ends");
    expect_code(&output, 130);
    let said = stderr(&output);
    assert!(!said.contains("trying again"), "{said}");
    assert!(said.contains("Interrupted"), "{said}");
}
