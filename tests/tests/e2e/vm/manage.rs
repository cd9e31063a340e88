//! Guests in the background: snapshots, images, ports.

use super::guests::{KERNEL, fact, image, trials};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout};

/// Guests in the background of one test, and its snapshot, which are gone after it.
struct Background<'a> {
    bench: &'a Bench,
    snapshot: String,
}

impl<'a> Background<'a> {
    fn new(bench: &'a Bench) -> Self {
        Background {
            bench,
            snapshot: format!("test-{}", std::process::id()),
        }
    }

    fn vm(&self, args: &[&str]) -> Output {
        let mut command = self.bench.command(&["vm"]);
        command.args(args);
        let output = command.env("XDG_RUNTIME_DIR", self.bench.dir.path());
        output.output().expect("schedlab starts")
    }

    /// Standard output of what must succeed.
    fn said(&self, args: &[&str]) -> String {
        let output = self.vm(args);
        expect_code(&output, 0);
        stdout(&output)
    }

    fn sh(&self, guest: &str, script: &str) -> String {
        self.said(&["exec", "--name", guest, "/bin/busybox", "sh", "-c", script])
    }
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        for guest in ["one", "two"] {
            self.vm(&["stop", "--name", guest]);
        }
        self.vm(&["snapshot", "delete", &self.snapshot]);
    }
}

#[test]
fn a_snapshot_goes_on_where_it_was_taken() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    if let Some(why) = image(&bench, &["busybox"]) {
        return tests::skipped(why);
    }
    let lab = Background::new(&bench);
    let saved = lab.snapshot.as_str();
    let start = ["start", "--name", "one", "--memory", "512M"];
    // A relative path must mean the same image later, from any directory.
    lab.said(&[&start[..], &["--root", "image:image.squashfs"]].concat());
    lab.sh("one", "echo before > /note");
    lab.said(&["snapshot", "create", saved, "--name", "one"]);
    lab.sh("one", "echo after > /note");
    assert_eq!(lab.sh("one", "cat /note"), "after\n", "the guest goes on");

    let twice = lab.vm(&["snapshot", "create", saved, "--name", "one"]);
    expect_code(&twice, 3);
    assert!(stderr(&twice).contains("it exists"), "{}", stderr(&twice));

    let list: serde_json::Value =
        serde_json::from_str(&lab.said(&["snapshot", "list", "--format", "json"])).expect("JSON");
    let ours = list.as_array().expect("a list").iter();
    let ours: Vec<_> = ours.filter(|s| s["name"] == saved).collect();
    assert_eq!(ours.len(), 1);
    let image = bench.path("image.squashfs").canonicalize().expect("there");
    assert_eq!(ours[0]["root"], format!("image:{}", image.display()));
    assert!(
        ours[0]["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 1 << 20)
    );

    lab.said(&["snapshot", "restore", saved, "--name", "two"]);
    assert_eq!(lab.sh("two", "cat /note"), "before\n");
    lab.said(&["stop", "--name", "one"]);
    a_keeper_that_is_killed_while_it_saves_leaves_no_half(&lab);
    trials_go_on_from_what_was_saved_by_hand(&lab);

    // One byte of the memory, with the size and the time that it had.
    let memory = PathBuf::from(ours[0]["path"].as_str().expect("a path")).join("memory");
    let file = File::options().write(true).open(&memory).expect("there");
    let time = file.metadata().and_then(|found| found.modified());
    file.write_at(b"!", 1 << 20).expect("written");
    file.set_modified(time.expect("a time")).expect("set");
    let changed = lab.vm(&["snapshot", "restore", saved]);
    expect_code(&changed, 3);
    let said = stderr(&changed);
    assert!(said.contains("its memory was saved as"), "{said}");
    assert!(said.contains("schedlab vm snapshot delete"), "{said}");

    lab.said(&["snapshot", "remove", saved]);
    let gone = lab.vm(&["snapshot", "restore", saved]);
    expect_code(&gone, 3);
    assert!(stderr(&gone).contains("no such snapshot"));
}

/// The keeper of the guest two is killed as soon as it writes.
fn a_keeper_that_is_killed_while_it_saves_leaves_no_half(lab: &Background) {
    let listed = || -> Vec<serde_json::Value> {
        serde_json::from_str(&lab.said(&["snapshot", "list", "--format", "json"])).expect("JSON")
    };
    let status = lab.said(&["status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let keeper = status[0]["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    let keeper = keeper.and_then(Pid::from_raw).expect("a process");
    let half = format!("{}-half", lab.snapshot);
    let path = listed()[0]["path"].as_str().map(PathBuf::from);
    let directory = path
        .and_then(|path| Some(path.parent()?.to_owned()))
        .expect("a path");
    let before = entries(&directory);
    std::thread::scope(|threads| {
        let create = threads.spawn(|| lab.vm(&["snapshot", "create", &half, "--name", "two"]));
        while entries(&directory) == before && !create.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(keeper, Signal::KILL).expect("it runs");
    });
    for snapshot in listed() {
        assert!(snapshot["problem"].is_null(), "{snapshot}");
    }
    lab.vm(&["snapshot", "delete", &half]);
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

/// A trial in the guest that was saved by hand, which had no agent, and refusals of other guests.
fn trials_go_on_from_what_was_saved_by_hand(lab: &Background) {
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"512M\"\nroot = \"image:image.squashfs\"\n\
         reset = {{ snapshot = \"{}\" }}\n[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"command\"\n\
         command = [\"/bin/busybox\", \"cat\", \"/note\"]\n[stop]\nmin-blocks = 1\nmax-blocks = 1\n",
        lab.snapshot
    );
    let other = text.replace("512M", "768M");
    let other = lab
        .bench
        .run(&["check", &lab.bench.file("other.toml", &other)]);
    expect_code(&other, 3);
    let said = stderr(&other);
    let expected = "its memory size is 536870912 bytes, not 805306368 bytes";
    assert!(said.contains(expected), "{said}");
    let file = lab.bench.file("by-hand.toml", &text);
    let planned = stdout(&lab.bench.run(&["plan", &file]));
    let expected = format!("goes on from the snapshot {} of one", lab.snapshot);
    assert!(planned.contains(&expected), "{planned}");
    expect_code(&lab.bench.run(&["run", &file, "-o", "out"]), 0);
    let stored = &trials(lab.bench)[0];
    assert!(stored.trial.is_ok(), "{:?}", stored.trial.result.state);
    let text = std::fs::read_to_string(stored.dir.join("stdout.log")).expect("kept");
    assert_eq!(text, "before\n");
    let found = &fact(&stored.trial.result, "guest goes on from").found;
    assert!(
        found.starts_with(&format!("the snapshot {} (", lab.snapshot)),
        "{found}"
    );
}

#[test]
fn a_guest_over_the_hosts_files_has_its_ports_and_cannot_be_saved() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let lab = Background::new(&bench);
    let forward = format!("{}:7000", free_port());
    let start = ["start", "--name", "one", "--memory", "512M", "--forward"];
    lab.said(&[&start[..], &[&forward]].concat());

    let answer = std::thread::scope(|threads| {
        let port = forward.split(':').next().and_then(|p| p.parse().ok());
        let guest = "echo from the guest | timeout 60 busybox nc -l -p 7000";
        threads.spawn(|| lab.vm(&["exec", "--name", "one", "sh", "-c", guest]));
        read_from(port.expect("a port"))
    });
    assert_eq!(answer, "from the guest\n");
    let taken = lab.vm(&["start", "--name", "two", "--forward", &forward]);
    expect_code(&taken, 3);
    assert!(
        stderr(&taken).contains("cannot be bound"),
        "{}",
        stderr(&taken)
    );

    let refused = lab.vm(&["snapshot", "create", &lab.snapshot, "--name", "one"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("--root image:PATH"), "{said}");
    let going_on = lab.said(&["exec", "--name", "one", "echo", "still", "here"]);
    assert_eq!(going_on, "still here\n");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

/// QEMU accepts before the guest listens, and then closes: try until there is an answer.
fn read_from(port: u16) -> String {
    let limit = Instant::now() + Duration::from_secs(60);
    let mut text = String::new();
    while text.is_empty() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(200));
        if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            let _ = stream.read_to_string(&mut text);
        }
    }
    text
}
