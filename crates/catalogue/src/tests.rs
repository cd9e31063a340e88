use load::roles::{ANTAGONISTS, SERVERS};
use load::{
    Entry, KINDS, Keys, KindDef, Printed, measured_tasks, programs, read_again, watched_log,
};
use model::{Calibration, Kind, Load, Placement, Task, Tracing, Workload};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Entries of all sorts, each with the name of its sort.
fn entries() -> Vec<(&'static str, &'static dyn Entry)> {
    crate::install();
    let kinds = KINDS.iter().map(|def| ("workload", def as &dyn Entry));
    let servers = SERVERS
        .kinds
        .iter()
        .map(|def| ("server", def as &dyn Entry));
    let antagonists = ANTAGONISTS
        .kinds
        .iter()
        .map(|def| ("antagonist", def as &dyn Entry));
    kinds.chain(servers).chain(antagonists).collect()
}

#[test]
fn no_two_entries_of_a_sort_share_a_name_or_an_alias() {
    let mut seen = BTreeSet::new();
    for (sort, entry) in entries() {
        for name in entry.aliases().iter().chain([&entry.name()]) {
            assert!(seen.insert((sort, *name)), "{sort} {name} is there twice");
        }
    }
    assert_eq!(
        KINDS.find("messaging").map(|def| def.name),
        Some("hackbench")
    );
    assert!(KINDS.find("no-such-kind").is_none());
}

#[test]
fn every_entry_says_what_it_is_and_describes_every_key_that_is_read() {
    for (sort, entry) in entries() {
        let names: Vec<&str> = entry.keys().iter().map(|key| key.name).collect();
        assert_eq!(
            names,
            entry.asked_keys(),
            "keys of the {sort} {}",
            entry.name()
        );
        assert!(!entry.summary().is_empty(), "{sort} {}", entry.name());
    }
}

#[test]
fn what_decides_is_among_the_metrics_of_the_kind() {
    crate::install();
    for def in KINDS.iter() {
        let names: Vec<&str> = def.metrics.iter().map(|metric| metric.name).collect();
        assert!(
            def.deciding.iter().all(|name| names.contains(name)),
            "{}",
            def.name
        );
    }
}

#[test]
fn what_is_watched_is_among_the_logs_of_the_kind() {
    crate::install();
    for def in KINDS.iter() {
        assert!(
            def.watched.iter().all(|log| def.logs.contains(log)),
            "{}",
            def.name
        );
    }
}

#[test]
fn a_trace_is_of_what_decides_unless_it_says_of_what() {
    crate::install();
    let workload = |kind: &str, metrics: &[&str]| Workload {
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        ..Workload::new(Kind::new(kind))
    };
    let of = |words: &str, workload: &Workload, load: Load| {
        let trace = Tracing::parse(words).unwrap();
        watched_log(workload, &load, &trace).map_err(|problem| problem.remedy)
    };
    let wakeup = workload("wakeup", &["requests_per_sec", "request_p99"]);
    assert_eq!(of("worst", &wakeup, Load::Count(2)), Ok("request"));
    assert_eq!(of("worst:wakeup", &wakeup, Load::Count(2)), Ok("wakeup"));
    assert_eq!(
        of("worst:wakeup_p99", &wakeup, Load::Count(2)),
        Ok("wakeup")
    );
    let rr = workload("rr", &["requests_per_sec"]);
    assert_eq!(of("worst", &rr, Load::Count(2)), Ok("request"));
    let wrong = of("worst:service", &wakeup, Load::Count(2)).unwrap_err();
    assert_eq!(wrong, "use worst:wakeup or worst:request");
    let program = workload("hackbench", &["hackbench_time"]);
    let none = of("worst", &program, Load::Count(2)).unwrap_err();
    assert!(none.contains("one of wakeup, rr, periodic"), "{none}");
}

#[test]
fn scripts_setup_installs_the_packages_of_all_programs() {
    crate::install();
    let setup = include_str!("../../../scripts/setup");
    for program in programs() {
        let Some(package) = program.package else {
            continue;
        };
        // A machine need not have the other parts of the archive; nothing depends on them.
        if package.contains('/') {
            continue;
        }
        let line = format!("need {} {package}", program.name);
        let there = setup.lines().any(|l| l.trim() == line);
        assert!(there, "scripts/setup has no line `{line}`");
    }
}

#[test]
fn the_versions_of_servers_and_antagonists_are_asked_for_too() {
    crate::install();
    let names: Vec<&str> = programs().iter().map(|program| program.name).collect();
    for name in [
        "hackbench",
        "schbench",
        "memcached",
        "nginx",
        "http-echo",
        "stress-ng",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn the_threads_of_the_native_loads_and_servers_are_measured_by_their_names() {
    crate::install();
    let is_measured = |thread: &str| {
        measured_tasks().iter().any(|task| match task {
            Task::Thread(pattern) => thread.starts_with(pattern.trim_end_matches('*')),
            Task::Process(_) => false,
        })
    };
    for thread in [
        kinds::wakeup::MESSAGE_THREAD,
        kinds::wakeup::WORKER_THREAD,
        services::serve::THREAD,
    ] {
        assert!(is_measured(thread), "{thread}");
    }
    assert!(
        !is_measured(services::openloop::THREAD),
        "it makes requests"
    );
}

/// As results have had them since the first format.
#[test]
fn what_was_stored_before_still_means_the_same_program() {
    crate::install();
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let server = |json: &str| {
        let stored: serde_json::Value = serde_json::from_str(json).unwrap();
        let kind: Kind = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&kind).unwrap(), stored);
        SERVERS.open(&kind).unwrap().launch(address, None).argv
    };
    let echo = server(r#"{"kind":"echo","threads":2}"#);
    assert_eq!(
        echo[1..],
        load::roles::words(&["serve", "--threads", "2", "--at", "127.0.0.1:80"])
    );
    let memcached = server(r#"{"kind":"memcached","threads":4,"args":["-v"]}"#).join(" ");
    assert!(memcached.contains("-p 80 -t 4") && memcached.ends_with("-v"));
    assert!(server(r#"{"kind":"memcached","threads":4}"#).contains(&"-t".to_owned()));
    assert_eq!(server(r#"{"kind":"nginx","workers":3}"#)[0], "nginx");
    assert_eq!(server(r#"{"kind":"http-echo"}"#)[0], "http-echo");
    let command = r#"{"kind":"command","argv":["x","{port}"],"ready":{"check":"tcp"}}"#;
    assert_eq!(server(command), ["x", "80"]);

    let antagonist = |json: &str| {
        let kind = serde_json::from_str(json).unwrap();
        let program = ANTAGONISTS.open(&kind).unwrap();
        program
            .launch(&Placement::default(), &Calibration::default())
            .argv
    };
    let spinner = antagonist(r#"{"kind":"spinner","threads":2}"#);
    assert_eq!(
        spinner[1..],
        load::roles::words(&["spin", "--threads", "2"])
    );
    assert_eq!(antagonist(r#"{"kind":"spinner"}"#).len(), 4);
    let stress_ng = antagonist(r#"{"kind":"stress-ng","args":["-c1"]}"#);
    assert_eq!(stress_ng, ["stress-ng", "-c1"]);
    assert_eq!(antagonist(r#"{"kind":"command","argv":["x"]}"#), ["x"]);
}

#[test]
fn a_kind_that_is_not_there_is_an_error() {
    crate::install();
    let error = SERVERS.open(&Kind::new("no-such-server")).unwrap_err();
    assert_eq!(error, "there is no server `no-such-server`");
    let error = ANTAGONISTS.open(&Kind::new("stress-ng")).unwrap_err();
    assert!(error.contains("the antagonist `stress-ng`"), "{error}");
}

fn again(kind: &KindDef, stdout: &str) -> Option<Vec<f64>> {
    crate::install();
    let kind = kind.read(&mut Keys::new(serde_json::Map::new()));
    let job = testing::job(kind);
    let printed = Printed {
        stdout: stdout.to_owned(),
        stderr: String::new(),
    };
    let read = read_again(&job.workload, job.load, 2, None, printed)?;
    Some(read.unwrap().iter().map(|m| m.value).collect())
}

#[test]
fn a_time_of_hackbench_is_in_what_it_printed_and_latencies_of_wakeups_are_not() {
    let hackbench = again(&kinds::hackbench::KIND, "Time: 0.600\n");
    assert_eq!(hackbench, Some(vec![0.6]));
    assert_eq!(again(&kinds::wakeup::KIND, "Time: 0.600\n"), None);
}
