//! Bad input: a clear error with its exit code, before anything is applied.

#![allow(clippy::disallowed_methods)]

use tests::{Bench, beside_others, expect_code, stderr, stdout, with_lock_of_runs};

const ARM: &str = "[[arm]]\nname = \"a\"\n";
const WAKEUP: &str = "[[workload]]\nkind = \"wakeup\"\n";

#[test]
fn what_is_wrong_in_a_file_is_shown_with_its_place_and_a_remedy() {
    assert_said(&[
        (
            format!("{ARM}{WAKEUP}duratoin = \"5s\"\n"),
            "did you mean `duration`?",
        ),
        (format!("{ARM}{WAKEUP}duration = \"5\"\n"), "has no unit"),
        (format!("{ARM}{ARM}{WAKEUP}"), "two arms `a`"),
        (format!("{ARM}{WAKEUP}loads = [0]\n"), "load of 0"),
        (
            format!("{ARM}tunables = {{ base_slcie = \"1ms\" }}\n{WAKEUP}"),
            "base_slice",
        ),
        (
            format!("{ARM}policy = {{ class = \"fifo\", priority = 100 }}\n{WAKEUP}"),
            "1 to 99",
        ),
        (
            format!("{ARM}{WAKEUP}metrics = [\"wakeup_p98\"]\n"),
            "wakeup_p9",
        ),
        (format!("trace = \"best\"\n{ARM}{WAKEUP}"), "x.toml:1"),
        (
            format!("trace = \"worst:service\"\n{ARM}{WAKEUP}"),
            "worst:wakeup or worst:request",
        ),
        (
            format!("trace = \"worst\"\n{ARM}[[workload]]\nkind = \"hackbench\"\n"),
            "one of wakeup, rr, periodic",
        ),
        ("name = \"x\n".to_owned(), "x.toml:1"),
    ]);
}

#[test]
fn what_a_newcomer_writes_first_is_answered_with_what_to_write() {
    assert_said(&[
        (
            format!("[arm]\nname = \"a\"\n[arm]\nname = \"b\"\n{WAKEUP}"),
            "[[arm]]",
        ),
        (
            format!("{ARM}slice = \"1ms\"\n{WAKEUP}"),
            "policy = { slice = … }",
        ),
        (
            format!("{ARM}policy = {{ class = \"fif\" }}\n{WAKEUP}"),
            "did you mean `fifo`?",
        ),
        (
            format!("{ARM}[[workload]]\nkind = \"nginx\"\n"),
            "[workload.server]",
        ),
        (
            format!("{ARM}[[workload]]\nkind = \"http\"\n[[workload.server]]\nkind = \"nginx\"\n"),
            "one bracket",
        ),
        (
            format!("{ARM}[[workload]]\nkind = \"command\"\ncommand = [\"make -j4\"]\n"),
            "without quotation marks",
        ),
    ]);
}

/// `check` refuses each file, with these words.
fn assert_said(cases: &[(String, &str)]) {
    let bench = Bench::default();
    for (text, says) in cases {
        let file = bench.file("x.toml", text);
        let output = bench.run(&["check", &file]);
        let code = output.status.code();
        assert!(
            matches!(code, Some(2 | 3)),
            "{text}: {code:?} {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(says),
            "{text}: {}",
            stderr(&output)
        );
    }
}

/// A file whose scheduler is from a "repository" with which git would run `touch ran`.
fn hostile_sources(mark: &str) -> Vec<String> {
    let rev = "0123456789012345678901234567890123456789";
    let upload = format!("--upload-pack=touch {mark}; x@y:z");
    [
        ("scx_x", upload.as_str(), rev),
        ("scx_x", upload.as_str(), "main"),
        ("scx_x", ".", upload.as_str()),
        ("scx_x", "file:///nowhere", upload.as_str()),
        (upload.as_str(), ".", rev),
    ]
    .iter()
    .map(|(package, git, rev)| {
        format!(
            "{ARM}[[arm]]\nname = \"b\"\nscheduler = {{ package = \"{package}\", git = \"{git}\", \
             rev = \"{rev}\" }}\n{WAKEUP}"
        )
    })
    .collect()
}

#[test]
fn a_strangers_repository_is_no_option_of_git() {
    let bench = Bench::default();
    let mark = bench.path("ran").display().to_string();
    for text in hostile_sources(&mark) {
        let file = bench.file("x.toml", &text);
        for command in [["plan", &file], ["check", &file], ["run", &file]] {
            let output = bench.run(&command);
            assert_eq!(output.status.code(), Some(2), "{text}: {}", stderr(&output));
            assert!(stderr(&output).contains("option"), "{}", stderr(&output));
            assert!(!bench.path("ran").exists(), "{command:?}: {text}");
        }
    }
    let source = format!("--upload-pack=touch {mark}; x@y:z");
    let zeroes = "0".repeat(40);
    let arm = format!("scx_x@git:{source}#{zeroes}");
    let repository = format!("--repository={source}");
    let from = format!("--from={source}");
    let (good, bad) = (format!("--good={zeroes}"), format!("--bad={zeroes}"));
    for command in [
        vec!["check", "-a", "default", "-a", &arm, "-w", "wakeup"],
        vec!["bisect", "scx_x", &repository, &good, &bad, "-w", "wakeup"],
        vec!["kernel", "build", "--ref", "v1", "--", &source],
        vec!["tool", "install", "schbench", &from],
    ] {
        // What somebody installed before is fetched from nowhere.
        let cache = bench.path("cache");
        let mut command = bench.command(&command);
        let output = command.env("SCHEDLAB_CACHE_DIR", cache).output().unwrap();
        assert!(!output.status.success(), "{command:?}: {}", stdout(&output));
        assert!(!bench.path("ran").exists(), "{command:?}");
    }
}

/// The settings of a repository around the working directory may name programs; what is asked of a far one
/// does not look for them.
#[test]
fn a_repository_around_the_working_directory_is_not_obeyed() {
    let bench = Bench::default();
    let mark = bench.path("ran").display().to_string();
    let script = format!("git init -q . && git config core.sshCommand 'touch {mark}; false'");
    let mut made = std::process::Command::new("sh");
    made.args(["-c", &script]).current_dir(bench.dir.path());
    assert!(made.status().expect("sh").success());
    let far = "ssh://localhost:9/x";
    let from = format!("--from={far}");
    let arm = format!("scx_x@git:{far}#v1");
    for command in [
        vec![
            "check", "--yes", "-a", "default", "-a", &arm, "-w", "wakeup",
        ],
        vec!["kernel", "build", "--ref", "v1", "--", far],
        vec!["tool", "install", "schbench", &from],
    ] {
        // What somebody installed before is fetched from nowhere.
        let cache = bench.path("cache");
        let mut command = bench.command(&command);
        let output = command.env("SCHEDLAB_CACHE_DIR", cache).output().unwrap();
        assert!(!output.status.success(), "{command:?}: {}", stdout(&output));
        assert!(!bench.path("ran").exists(), "{command:?}");
    }
}

/// rustup's cargo would start the one that such a file names.
#[test]
fn a_toolchain_file_around_the_working_directory_is_not_obeyed() {
    let bench = Bench::default();
    let tools = bench.path("toolchain/bin");
    std::fs::create_dir_all(&tools).expect("a directory");
    let mark = bench.path("ran").display().to_string();
    for tool in ["cargo", "rustc"] {
        tests::write_program(
            &tools.join(tool),
            format!("#!/bin/sh\ntouch {mark}\nexit 1\n"),
        );
    }
    let toolchain = bench.path("toolchain").display().to_string();
    bench.file(
        "rust-toolchain.toml",
        &format!("[toolchain]\npath = \"{toolchain}\"\n"),
    );
    // cargo sets it for tests, and then no file is looked for.
    let mut list = bench.command(&["scheduler", "list"]);
    let output = list.env_remove("RUSTUP_TOOLCHAIN").output();
    expect_code(&output.expect("schedlab starts"), 0);
    assert!(!bench.path("ran").exists());
}

/// A repository with a scheduler whose build would run `touch built`.
fn repository_with_a_build(bench: &Bench) {
    let script = "git init -q -b main scx && cd scx && \
                  printf '[package]\\nname = \"scx_x\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > Cargo.toml && \
                  mkdir src && echo 'fn main() {}' > src/main.rs && \
                  echo 'fn main() { std::fs::write(\"/tmp/x\", \"\").unwrap(); }' > build.rs && \
                  git add -A && git -c user.name=a -c user.email=a@b.c commit -q -m one";
    let made = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "git is there");
}

#[test]
fn a_check_builds_and_attaches_nothing_that_a_file_names_unless_somebody_agrees() {
    let bench = Bench::default();
    repository_with_a_build(&bench);
    let program = bench.path("scx_y");
    let script = format!("#!/bin/sh\ntouch {}\n", bench.path("ran").display());
    tests::write_program(&program, script);
    let built = format!(
        "{ARM}[[arm]]\nname = \"b\"\nscheduler = {{ package = \"scx_x\", git = \"{}\" }}\n{WAKEUP}",
        bench.path("scx").display()
    );
    let proxy = bench.file(
        "ssh_config",
        &format!(
            "Host *\n  ProxyCommand touch {}\n",
            bench.path("ran").display()
        ),
    );
    let far =
        format!("[target]\nkind = \"ssh\"\nhost = \"far\"\nconfig = \"{proxy}\"\n{ARM}{WAKEUP}");
    let named = format!(
        "{ARM}[[arm]]\nname = \"b\"\nscheduler = \"{}\"\n{WAKEUP}",
        program.display()
    );
    for (text, says, more) in [
        (&built, "not done: builds scx_x", vec![]),
        (&built, "not done: builds scx_x", vec!["--no-start"]),
        (&named, "", vec![]),
        (&named, "", vec!["--no-start"]),
        (&far, "the target was not looked at", vec![]),
        (&far, "not done: connects to the target", vec![]),
        (&far, "not done: connects to the target", vec!["--no-start"]),
    ] {
        let file = bench.file("x.toml", text);
        let args = [vec!["check", file.as_str()], more.clone()].concat();
        let mut check = bench.command(&args);
        let output = check
            .env("SCHEDLAB_CACHE_DIR", bench.path("cache"))
            .output();
        let output = output.expect("schedlab starts");
        assert!(
            stdout(&output).contains(says),
            "{more:?}: {} {}",
            stdout(&output),
            stderr(&output)
        );
        assert!(!bench.path("ran").exists(), "{more:?}");
        assert!(!bench.path("cache/schedulers").exists(), "{more:?}");
        let asked = ["Start this", "attaches", "connects"]
            .iter()
            .any(|word| stderr(&output).contains(word));
        assert_eq!(asked, more.is_empty(), "{}", stderr(&output));
    }
    // Who agrees gets what was asked about, or what keeps it from being built here.
    let file = bench.file("x.toml", &built);
    let mut check = bench.command(&["check", &file, "--yes"]);
    let output = check
        .env("SCHEDLAB_CACHE_DIR", bench.path("cache"))
        .output();
    assert!(!stdout(&output.expect("schedlab starts")).contains("not done"));
}

/// A file that says how to connect is a stranger's word about what starts, for each command that takes one.
#[test]
fn nothing_connects_as_a_file_says_unless_somebody_agrees() {
    let bench = Bench::default();
    let ran = bench.path("ran");
    let proxy = format!("Host *\n  ProxyCommand touch {}\n", ran.display());
    let proxy = bench.file("ssh_config", &proxy);
    let file = format!("[target]\nkind = \"ssh\"\nhost = \"far\"\nconfig = \"{proxy}\"\n");
    let file = bench.file("x.toml", &format!("{file}{ARM}{WAKEUP}"));
    for words in [
        vec!["target", "check", &file],
        vec!["doctor", "--target", &file],
        vec!["doctor", "--fix", "--target", &file],
        vec!["restore", "--target", &file],
    ] {
        let output = bench.run(&words);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(
            said.contains("ssh_config") && said.contains("--yes"),
            "{words:?}: {said}"
        );
        assert!(!ran.exists(), "{words:?}");
    }
    let agreed = bench.run(&["target", "check", &file, "--yes"]);
    assert_ne!(agreed.status.code(), Some(2), "{}", stderr(&agreed));
    assert!(ran.exists(), "{}", stderr(&agreed));
}

#[test]
fn no_terminal_obeys_what_is_said_of_a_strangers_file() {
    let bench = Bench::default();
    for text in [
        format!("[[arm]]\nname = \"a\\u001b]52;c;eA==\\u0007\"\n{WAKEUP}"),
        format!("# \u{1b}]0;title\u{7}\n{ARM}{WAKEUP}"),
        format!("{ARM}{WAKEUP}metrics = [\"x\\u009b2J\\nFORGED\"]\n"),
        format!("{ARM}[[workload]]\nkind = \"wake\\u202eup\"\n"),
        format!("{ARM}{WAKEUP}name = \"w\\nFORGED\"\n"),
        format!("{ARM}kernel = \"x\\u001b[2J\"\n{WAKEUP}"),
        format!("{ARM}[[workload]]\nkind = \"command\"\ncommand = [\"x\\u001b[2J\\nFORGED\"]\n"),
    ] {
        let file = bench.file("x.toml", &text);
        let output = bench.run(&["plan", &file]);
        for said in [&output.stdout, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            let obeyed = said
                .chars()
                .find(|c| model::printable::is_hidden(*c) && *c != '\n');
            assert_eq!(obeyed, None, "{text}: {said:?}");
            assert!(
                !said.lines().any(|line| line.starts_with("FORGED")),
                "{said}"
            );
        }
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_answered_with_the_nearest() {
    let _turn = beside_others();
    let bench = Bench::default();
    for (args, says) in [
        (vec!["run", "-a", "bathc", "-w", "wakeup"], "`batch`"),
        (vec!["run", "-a", "default", "-w", "wakupe"], "`wakeup`"),
        (
            vec!["run", "-a", "default", "-a", "default", "-w", "wakeup"],
            "two arms",
        ),
        (vec!["run", "-a", "default"], "no workload"),
        (vec!["run", "-w", "wakeup"], "no arm"),
        (
            vec!["run", "-a", "default", "-w", "wakeup", "--budget", "5"],
            "no unit",
        ),
        (vec!["run", "missing.toml"], "missing.toml"),
        (vec!["report", "."], "not a results directory"),
        (vec!["run", "--resume", "."], "not a results directory"),
        (vec!["frobnicate"], "unrecognized subcommand"),
    ] {
        let output = bench.run(&args);
        expect_code(&output, 2);
        assert!(
            stderr(&output).contains(says),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_missing_program_is_an_unmet_requirement_and_leaves_no_directory() {
    let _turn = beside_others();
    let bench = Bench::default();
    let output = bench.run(&[
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "--",
        "no-such-program-here",
    ]);
    expect_code(&output, 3);
    assert!(
        stderr(&output).contains("no-such-program-here"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("out").exists());
}

#[test]
fn a_scheduler_needs_a_kernel_with_sched_ext_and_the_remedy_is_named() {
    if std::path::Path::new("/sys/kernel/sched_ext").exists() {
        tests::skipped("this kernel has sched_ext");
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let output = bench.run(&["check", "-a", "default", "-a", "scx_rusty", "-w", "wakeup"]);
    expect_code(&output, 3);
    assert!(stderr(&output).contains("--vm"), "{}", stderr(&output));
}

#[test]
fn an_unknown_tunable_is_refused_before_anything_is_written() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let output = bench.run(&[
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "-a",
        "base_slcie=1ms",
        "-w",
        "wakeup",
    ]);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("base_slice"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("out").exists());
}

#[test]
fn results_of_a_newer_version_are_refused_with_the_remedy() {
    let _turn = beside_others();
    let bench = Bench::default();
    expect_code(
        &bench.run(&[
            "run",
            "-o",
            "out",
            "-a",
            "default",
            "--max-blocks",
            "1",
            "--",
            "true",
        ]),
        0,
    );
    let path = bench.path("out/manifest.json");
    let text = std::fs::read_to_string(&path).expect("a manifest");
    std::fs::write(&path, text.replacen("\"major\": 1", "\"major\": 99", 1)).expect("writable");
    let output = bench.run(&["report", "out"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("newer schedlab"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_directory_with_results_is_not_written_over() {
    let _turn = beside_others();
    let bench = Bench::default();
    let args = [
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "--max-blocks",
        "1",
        "--",
        "true",
    ];
    expect_code(&bench.run(&args), 0);
    let again = bench.run(&args);
    expect_code(&again, 2);
    assert!(stderr(&again).contains("--resume"), "{}", stderr(&again));
}

#[test]
fn a_full_disk_ends_the_run_with_an_error_and_keeps_what_is_there() {
    if !tests::is_root() {
        tests::skipped("mounting a small disk needs root");
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let disk = match tests::SmallDisk::mount(&bench.path("disk"), "200k") {
        Ok(disk) => disk,
        Err(why) => return tests::skipped(why),
    };
    let output = bench.run(&[
        "run",
        "-o",
        "disk/out",
        "-a",
        "default",
        "-a",
        "again:=default",
        "--smallest-effect",
        "0.001%",
        // Nothing shall be decided before the disk is full, on a busy machine either.
        "--confidence",
        "99.9999%",
        "--",
        "true",
    ]);
    let trials = results::read::read_trials(&bench.path("disk/out"));
    drop(disk);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("No space left"),
        "{}",
        stderr(&output)
    );
    assert!(!trials.expect("whole trials only").is_empty());
}

#[test]
fn a_reader_that_goes_away_early_is_no_error() {
    let bench = Bench::default();
    let script = format!("'{}' list metrics | head -1", tests::schedlab().display());
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(bench.dir.path())
        .output()
        .expect("bash");
    expect_code(&output, 0);
    assert_eq!(stdout(&output).lines().count(), 1);
}
