//! Experiments of the command line, and the files that say the same.

mod named;

use model::Experiment;
use named::{parse_experiment, parse_words};
use plan::{Key, PlanError, Words};
use serde_json::json;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn line(arms: &[&str], workloads: &[&str]) -> Words {
    Words {
        arms: words(arms),
        workloads: words(workloads),
        ..Words::default()
    }
}

fn guest() -> Words {
    let word = "--vm debian:sid";
    Words {
        keys: vec![
            Key::of_word(word, "target.kind", "vm"),
            Key::of_word(word, "target.kernel", "debian:sid"),
            Key::new("--cpus", "target.cpus", 2),
            Key::new("--memory", "target.memory", "1G"),
            Key::new("--expose", "target.expose", vec!["/srv/x"]),
        ],
        ..Words::default()
    }
}

fn read(words: &Words) -> Result<(Experiment, String), PlanError> {
    parse_words(words)?.read()
}

fn experiment(words: &Words) -> Experiment {
    read(words).expect("is right").0
}

/// The message, and the help.
fn refused(words: &Words) -> String {
    let error = read(words).expect_err("is wrong");
    let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
    format!("{error}: {}", help.unwrap_or_default())
}

/// The text of the file, which means the same experiment wherever it is read.
#[track_caller]
fn round_trip(words: &Words) -> String {
    let (experiment, text) = read(words).expect("is right");
    let again = parse_experiment("elsewhere.toml", &text).expect("is right");
    assert_eq!(again, experiment, "{text}");
    text
}

/// Arms of every form that `schedlab list arms` and the reference have.
const ARMS: &[(&str, &[&str])] = &[
    ("default", &["default"]),
    (
        "TUNABLE=VALUE",
        &[
            "base_slice=1ms",
            "base_slice_ns=2ms",
            "autogroup=off+migration_cost=0.5ms",
        ],
    ),
    (
        "SYSCTL.NAME=VALUE",
        &["vm.swappiness=10", "kernel.sched_schedstats=1+nice=5"],
    ),
    (
        "debugfs.sched.NAME=VALUE",
        &[
            "debugfs.sched.verbose=Y",
            "debugfs.sched.fair_server.cpu0.runtime=0+nice=5",
        ],
    ),
    (
        "scx_NAME [ARGS]",
        &[
            "scx_rusty",
            "scx_rusty --slice-us-overutil 5000",
            "scx_layered --x 'a \"b\" \\ c'",
            "/opt/scx_mine",
            "scx_rusty@git:../scx#main",
        ],
    ),
    ("loader:[scx_NAME/]MODE", &["loader:scx_lavd/powersave"]),
    ("eevdf, cfs, bore", &["eevdf", "cfs", "bore", "bore+nice=5"]),
    (
        "profile=FILE",
        &[concat!(
            "low:=profile=",
            env!("CARGO_MANIFEST_DIR"),
            "/../../experiments/profiles/eevdf/low_latency.conf"
        )],
    ),
    ("other, batch, idle", &["other", "batch", "idle"]),
    ("fifo[:PRIO], rr[:PRIO]", &["fifo", "fifo:5", "rr:99"]),
    (
        "deadline:RUNTIME/PERIOD",
        &["deadline:2ms/5ms", "deadline:0.3ms/4ms/5ms"],
    ),
    ("nice=N", &["nice=-5"]),
    ("slice=TIME", &["slice=0.3ms"]),
    ("weight=N", &["weight=1000"]),
    ("cpus=LIST", &["cpus=0", "cpus=0-1,3+nice=5"]),
    (
        "quota=PERCENT, quota=RUNTIME/PERIOD",
        &["quota=50%", "quota=20ms/40ms", "quota=max+batch"],
    ),
    (
        "uclamp=MIN-MAX",
        &["uclamp=20%-80%", "uclamp=12.5%-", "uclamp=-80%+nice=5"],
    ),
    (
        "env.NAME=VALUE",
        &["env.A=1", "env.A=/x/y:z+env.B=two words+nice=5"],
    ),
    ("kernel=SOURCE", &["kernel=debian:trixie"]),
    // It needs workers that are guests, which only a file can ask for.
    ("hypervisor-scheduler=NAME[/KEY=VALUE]…", &[]),
    ("handicap=N%", &["handicap=5%", "handicap=0.7%"]),
    (
        "ROLE:CHANGE",
        &[
            "antagonist:nice=19",
            "load:fifo:10",
            "antagonist:weight=20+base_slice=1ms",
            "server:quota=20ms/40ms",
        ],
    ),
    (
        "DAEMON:CHANGE",
        &[
            "unit=mysqld.service:nice=5+unit=mysqld.service:weight=50",
            "calm:=cgroup=/a.slice/b.scope:quota=50%",
            "container=bench:batch",
            "name=mysqld:fifo:10+base_slice=1ms",
            "pid=7:cpus=0",
        ],
    ),
    ("A+B", &["batch+nice=5+base_slice=1ms"]),
    ("NAME:=ARM", &["calm \"one\":=batch+nice=5"]),
];

#[test]
fn a_file_says_the_same_of_every_form_of_an_arm() {
    let forms: Vec<&str> = plan::forms().into_iter().map(|(form, _)| form).collect();
    let tried: Vec<&str> = ARMS.iter().map(|(form, _)| *form).collect();
    assert_eq!(tried, forms, "each form has its arms above");
    for (form, arms) in ARMS {
        for arm in *arms {
            let workload = if ["weight=N", "ROLE:CHANGE"].contains(form) {
                "http:2k/s"
            } else {
                "wakeup"
            };
            let mut line = line(&["base:=default", arm], &[workload]);
            line.beside = words(&["spinner"]);
            if *form == "kernel=SOURCE" {
                line.keys = guest().keys;
            }
            round_trip(&line);
        }
    }
}

#[test]
fn a_file_says_the_same_of_workloads_roles_target_and_rule() {
    let events = words(&["LLC-load-misses", "sched:sched_wakeup", "cycles:u"]);
    let mut line = Words {
        server: Some("nginx".to_owned()),
        beside: words(&[
            "spinner",
            "stress-ng --cpu 2",
            "command yes 'a b'",
            "burnwait:3 70 200us, 8x10 5ms",
        ]),
        command: words(&["make", "-C", "a \"b\"", "-j4"]),
        prepare: Some("make clean".to_owned()),
        metrics: words(&[r"ops=/ops: (?<v>[\d.]+)\n/ higher 1/s", "t=csv:took lower"]),
        ..guest()
    };
    line.keys.extend([
        Key::new("--perf", "perf", events),
        Key::new("--seed", "seed", 7),
        Key::new("--aa", "aa", true),
        Key::new("--budget", "stop.budget", "90s"),
        Key::new("--smallest-effect", "stop.smallest-effect", "0.07"),
        Key::new("--confidence", "stop.confidence", 0.99),
        Key::new("--max-blocks", "stop.max-blocks", 2),
        Key::new("--duration", "workload.duration", "3s"),
    ]);
    line.arms = words(&["default", "batch"]);
    line.workloads = words(&["wakeup:50%,4", "http:2k/s"]);
    let text = round_trip(&line);
    for said in [
        "name = \"default-or-batch-",
        "perf = [\"LLC-load-misses\"",
        "budget = \"90s\"",
        "loads = [\"50%\", 4]",
        "[workload.server]\nkind = \"nginx\"\n",
        "policy = { class = \"batch\" }",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    let Experiment {
        stop, workloads, ..
    } = experiment(&line);
    assert_eq!(stop.budget_ns, Some(90_000_000_000));
    assert_eq!((stop.confidence, stop.smallest_effect), (0.99, 0.07));
    assert_eq!((stop.max_blocks, stop.min_blocks), (2, 2));
    let seconds: Vec<u64> = workloads
        .iter()
        .map(|w| w.duration_ns / 1_000_000_000)
        .collect();
    assert_eq!(seconds, [3, 3, 0], "a command that ends has no window");
}

#[test]
fn a_word_with_any_character_is_the_same_in_the_file() {
    for odd in [
        "it's '''three''' and \"\"\"three\"\"\"",
        "two\nlines\r\n\tand a tab",
        "\\d+\\",
        "\\\"",
        "\u{1}\u{7f}\u{85}\u{feff}\u{202e}",
        "# no comment",
        "{ a = 1 }",
        "\n",
        "",
    ] {
        let regex = format!("{}'''\"\"\"\\\\\"(?<v>\\d+)\n", escaped(odd));
        let line = Words {
            command: words(&["echo", odd]),
            metrics: vec![format!("m=/{regex}/ higher")],
            prepare: shlex::try_join(["true", odd]).ok(),
            ..line(&["default", "calm:=nice=5"], &[])
        };
        round_trip(&line);
        let params = experiment(&line).workloads[0].kind.params().clone();
        assert_eq!(params["argv"], json!(["echo", odd]));
        assert_eq!(params["prepare"], json!(["true", odd]));
        let metric = params["metrics"][0].to_string();
        assert!(metric.contains(&json!(regex).to_string()), "{metric}");
    }
}

/// An expression for this text.
fn escaped(text: &str) -> String {
    let hex = text.chars().map(|c| format!("\\x{{{:x}}}", u32::from(c)));
    hex.collect()
}

#[test]
fn what_is_wrong_is_said_of_the_word_and_not_of_a_text_that_nobody_saw() {
    let with = |option: &str, name: &str, value: serde_json::Value| Words {
        keys: vec![Key::new(option, name, value)],
        ..line(&["default"], &["wakeup:1", "wakeup:2"])
    };
    let of_workload = |name: &str, value: &str| {
        with(
            &format!("--{name}"),
            &format!("workload.{name}"),
            value.into(),
        )
    };
    for (words, said) in [
        (
            of_workload("duration", "5"),
            "`--duration 5`: `5` has no unit",
        ),
        (of_workload("in-place", "often"), "`--in-place often`: "),
        (
            with("--budget", "stop.budget", "soon".into()),
            "`--budget soon`: `soon` is not a duration",
        ),
        (
            with("--max-blocks", "stop.max-blocks", 0.into()),
            "`--max-blocks 0`: ",
        ),
        (
            with("--confidence", "stop.confidence", 0.1.into()),
            "`--confidence 0.1`: ",
        ),
        (
            with("--seed", "seed", u64::MAX.into()),
            "`--seed 18446744073709551615`: the number is too large",
        ),
        (
            with("--perf", "perf", json!(["cs", "nope"])),
            "`--perf cs,nope`: ",
        ),
        (
            line(&["default"], &["wakeup:1", "wakeup:0"]),
            "`-w wakeup:1 -w wakeup:0`: a load of 0",
        ),
        (
            line(&["default"], &["wakup"]),
            "there is no workload `wakup`: did you mean `wakeup`?",
        ),
        (
            line(&["default", "nice=77"], &["wakeup"]),
            "arm `nice=77`: ",
        ),
        (
            line(&["default", "calm:=nice=77"], &["wakeup"]),
            "`-a calm:=nice=77`: arm `calm`: ",
        ),
    ] {
        let error = refused(&words);
        assert!(error.starts_with(said), "{error}");
        let error = read(&words).expect_err("is wrong");
        let labels = miette::Diagnostic::labels(&error);
        assert_eq!(labels.map_or(0, Iterator::count), 0);
    }
}

#[test]
fn cells_that_are_left_out_are_not_in_the_file() {
    let words = line(
        &["default", "nice=5"],
        &["http:1k/s,2k/s", "hackbench:1,2", "wakeup"],
    );
    let mut document = parse_words(&words).expect("is right");
    document.leave_out(&[0, 2, 3, 4].into_iter().collect());
    let (experiment, text) = document.read().expect("is right");
    let again = parse_experiment("x.toml", &text).expect("is right");
    assert_eq!(again, experiment, "{text}");
    assert_eq!(experiment.workloads.len(), 1, "{text}");
    assert_eq!(experiment.workloads[0].loads.len(), 1, "{text}");
    // It is for whom it was beside the other workloads.
    assert_eq!(experiment.arms[1].to, model::Role::Load);
}

#[test]
fn loads_of_one_kind_may_be_given_apart() {
    let apart = line(&["default"], &["wakeup:1", "hackbench:1", "wakeup:50%,4"]);
    let together = line(&["default"], &["wakeup:1,50%,4", "hackbench:1"]);
    let apart_text = round_trip(&apart);
    assert_eq!(apart_text, round_trip(&together));
    assert!(read(&line(&["default"], &["wakeup", "wakeup:1"])).is_err());
    assert!(read(&line(&["default"], &["wakeup:1", "wakeup:1"])).is_err());
}

#[test]
fn a_server_is_asked_by_the_workloads_that_ask_one_and_antagonists_are_beside_all() {
    let with = Words {
        server: Some("nginx".to_owned()),
        beside: words(&["spinner", "stress-ng"]),
        ..line(&["default"], &["http:2k/s", "wakeup"])
    };
    let [http, wakeup] = &experiment(&with).workloads[..] else {
        panic!("two workloads");
    };
    let server = http.server.as_ref().expect("a server");
    assert_eq!(server.program.name(), "nginx");
    assert_eq!(wakeup.server, None);
    for workload in [http, wakeup] {
        let names: Vec<&str> = workload.antagonists.iter().map(|a| &*a.name).collect();
        assert_eq!(names, ["spinner", "stress-ng"]);
    }
    let stress = wakeup.antagonists[1].program.params();
    assert_eq!(stress["args"], json!(["--cpu", "0"]));
}

#[test]
fn workers_beside_a_load_have_a_number_and_events() {
    let beside = |text: &str| {
        let with = Words {
            beside: words(&[text]),
            ..line(&["default"], &["wakeup"])
        };
        let (experiment, _) = read(&with).map_err(|error| error.to_string())?;
        let antagonist = &experiment.workloads[0].antagonists[0];
        Ok::<_, String>(antagonist.program.params().clone())
    };
    let said = beside("burnwait:3 70 200us, 8x10 random 5ms").expect("is right");
    assert_eq!(said["count"], json!(3));
    let events = said["sets"][0]["events"].as_array().expect("events");
    assert_eq!(events[0]["wait_ns"], json!(200_000));
    assert_eq!(
        (&events[1]["pieces"], &events[1]["when"]),
        (&json!(8), &json!("random"))
    );
    let published = beside("burnwait").expect("is right");
    assert_eq!(published["sets"].as_array().map(Vec::len), Some(2));
    for (text, expected) in [
        ("burnwait:0", "at least 1"),
        ("burnwait:many", "many"),
        ("burnwait 70", "hands over"),
        ("burnwait 70 soon", "soon"),
        ("spinner:3", "spinner:3"),
    ] {
        let error = beside(text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_role_that_cannot_be_is_answered_with_what_can() {
    let wrong = |server: Option<&str>, beside: &[&str], workload: &str| {
        let line = Words {
            server: server.map(str::to_owned),
            beside: words(beside),
            ..line(&["default"], &[workload])
        };
        refused(&line)
    };
    for (said, expected) in [
        (
            wrong(Some("nginxx"), &[], "http:1k/s"),
            "did you mean `nginx`?",
        ),
        (wrong(Some("nginx -v"), &[], "http:1k/s"), "has no `args`"),
        (
            wrong(Some("nginx"), &[], "wakeup"),
            "asks a server: -w http --server",
        ),
        (
            wrong(None, &["spiner"], "wakeup"),
            "did you mean `spinner`?",
        ),
        (
            wrong(None, &["spinner", "spinner"], "wakeup"),
            "two antagonists `spinner`",
        ),
        (
            wrong(None, &["stress-ng '"], "wakeup"),
            "open quotation mark",
        ),
        (wrong(None, &[""], "wakeup"), "`--beside` without a kind"),
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_arm_is_called_by_its_words_and_a_path_by_its_file() {
    for (arm, name) in [
        ("quota=20ms/40ms", "quota=20ms/40ms"),
        ("some/where/scx_mine -v", "scx_mine"),
    ] {
        let line = Words {
            arms: vec!["default".to_owned(), arm.to_owned()],
            workloads: vec!["wakeup".to_owned()],
            ..Words::default()
        };
        assert_eq!(experiment(&line).arms[1].name, name);
    }
}

#[test]
fn a_deadline_policy_on_some_of_the_cpus_is_refused_before_anything_runs() {
    for arm in [
        "deadline:2ms/5ms+cpus=0",
        "cpus=0+deadline:2ms/5ms",
        "deadline:0.3ms/4ms/5ms+cpus=0-1",
        "autogroup=off+deadline:2ms/5ms+cpus=1",
    ] {
        let refused = read(&line(&["default", arm], &["wakeup"])).expect_err(arm);
        let said = format!("{refused:?} {refused}");
        let why = "only to threads that may run on all CPUs";
        assert!(said.contains(why), "{arm}: {said}");
    }
}

#[test]
fn provocations_are_antagonists_of_guests_and_of_nothing_else() {
    let provoked = |line: Words| Words {
        arms: words(&["default", "batch"]),
        workloads: words(&["wakeup"]),
        provoke: words(&["affinity", "forks"]),
        ..line
    };
    let (experiment, text) = read(&provoked(guest())).unwrap();
    let names = |of: &Experiment| -> Vec<String> {
        let antagonists = of.workloads[0].antagonists.iter();
        antagonists
            .map(|antagonist| antagonist.name.clone())
            .collect()
    };
    assert_eq!(names(&experiment), ["affinity", "forks"]);
    assert!(text.contains("what = \"forks\""), "{text}");
    let error = read(&provoked(Words::default())).unwrap_err().to_string();
    assert!(error.contains("`affinity` is for guests only"), "{error}");
    // An experiment of a file gets them beside what it has.
    let plain = Words {
        provoke: Vec::new(),
        beside: words(&["spinner"]),
        ..provoked(guest())
    };
    let (plain, _) = read(&plain).unwrap();
    let more = plan::provoke(plain, &words(&["stops"])).unwrap();
    assert_eq!(names(&more), ["spinner", "stops"]);
}
