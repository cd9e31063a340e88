//! Arms for daemons that somebody else manages: a container of a real engine, and a unit of a real
//! systemd.

#![allow(clippy::unwrap_used)]

use crate::daemons::{CLIENT, LONG, expect_work_elsewhere, found, script};
use collect::sys::sched_getattr;
use model::readings;
use results::ResultSet;
use rustix::process::Pid;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tests::{Bench, Machine, expect_code, is_root, skipped, stdout, with_lock_of_runs};

/// The program of the daemon.
const NAME: &str = "lab-daemon";

/// An arm for the daemon beside one that leaves it alone.
const ARMS: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "calm"
to = TO
policy = { nice = 10 }
weight = 50
[[workload]]
name = "client"
kind = "command"
command = ["sh", "-c", "CLIENT"]
[stop]
min-blocks = 1
max-blocks = 1
"#;

/// The experiment of a daemon that works in this directory.
fn experiment(to: &str, place: &Path) -> String {
    let client = CLIENT.replace("/PLACE", &place.display().to_string());
    ARMS.replace("TO", to).replace("CLIENT", &client)
}

/// The arm was in force in the daemon, and only there.
fn look_at(results: &ResultSet) {
    assert_eq!(results.trials.len(), 2);
    assert_eq!(found(results, "calm", "nice"), ["10"]);
    assert_eq!(found(results, "calm", readings::WEIGHT), ["50"]);
    assert_eq!(found(results, "default", "nice"), [""; 0]);
    expect_work_elsewhere(results, NAME);
}

/// Script that runs a command where `/` is a mount, which runc wants and the root of a chroot is not. The mount is in
/// one that no other namespace sees.
const AS_A_MOUNT: &str = "mount -t tmpfs lab \"$0\"; mount --make-private \"$0\"; mkdir \"$0/root\"; \
                          mount --rbind / \"$0/root\"; exec chroot \"$0/root\" \"$@\"";

/// A container of Podman whose shell works for whoever asks it.
struct Container {
    name: String,
    id: String,
}

impl Container {
    /// The files of the container and its pipes are in this bench. Limits are given since Podman
    /// raises them otherwise, which needs CAP_SYS_RESOURCE.
    fn start(bench: &Bench) -> Self {
        let root = bench.path("root");
        for directory in ["bin", "proc", "sys", "dev", "tmp", "run", "etc", "lab"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let busybox = "/bin/busybox";
        std::fs::copy(busybox, root.join("bin/busybox")).unwrap();
        symlink("busybox", root.join("bin/sh")).unwrap();
        for pipe in ["requests", "answers"] {
            let made = Command::new("mkfifo").arg(bench.path(pipe)).status();
            assert!(made.unwrap().success());
        }
        tests::write_program(&bench.path(NAME), script(LONG));
        let mounts = bench.path("mounts");
        std::fs::create_dir(&mounts).unwrap();
        let name = format!("lab-{}", std::process::id());
        let volume = format!("{}:/lab", bench.dir.path().display());
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
            .args(["--volume", &volume, "--workdir=/lab", "--name", &name])
            .arg("--rootfs")
            .arg(root)
            .arg(format!("/lab/{NAME}"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let id = stdout(&output).trim().to_owned();
        Container { name, id }
    }

    /// Answer of Podman to a question about it.
    fn inspect(&self, what: &str) -> String {
        let asked = ["inspect", "--format", what, &self.name];
        stdout(&Command::new("podman").args(asked).output().unwrap())
            .trim()
            .to_owned()
    }

    /// Nice value of its first process, and the files of weights of its cgroup.
    fn state(&self) -> (i32, Vec<String>) {
        let pid: i32 = self.inspect("{{.State.Pid}}").parse().unwrap();
        let nice = sched_getattr(Pid::from_raw(pid).unwrap().as_raw_nonzero().get())
            .unwrap()
            .nice;
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        let groups = groups.lines().map(|line| line.splitn(3, ':').nth(2));
        let group = groups.flatten().find(|group| group.contains(&self.id));
        let group = group.unwrap().trim_start_matches('/').to_owned();
        let files = ["cpu.weight", "cpu/cpu.shares"].map(|file| match file.split_once('/') {
            None => format!("/sys/fs/cgroup/{group}/{file}"),
            Some((tree, file)) => format!("/sys/fs/cgroup/{tree}/{group}/{file}"),
        });
        let texts = files.iter().filter_map(|f| std::fs::read_to_string(f).ok());
        (nice, texts.collect())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new("podman")
            .args(["rm", "--force", "--time=0", &self.name])
            .output();
    }
}

#[test]
fn a_container_has_what_the_arm_says_by_its_name_and_by_its_id() {
    if !is_root() {
        return skipped("changing the processes of others needs root");
    }
    if ["podman", "runc"]
        .iter()
        .any(|n| tests::program(n).is_none())
    {
        return skipped("podman or runc is not installed");
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let container = Container::start(&bench);
    let before = container.state();
    for (out, called) in [
        ("by-name", &*container.name),
        ("by-id", &container.id[..12]),
    ] {
        let to = format!("{{ container = \"{called}\" }}");
        let file = bench.file("container.toml", &experiment(&to, bench.dir.path()));
        expect_code(&bench.run(&["run", &file, "-o", out, "--wait"]), 0);
        look_at(&ResultSet::read(&bench.path(out)).unwrap());
        assert_eq!(container.state(), before);
    }
}

#[test]
#[ignore = "a boot under emulation; make test-long runs it"]
fn a_unit_that_systemd_started_has_what_the_arm_says_over_ssh() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let bench = machine.bench();
    let daemon = bench.file(NAME, &script(LONG));
    machine.wait("mkdir -p /srv/lab && cd /srv/lab && mkfifo requests answers || true");
    machine.copy(daemon.as_ref(), &format!("/srv/lab/{NAME}"));
    machine.wait(&format!(
        "systemctl is-active lab || systemd-run --unit=lab --property=WorkingDirectory=/srv/lab \
         --property=CPUWeight=200 --nice=2 /srv/lab/{NAME}"
    ));
    let state = || {
        machine.wait(
            "ps -o ni= $(systemctl show --value --property=MainPID lab); \
             cat /sys/fs/cgroup/system.slice/lab.service/cpu.weight",
        )
    };
    let before = state();
    assert_eq!(before.split_whitespace().collect::<Vec<_>>(), ["2", "200"]);
    let text = machine.target() + &experiment("{ unit = \"lab\" }", "/srv/lab".as_ref());
    let file = bench.file("unit.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    look_at(&ResultSet::read(&bench.path("out")).unwrap());
    assert_eq!(state(), before);
    let absent = text.replace("\"lab\" }", "\"labb\" }");
    let output = bench.run(&["check", &bench.file("absent.toml", &absent), "--yes"]);
    expect_code(&output, 3);
    let said = tests::stderr(&output) + &stdout(&output);
    assert!(said.contains("unit labb has no cgroup"), "{said}");
}
