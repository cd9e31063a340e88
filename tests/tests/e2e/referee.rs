//! The referee: `schedlab propose`, its ledger, and `schedlab mcp` with a raw client and with the official
//! one of Python.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tests::{Bench, Sshd, alone, beside_others, expect_code, schedlab, skipped, stderr, stdout};

/// Turns of 50 ms under a known handicap.
fn propose(bench: &Bench, baseline: &str, arm: &str, more: &[&str]) -> std::process::Output {
    let words = [
        "propose",
        "-a",
        baseline,
        "-a",
        arm,
        "-w",
        "wakeup:1",
        "--in-place",
        "always",
        "--turn",
        "50ms",
        "--duration",
        "2s",
        "-q",
        "--format",
        "json",
    ];
    bench.run(&[&words, more].concat())
}

fn ledger(bench: &Bench) -> Value {
    let output = bench.run(&["propose", "--ledger", "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("valid JSON")
}

#[test]
fn an_improvement_is_accepted_and_paid_back_and_what_changes_nothing_is_not() {
    let _turn = alone();
    let bench = Bench::default();
    let better = propose(
        &bench,
        "handicap=200%",
        "default",
        &["-o", "one", "--budget", "40s"],
    );
    expect_code(&better, 0);
    let ruling: Value = serde_json::from_str(&stdout(&better)).expect("valid JSON");
    assert_eq!(ruling["accepted"], true, "{ruling}");
    assert_eq!(ruling["ledger"]["left"], 0.05, "{ruling}");
    assert!(
        ruling["proof"]["in_force"][0]["readings"].as_u64() > Some(0),
        "{ruling}"
    );
    // The report names the question, and its numbers can be made again.
    let report = stdout(&bench.run(&["report", "one"]));
    assert!(report.contains("Question 1 of session 1"), "{report}");
    expect_code(&bench.run(&["verify", "one"]), 0);

    let same = propose(
        &bench,
        "default",
        "nice=0",
        &["-o", "two", "--max-blocks", "2", "--new-session"],
    );
    let ruling: Value = serde_json::from_str(&stdout(&same)).expect("valid JSON");
    assert_eq!(ruling["accepted"], false, "{ruling}");
    expect_code(&same, 5);
    let left = ruling["ledger"]["left"].as_f64().expect("a number");
    assert!((left - 0.045).abs() < 1e-9, "{left}");
    let warning = ruling["warning"].as_str().expect("text");
    assert!(
        warning.contains("Session 2 is the second on the same work"),
        "{warning}"
    );
}

#[test]
fn a_proposal_that_cannot_be_measured_costs_nothing_and_what_the_ledger_sets_is_refused() {
    let bench = Bench::default();
    for (more, says) in [
        (
            &["--confidence", "50%"][..],
            "`--confidence` is not for a proposal",
        ),
        (&["--seed", "3"], "`--seed` is not for a proposal"),
        (&["--aa"], "`--aa` is not for a proposal"),
        (&["-a", "batch"], "there are 3 arms"),
        (&["--session", "9"], "no session 9"),
    ] {
        let output = propose(&bench, "default", "nice=1", more);
        expect_code(&output, 2);
        assert!(
            stderr(&output).contains(says),
            "{more:?}: {}",
            stderr(&output)
        );
    }
    assert_eq!(ledger(&bench)["sessions"], json!([]));
    let words = ["propose", "-a", "scx_that_is_nowhere", "-w", "wakeup", "-q"];
    let output = bench.run(&words);
    assert!(
        matches!(output.status.code(), Some(2 | 3)),
        "{}",
        stderr(&output)
    );
    let sessions = &ledger(&bench)["sessions"];
    let left = sessions[0]["left"].as_f64();
    assert!(left.is_none() || left == Some(0.05), "{sessions}");
    if !sessions[0].is_null() {
        assert_eq!(
            sessions[0]["questions"][0]["answer"]["outcome"], "withdrawn",
            "{sessions}"
        );
    }
}

/// A client that writes the lines itself.
struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Raw {
    fn start(bench: &Bench, options: &[&str]) -> Raw {
        let root = tests::is_root().then_some("--root");
        let words: Vec<&str> = ["mcp"]
            .into_iter()
            .chain(root)
            .chain(options.iter().copied())
            .collect();
        let mut child = bench
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("schedlab starts");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut raw = Raw {
            child,
            input,
            output: BufReader::new(output.expect("a pipe")),
            id: 0,
        };
        let answer = raw.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "raw", "version": "1" },
            }),
        );
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "schedlab",
            "{answer}"
        );
        raw.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        raw
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        input
            .write_all(format!("{line}\n").as_bytes())
            .expect("it reads");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.write(&request.to_string());
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Text of a tool's answer, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, answer["result"]["isError"] == true)
    }

    fn end(mut self) -> std::process::ExitStatus {
        self.input = None;
        self.child.wait().expect("it ends")
    }
}

fn of_wakeup(arm: &str) -> Value {
    json!({ "arm": arm, "workload": "wakeup:1" })
}

/// Calls that nobody allowed, and a part of the reason that is given.
fn refused_calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("rm", json!({ "path": "/" }), "no tool `rm`"),
        (
            "compare",
            json!({ "arm": "nice=5", "command": ["rm", "-rf", "/"] }),
            "programs are not allowed",
        ),
        ("compare", of_wakeup("env.LD_PRELOAD=/tmp/x.so"), "`env`"),
        (
            "compare",
            of_wakeup("base_slice=1ms"),
            "the tunable `base_slice`",
        ),
        (
            "compare",
            of_wakeup("/bin/rm -rf /"),
            "the scheduler `/bin/rm`",
        ),
        (
            "compare",
            json!({ "arm": "nice=5", "workload": "wakeup:1,2,3,4,5,6,7,8,9,10" }),
            "at most 8",
        ),
        (
            "compare",
            json!({ "arm": "nice=5", "workload": "wakeup", "target": "ssh:root@lab3" }),
            "ssh:root@lab3",
        ),
        (
            "compare",
            json!({ "arm": "nice=5", "workload": "wakeup", "prepare": "rm -r /" }),
            "`prepare`",
        ),
        (
            "compare",
            json!({ "arm": "--budget=9h", "workload": "wakeup" }),
            "--budget=9h",
        ),
        ("report", json!({ "job": 1 }), "no job 1"),
        (
            "report",
            json!({ "job": "/home/other/results" }),
            "whole number",
        ),
        (
            "status",
            json!({ "dir": "/var/lib/schedlab-runs" }),
            "`dir`",
        ),
        ("more", json!({ "handle": 5 }), "no handle 5"),
    ]
}

/// The same of races and of what was asked before.
fn refused_races() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "tune",
            json!({ "vary": ["base_slice=1ms..9ms log"], "workload": "wakeup:1" }),
            "the tunable `base_slice`",
        ),
        (
            "tune",
            json!({ "vary": ["nice=0,5", "/bin/rm --slice=1..9"], "workload": "wakeup:1" }),
            "the scheduler `/bin/rm`",
        ),
        (
            "tune",
            json!({ "workload": "wakeup:1" }),
            "`vary` is missing",
        ),
        ("history", json!({ "job": 7 }), "no job 7"),
    ]
}

#[test]
fn an_agent_that_asks_for_what_it_may_not_is_refused_with_the_reason_and_served_on() {
    let bench = Bench::default();
    let mut client = Raw::start(&bench, &["-o", "jobs"]);
    for (tool, arguments, says) in [refused_calls(), refused_races()].concat() {
        let (text, is_error) = client.call(tool, arguments.clone());
        assert!(
            is_error && text.contains(says),
            "{tool} {arguments}: {text}"
        );
        assert!(text.contains("ledger: session 1, 0 questions"), "{text}");
    }
    // A hundred megabytes, one argument of many lines, and what is no JSON at all.
    let long = "x".repeat(100 << 20);
    let refused = client.ask(
        "tools/call",
        json!({ "name": "check", "arguments": { "arm": long } }),
    );
    assert_eq!(refused["id"], client.id, "{refused}");
    let message = refused["error"]["message"].as_str().expect("a reason");
    assert!(message.contains("at most 1048576 are read"), "{message}");
    client.write("no JSON");
    let (text, is_error) = client.call("check", of_wakeup("nice=5\nnice=6"));
    assert!(is_error && text.contains("control character"), "{text}");
    // It goes on as if nothing had been.
    let (text, is_error) = client.call("check", of_wakeup("nice=5"));
    assert!(!is_error && text.contains("nothing"), "{text}");
    let (text, is_error) = client.call("history", json!({}));
    assert!(!is_error && text.contains("nothing like that"), "{text}");
    let (text, _) = client.call("what_can_i_name", json!({ "list": "metrics" }));
    assert!(
        text.len() <= 4_500 && text.contains("handle"),
        "{}",
        text.len()
    );
    assert!(client.end().success());
    let log = std::fs::read_to_string(bench.path("jobs/mcp.log")).expect("a log");
    assert!(log.contains("rm") && log.contains("refused"), "{log}");
    assert!(log.len() < 100_000, "{}", log.len());
}

#[test]
fn root_is_refused_unless_it_is_meant() {
    if !tests::is_root() {
        return skipped("only root can be refused as root");
    }
    let bench = Bench::default();
    let output = bench
        .command(&["mcp"])
        .stdin(Stdio::null())
        .output()
        .expect("it ends");
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("this is root"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_job_that_is_cancelled_or_left_alone_ends_in_order() {
    let _turn = beside_others();
    let bench = Bench::default();
    let asked = json!({ "arm": "nice=1", "workload": "wakeup:1", "duration": "30s" });
    let mut client = Raw::start(&bench, &["-o", "jobs"]);
    let (text, is_error) = client.call("compare", asked.clone());
    assert!(!is_error && text.starts_with("job 1 began"), "{text}");
    let (text, is_error) = client.call("compare", asked.clone());
    assert!(is_error && text.contains("job 1 is running"), "{text}");
    let (text, _) = client.call("cancel", json!({ "job": 1 }));
    assert!(text.contains("ends in order"), "{text}");
    let (text, _) = client.call("status", json!({ "job": 1, "wait_s": 60 }));
    // No trial had ended, so nothing was seen, and nothing is paid.
    let is_closed = text.contains("WITHDRAWN") || text.contains("nothing is accepted");
    assert!(is_closed && text.contains("5.000 % of 5 % left"), "{text}");
    let (text, _) = client.call("compare", asked);
    assert!(text.starts_with("job 2 began"), "{text}");
    // The client goes away while job 2 measures.
    assert!(client.end().success());
    bench.expect_nothing_left();
}

/// Python with the official client, which `scripts/test` installs.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("SCHEDLAB_TEST_MCP").map(PathBuf::from);
    let below =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools-of-tests/mcp/bin/python");
    named.or(Some(below)).filter(|path| path.is_file())
}

fn with_official_client(bench: &Bench, mode: &str) -> Option<Value> {
    with_client_at(bench, mode, "", &[])
}

/// `programs`: a directory before those of PATH.
fn with_client_at(bench: &Bench, mode: &str, place: &str, programs: &[&str]) -> Option<Value> {
    let python = python()?;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/mcp/client.py");
    let example = bench.command(&[]);
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(schedlab())
        .arg(bench.dir.path())
        .arg(mode)
        .arg(place);
    for (name, value) in example.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    if let [programs] = programs {
        let usual = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{programs}:{usual}"));
    }
    let output = command.output().expect("python starts");
    expect_code(&output, 0);
    Some(serde_json::from_str(&stdout(&output)).expect("valid JSON"))
}

const NO_CLIENT: &str = "the official MCP client for Python is not installed";

#[test]
fn the_official_client_asks_measures_and_is_answered() {
    let _turn = beside_others();
    let bench = Bench::default();
    let Some(seen) = with_official_client(&bench, "whole") else {
        return skipped(NO_CLIENT);
    };
    let answers = seen["answers"].as_array().expect("answers");
    let text = |n: usize| answers[n]["text"].as_str().unwrap_or_default();
    assert!(
        text(0).contains("\nACCEPTED: ") && text(0).contains("proof: "),
        "{seen}"
    );
    assert!(text(1).contains("\nNOT ACCEPTED: "), "{seen}");
    assert!(seen["notices"].as_u64() > Some(0), "{seen}");
    assert!(seen["longest"].as_u64() <= Some(4_500), "{seen}");
    let full = seen["full"].as_str().unwrap_or_default();
    assert!(full.contains("Question 1 of session 1"), "{full}");
    let stranger = seen["stranger"].as_str().unwrap_or_default();
    assert!(
        stranger.contains("others' results are not shown"),
        "{stranger}"
    );
    let session = &ledger(&bench)["sessions"][0];
    assert_eq!(session["session"]["asker"], "agent");
    assert_eq!(
        session["questions"].as_array().map(Vec::len),
        Some(2),
        "{session}"
    );
}

/// It was accepted there, and nothing was measured here.
fn expect_accepted_elsewhere(seen: &Value) {
    let refused = seen["refused"].as_str().unwrap_or_default();
    assert!(
        refused.contains("the target `local` is not allowed"),
        "{seen}"
    );
    let text = seen["answers"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("\nACCEPTED: "), "{seen}");
}

#[test]
#[ignore = "half a minute on a machine behind an sshd, in make test-long"]
fn an_agent_measures_on_the_one_machine_that_it_may_reach_over_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = beside_others();
    let bench = Bench::default();
    // `ssh:lab` names no configuration, and that of the user is not to be touched.
    let programs = bench.path("programs");
    std::fs::create_dir(&programs).expect("a directory");
    let config = sshd.path("config").display().to_string();
    let ssh = format!("#!/bin/sh\nexec /usr/bin/ssh -F {config} \"$@\"\n");
    tests::write_program(&programs.join("ssh"), ssh);
    let programs = programs.display().to_string();
    let Some(seen) = with_client_at(&bench, "elsewhere", "ssh:lab", &[&programs]) else {
        return skipped(NO_CLIENT);
    };
    expect_accepted_elsewhere(&seen);
    let text = seen["answers"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("on ssh"), "{seen}");
}

#[test]
#[ignore = "a guest that is booted without KVM, in make test-long"]
fn an_agent_that_may_use_guests_measures_in_one() {
    let _turn = beside_others();
    let bench = Bench::default();
    let Some(seen) = with_client_at(&bench, "elsewhere", "vm:debian:sid", &[]) else {
        return skipped(NO_CLIENT);
    };
    expect_accepted_elsewhere(&seen);
}

#[test]
#[ignore = "more than a minute of a bisection, in make test-long"]
fn an_agent_finds_the_commit_that_slows_a_program_for_one_price() {
    let _turn = alone();
    let bench = Bench::default();
    let script = "set -e; git init -q r; cd r; git config user.name a; git config user.email a@b.c; \
        for n in $(seq 0 5); do test $n -lt 3 && to=50000 || to=200000; \
        echo \"mkdir bin; echo 'i=0; while [ \\$i -lt $to ]; do i=\\$((i+1)); done' > bin/count\" > build.sh; \
        echo $n > NOTES; git add .; git commit -q -m \"change $n\"; git tag v$n; done";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let repository = bench.path("r").display().to_string();
    let Some(seen) = with_client_at(&bench, "bisect", &repository, &[]) else {
        return skipped(NO_CLIENT);
    };
    let text = seen["answers"][0]["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("\n  change 3\n") && text.contains("\nFOUND: "),
        "{seen}"
    );
    let refused = seen["refused"].as_str().unwrap_or_default();
    assert!(
        refused.contains("`/somewhere/else` is not allowed"),
        "{seen}"
    );
    let session = &ledger(&bench)["sessions"][0];
    assert_eq!(
        session["questions"].as_array().map(Vec::len),
        Some(1),
        "{session}"
    );
    assert_eq!(
        session["questions"][0]["answer"]["outcome"], "accepted",
        "{session}"
    );
    assert_eq!(session["left"], 0.05, "{session}");
}

#[test]
#[ignore = "most of a minute of a race, in make test-long"]
fn a_race_of_an_agent_ends_in_one_question_that_pays_and_is_in_its_history() {
    let _turn = alone();
    let bench = Bench::default();
    let Some(seen) = with_official_client(&bench, "tune") else {
        return skipped(NO_CLIENT);
    };
    let text = seen["answers"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("\nACCEPTED: "), "{seen}");
    let session = &ledger(&bench)["sessions"][0];
    let questions = session["questions"].as_array().expect("questions");
    assert_eq!(questions.len(), 1, "{session}");
    let asked = &questions[0]["question"]["words"];
    let asked = asked.as_str().unwrap_or_default();
    assert!(asked.contains("against handicap=300%"), "{session}");
    for part in ["history", "report"] {
        let text = seen[part].as_str().unwrap_or_default();
        assert!(text.contains("against handicap=300%"), "{part}: {text}");
    }
    assert!(seen["longest"].as_u64() <= Some(4_500), "{seen}");
}

#[test]
#[ignore = "a minute of a dozen comparisons, in make test-long"]
fn a_scripted_agent_climbs_as_long_as_it_is_accepted_and_stops_by_itself() {
    let _turn = alone();
    let bench = Bench::default();
    let Some(seen) = with_official_client(&bench, "climb") else {
        return skipped(NO_CLIENT);
    };
    // The step from 0.001 % to nothing changes nothing.
    assert_eq!(seen["best"], "handicap=0.001%", "{seen}");
}
