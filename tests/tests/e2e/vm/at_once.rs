//! Several guests at once on one host, each on CPUs of its own, which share the blocks of a hunt.

use super::guests::experiment;
use super::proof::{arm, no_faulty_guests};
use results::ResultSet;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout};

/// Number of QEMUs that run for this bench.
fn count_guests(bench: &Bench) -> usize {
    let state = bench.path("state").display().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let processes = processes.map(|process| process.path());
    let is_ours = |process: &PathBuf| {
        let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
        let is_qemu = read("cmdline").starts_with(b"qemu-system");
        is_qemu && String::from_utf8_lossy(&read("environ")).contains(&state)
    };
    processes.filter(is_ours).count()
}

/// Kills a run while two guests are there, and waits until they have gone.
fn kill_under_way(bench: &Bench, run: &mut Child) {
    while count_guests(bench) < 2 {
        let ended = run.try_wait().expect("it is asked");
        assert_eq!(ended, None, "before both guests were there");
        sleep(Duration::from_millis(20));
    }
    run.kill().expect("it runs");
    run.wait().expect("it has ended");
    while count_guests(bench) > 0 {
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_guests_find_an_ejection_in_both_and_a_hunt_that_is_killed_leaves_none_and_goes_on() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    if available_parallelism().map_or(1, NonZero::get) < 2 {
        return tests::skipped("two guests at once need two CPUs");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let event = "[[event]]\nwhen = \"ejected\"\ncool-down = \"1ms\"\n";
    let text = experiment(&arm("thrown", "error:1", ""), "sleep 2");
    let text = text.replace("memory", "cpus = 1\nmemory");
    let text = text.replace("max-attempts = 1", "max-attempts = 3");
    let file = bench.file("x.toml", &format!("{event}{text}"));
    let mut hunt = bench.command(&["hunt", &file, "--guests", "2", "-o", "out"]);
    hunt.stdout(Stdio::null()).stderr(Stdio::null());
    kill_under_way(&bench, &mut hunt.spawn().expect("schedlab starts"));

    let resumed = bench.run(&["run", "--resume", "out"]);
    expect_code(&resumed, 0);
    let said = stdout(&resumed);
    assert!(said.contains("thrown is worse in events"), "{said}");
    assert!(said.contains("2 guests measured at once"), "{said}");
    let results = ResultSet::read(&bench.path("out")).expect("readable");
    let mut thrown: BTreeMap<String, u64> = BTreeMap::new();
    for (guest, of_guest) in results.split_by_part() {
        for stored in of_guest.trials.iter().filter(|t| t.trial.is_ok()) {
            let pinned = stored.trial.metric("host_pinned_cpus").expect("measured");
            assert_eq!(pinned.value, 1.0);
            let event = stored.trial.find_event("ejected").expect("counted");
            *thrown.entry(guest.clone()).or_default() += event.count();
        }
    }
    assert_eq!(thrown.keys().collect::<Vec<_>>(), ["guest-1", "guest-2"]);
    assert!(thrown.values().all(|count| *count > 0), "{thrown:?}");
    let of_start = |start: &model::Start| start.machines[0].system.facts["vm.pinned_cpus"].clone();
    let mut cpus: Vec<String> = results.starts.iter().map(of_start).collect();
    cpus.sort();
    cpus.dedup();
    assert_eq!(cpus.len(), 2, "{cpus:?}");
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn guests_for_which_there_is_no_room_are_refused_before_anything_starts() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    let apart = "[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\n[[arm]]\nname = \"a\"\n\
                 [[workload]]\nkind = \"http\"\nload-on = \"controller\"\n";
    bench.file("apart.toml", apart);
    let run = |line: &str| bench.run(&line.split(' ').collect::<Vec<_>>());
    let hunt = "-a default -a batch -w wakeup --event oom_kill";
    for (code, line, said) in [
        (
            3,
            "--vm debian:sid --guests 5000",
            "5000 guests at once need 10000 CPUs",
        ),
        (2, "--vm debian:sid --guests 0", "at least one guest"),
        (
            2,
            "--vm debian:sid --guests 2 --clock virtual",
            "no CPU for itself",
        ),
        (2, "--guests 2", "is for guests of QEMU"),
        (2, "apart.toml --guests 2", "needs CPUs of this machine"),
    ] {
        let hunt = if line.starts_with("apart") {
            "-q"
        } else {
            hunt
        };
        let output = run(&format!("run -o out {line} {hunt}"));
        expect_code(&output, code);
        assert!(
            stderr(&output).contains(said),
            "{line}: {}",
            stderr(&output)
        );
        assert!(!bench.path("out").exists(), "{line}");
    }
    let plan = |guests| {
        stdout(&run(&format!(
            "plan {hunt} --vm debian:sid --guests {guests}"
        )))
    };
    assert!(
        plan(4).contains("4 machines measure at once"),
        "{}",
        plan(4)
    );
    assert!(plan(4).contains("on 4 machines at once"));
    assert!(!plan(1).contains("at once"));
}
