//! Runs that nobody watches: notices to a command, a webhook and by mail, and the units of a
//! service.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tests::{Bench, beside_others, expect_code, skipped, stderr, stdout, write_program};

const RUN: [&str; 9] = [
    "run",
    "-a",
    "default",
    "-a",
    "nice=5",
    "--max-blocks",
    "1",
    "-o",
    "out",
];

fn run(bench: &Bench, notify: &[&str], command: &[&str]) -> std::process::Output {
    let _turn = beside_others();
    let notify = notify.iter().flat_map(|to| ["--notify", to]);
    let mut args: Vec<&str> = RUN.into_iter().chain(notify).collect();
    args.push("--");
    args.extend(command);
    bench.run(&args)
}

#[test]
fn a_command_is_told_of_start_trouble_and_end() {
    let bench = Bench::default();
    run(&bench, &["exec:cat >> told; echo >> told"], &["false"]);
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    let told: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<&str> = told
        .iter()
        .map(|notice| notice["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["start", "trouble", "end"], "{told:?}");
    assert_eq!(told[0]["directory"], "out");
    let trouble = told[1]["text"].as_str().unwrap();
    assert!(
        trouble.contains("failed") && trouble.contains("exit status 1"),
        "{trouble}"
    );
}

#[test]
fn a_webhook_gets_json_and_its_address_is_in_no_result() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed");
    }
    let bench = Bench::default();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a-secret", server.local_addr().unwrap());
    let served = thread::spawn(move || {
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            bodies.push(serde_json::from_slice::<Value>(&body).unwrap());
        }
        bodies
    });
    std::fs::write(bench.path("to"), format!("# who is told\n{url}\n")).unwrap();
    let output = run(&bench, &["@to"], &["true"]);
    expect_code(&output, 0);
    let bodies = served.join().unwrap();
    assert_eq!(
        (&bodies[0]["event"], &bodies[1]["event"]),
        (&"start".into(), &"end".into())
    );
    // The conclusion is told.
    assert!(
        bodies[1]["text"].as_str().unwrap().contains("nice=5"),
        "{bodies:?}"
    );
    let found = Command::new("grep")
        .args(["-r", "a-secret", "out"])
        .current_dir(&bench.dir)
        .output();
    assert!(found.unwrap().stdout.is_empty());
}

#[test]
fn mail_goes_to_sendmail_and_a_notice_that_fails_ends_no_run() {
    let bench = Bench::default();
    let bin = bench.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let mail = bench.path("mail");
    let sendmail = format!("#!/bin/sh\ncat >> {}\n", mail.display());
    write_program(&bin.join("sendmail"), sendmail);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let _turn = beside_others();
    let mut args = RUN.to_vec();
    args.extend([
        "--notify",
        "mailto:night@example.com",
        "--notify",
        "exec:exit 3",
        "--",
        "true",
    ]);
    let output = bench.command(&args).env("PATH", path).output().unwrap();
    expect_code(&output, 0);
    let said = stderr(&output);
    assert!(
        said.contains("the notice of the start was not sent by command: exit status: 3"),
        "{said}"
    );
    let mail = std::fs::read_to_string(mail).unwrap();
    assert_eq!(mail.matches("To: night@example.com").count(), 2, "{mail}");
    assert!(
        mail.contains("Subject: schedlab") && mail.contains("Results  out"),
        "{mail}"
    );
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_runs() {
    let bench = Bench::default();
    let output = run(&bench, &["me@example.com"], &["true"]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(
        said.contains("`me@example.com` is no address") && said.contains("mailto:"),
        "{said}"
    );
    assert!(!bench.path("out").exists());
}

const EXPERIMENT: &str = r#"
name = "night of 5%"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "wakeup"
"#;

#[test]
fn the_units_of_a_service_are_those_that_systemd_takes() {
    let bench = Bench::default();
    bench.file("e.toml", EXPERIMENT);
    let args = [
        "service",
        "install",
        "e.toml",
        "--every",
        "night",
        "--dry-run",
    ];
    let output = bench.run(&[&args[..], &["--notify", "exec:echo \"done\" 100%"]].concat());
    expect_code(&output, 0);
    let said = stdout(&output);
    let file = bench.path("e.toml").display().to_string();
    assert!(
        said.contains(&format!(
            "\"run\" \"{file}\" \"--wait\" \"--history\" \"--notify\""
        )),
        "{said}"
    );
    let confirmed = bench.run(&[&args[..], &["--confirm", "30m", "--store", "there"]].concat());
    let store = bench.path("there").display().to_string();
    let wanted = format!("\"--history={store}\" \"--confirm\" \"30m\"");
    assert!(
        stdout(&confirmed).contains(&wanted),
        "{}",
        stdout(&confirmed)
    );
    let without = bench.run(&[&args[..], &["--no-history"]].concat());
    assert!(!stdout(&without).contains("--history"));
    expect_code(&bench.run(&[&args[..], &["--confirm", "long"]].concat()), 2);
    let notify = r#""--notify" "exec:echo \"done\" 100%%""#;
    assert!(said.contains(notify), "{said}");
    assert!(said.contains("OnCalendar=*-*-* 01:30:00"), "{said}");
    assert!(
        said.contains("Description=schedlab: night of 5%%"),
        "{said}"
    );
    let units: Vec<&str> = said.split("# /etc/systemd/system/").skip(1).collect();
    let files: Vec<_> = units
        .iter()
        .map(|unit| unit.split_once('\n').unwrap())
        .collect();
    for (name, text) in &files {
        bench.file(name, text);
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .args(&names)
        .current_dir(&bench.dir)
        .output();
    match verified {
        Ok(output) => expect_code(&output, 0),
        Err(_) => skipped("systemd-analyze is not installed"),
    }
}

/// Who cleans up old results must not take the journal with them.
#[test]
fn results_of_a_service_and_of_restarts_are_not_beside_the_journal() {
    let bench = Bench::default();
    let file = bench.file("e.toml", EXPERIMENT);
    let state = bench.path("state").display().to_string();
    let service = bench.run(&["service", "install", "e.toml", "--dry-run"]);
    let start = bench.run(&["boot", "start", &file, "--dry-run"]);
    for output in [service, start] {
        expect_code(&output, 0);
        let said = stdout(&output);
        assert!(said.contains(&format!("{state}-runs")), "{said}");
        assert!(!said.contains(&format!("{state}/")), "{said}");
    }
}

#[test]
fn a_service_of_a_wrong_experiment_or_with_an_open_secret_is_refused() {
    let bench = Bench::default();
    bench.file("wrong.toml", "name = 3\n");
    expect_code(
        &bench.run(&["service", "install", "wrong.toml", "--dry-run"]),
        2,
    );
    bench.file("e.toml", EXPERIMENT);
    let args = [
        "service",
        "install",
        "e.toml",
        "--dry-run",
        "--notify",
        "https://hook/secret",
    ];
    let output = bench.run(&args);
    // Exit code 3 where there is no curl.
    assert!(matches!(output.status.code(), Some(2 | 3)));
    expect_code(&bench.run(&["service", "remove", "nobody-has-this"]), 2);
}

#[test]
fn root_runs_no_experiment_at_night_that_others_may_write() {
    let bench = Bench::default();
    let file = PathBuf::from(bench.file("e.toml", EXPERIMENT));
    let install = ["service", "install", "e.toml", "--dry-run"];
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let refused = |says: &str| {
        let output = bench.run(&install);
        expect_code(&output, 3);
        let said = stderr(&output);
        assert!(
            said.contains(says) && said.contains("/etc/schedlab"),
            "{said}"
        );
        assert_eq!(stdout(&output), "");
    };
    expect_code(&bench.run(&install), 0);
    let file = bench.dir.path().join(file);
    mode(&file, 0o666);
    refused("may be written by all users");
    mode(&file, 0o644);
    mode(bench.dir.path(), 0o777);
    refused("may be written by all users");
    mode(bench.dir.path(), 0o755);
    // Commands of a file of addresses are run by root, too.
    let notify = bench.file("notify", "exec:true\n");
    mode(&bench.path("notify"), 0o666);
    let output = bench.run(&[&install[..], &["--notify", &format!("@{notify}")]].concat());
    expect_code(&output, 3);
    if tests::is_root() {
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        refused("belongs to another user");
    }
}

#[test]
fn a_run_across_boots_keeps_whose_directory_it_writes_to() {
    let bench = Bench::default();
    let text = EXPERIMENT.to_owned() + "[target]\nkind = \"local\"\nreboots = \"auto\"\n";
    let text = text.replace("[[arm]]\n", "[[arm]]\nkernel = \"6.1\"\n");
    let file = bench.file("e.toml", &text);
    let mut start = bench.command(&["boot", "start", &file, "--dry-run", "-o", "out"]);
    let output = start
        .env("SUDO_UID", "12345")
        .env("SUDO_GID", "123")
        .output();
    let output = output.unwrap();
    expect_code(&output, 0);
    let unit = stdout(&output);
    for line in [
        "Environment=\"SUDO_UID=12345\"",
        "Environment=\"SUDO_GID=123\"",
    ] {
        assert!(unit.contains(line), "{unit}");
    }
}

/// Answer to a program that asks over HTTP, once it holds this.
fn asked(address: &str, until: &str) -> String {
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let mut answer = String::new();
        if let Ok(mut stream) = std::net::TcpStream::connect(address) {
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            let _ = stream.read_to_string(&mut answer);
        }
        if answer.contains(until) {
            return answer;
        }
        assert!(std::time::Instant::now() < limit, "{answer}");
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Number in a line of `/proc/PID/status`: threads, or kibibytes.
fn status(pid: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Neither a header of many MiB nor hundreds of half requests take memory or threads of a run.
fn refuses_to_be_filled(address: &str, pid: u32) {
    let before = (status(pid, "Threads:"), status(pid, "VmHWM:"));
    let mut endless = std::net::TcpStream::connect(address).unwrap();
    let _ = endless.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
    let _ = endless.write_all(&vec![b'x'; 64 << 20]);
    let half: Vec<_> = (0..600)
        .map_while(|_| {
            std::net::TcpStream::connect_timeout(&address.parse().unwrap(), A_SECOND).ok()
        })
        .map(|mut stream| stream.write_all(b"GET /metrics HTTP/1.1\r\n"))
        .collect();
    assert!(half.len() > 100, "only {} connections", half.len());
    let after = (status(pid, "Threads:"), status(pid, "VmHWM:"));
    // A trial may just have started a thread or two.
    assert!(after.0 < before.0 + 10, "{before:?} {after:?}");
    assert!(after.1 < before.1 + (32 << 10), "{before:?} {after:?}");
}

const A_SECOND: std::time::Duration = std::time::Duration::from_secs(1);

#[test]
fn metrics_tell_of_a_run_while_it_goes_on() {
    let _turn = beside_others();
    let bench = Bench::default();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut run = bench
        .command(&[
            "run",
            "-a",
            "default",
            "-a",
            "batch",
            "--max-blocks",
            "40",
            "-o",
            "out",
            "--metrics",
            &address,
            "--",
            "sleep",
            "0.2",
        ])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let answer = asked(&address, "schedlab_verdict{");
    refuses_to_be_filled(&address, run.id());
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    for line in [
        "schedlab_trials_total{run=",
        "schedlab_elapsed_seconds{run=",
        "arm=\"batch\",metric=\"wall_time\"",
        "# TYPE schedlab_trials counter",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    let output = bench.run(&["run", "-a", "default", "--metrics", "nowhere", "--", "true"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("127.0.0.1:9464"),
        "{}",
        stderr(&output)
    );
}

/// A systemctl that writes down what it is asked, and how the units are at that time.
const SYSTEMCTL: &str =
    "#!/bin/sh\necho \"$@: $(ls /etc/systemd/system | tr '\\n' ' ')\" >> asked\n";

/// What schedlab says to these commands where systemd has booted the machine, in mounts of its
/// own: units go to an empty directory that nobody else sees.
fn with_systemd(bench: &Bench, commands: &str) -> String {
    let bin = bench.path("bin");
    std::fs::create_dir(&bin).unwrap();
    write_program(&bin.join("systemctl"), SYSTEMCTL);
    let script = format!(
        "set -e; mount -t tmpfs none /run; mkdir -p /run/systemd/system; \
         mount -t tmpfs none /etc/systemd/system; {commands}"
    );
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut unshare = tests::shell_with_own_mounts(&[], &script);
    unshare.arg(tests::schedlab()).current_dir(&bench.dir);
    let output = unshare
        .env("PATH", path)
        .env("SCHEDLAB_STATE_DIR", bench.path("state"))
        .output()
        .expect("unshare starts");
    expect_code(&output, 0);
    stdout(&output)
}

#[test]
fn a_service_is_installed_started_and_removed_and_its_units_are_those_that_were_shown() {
    if !tests::is_root() {
        return skipped("a unit of the machine needs root");
    }
    if !std::path::Path::new("/etc/systemd/system").is_dir() {
        return skipped("systemd is not installed");
    }
    if !tests::own_mounts_or_skip() {
        return;
    }
    let bench = Bench::default();
    bench.file("e.toml", EXPERIMENT);
    let install = "\"$0\" service install e.toml --every night --directory there";
    let units = "/etc/systemd/system/schedlab-night-of-5-";
    let said = with_systemd(
        &bench,
        &format!(
            "{install} --dry-run > shown; {install}; \
             for kind in service timer; do echo \"# {units}.$kind\"; cat {units}.$kind; echo; done \
             > written; \"$0\" service remove 'night of 5%'; ls /etc/systemd/system"
        ),
    );
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(read("written").trim(), read("shown").trim());
    assert!(bench.path("there").is_dir(), "where its results will be");
    let (service, timer) = ("schedlab-night-of-5-.service", "schedlab-night-of-5-.timer");
    let both = format!("{service} {timer} ");
    let asked = [
        format!("daemon-reload: {both}"),
        format!("enable --now {timer}: {both}"),
        format!("disable --now {timer}: {both}"),
        "daemon-reload: ".to_owned(),
    ];
    assert_eq!(read("asked").lines().collect::<Vec<_>>(), asked);
    assert!(said.contains("next time: systemctl list-timers"), "{said}");
    assert!(
        said.ends_with("is removed; its results are kept\n"),
        "{said}"
    );
}
