//! A long run over ssh to a guest, as a user with sudo, whose connection is cut again and again: in the
//! middle of anything, by the death of either end or by a dead line.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use model::Trial;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::read;
use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tests::{Bench, Machine, expect_code};

const SECONDS: u64 = 1000;
const CUTS: u64 = 50;
/// A knob that changes nothing while it is a little higher for a moment.
const KNOB: &str = "cat /proc/sys/vm/swappiness";
/// Trials over the whole time, and more.
const BLOCKS: u32 = 120;
/// How long the rest may take, and the last undoing.
const LIMIT: Duration = Duration::from_secs(900);

/// An arm with the knob higher by one, beside the default.
fn experiment(machine: &Machine, before: u32) -> String {
    let config = machine.bench().path("config");
    let agent = machine.stripped();
    let value = before + 1;
    format!(
        "[target]\nkind = \"ssh\"\nhost = \"lab@machine\"\nconfig = \"{}\"\nagent = \"{}\"\n\
         [[arm]]\nname = \"default\"\n\
         [[arm]]\nname = \"tuned\"\ntunables = {{ \"vm.swappiness\" = \"{value}\" }}\n\
         [[workload]]\nkind = \"command\"\ncommand = [\"sleep\", \"3\"]\n\
         [stop]\nmin-blocks = {BLOCKS}\nmax-blocks = {BLOCKS}\nmax-attempts = 1000\n",
        config.display(),
        agent.display()
    )
}

fn start(bench: &Bench, args: &[&str]) -> Child {
    let said = File::options()
        .create(true)
        .append(true)
        .open(bench.path("said"));
    let mut command = bench.command(args);
    command.stdout(Stdio::null()).stderr(said.unwrap());
    command.spawn().unwrap()
}

/// Trials that count.
fn finished(bench: &Bench) -> BTreeSet<(u32, String)> {
    if !bench.path("out/trials").exists() {
        return BTreeSet::new();
    }
    let stored = read::read_trials(&bench.path("out")).unwrap();
    let trials = stored.into_iter().map(|stored| stored.trial);
    let good = trials.filter(Trial::is_ok);
    good.map(|t| (t.place.block, t.arm)).collect()
}

/// Cuts the connection in one of three ways; says how, and whether there was one.
fn cut(machine: &Machine, run: &Child, random: &mut ChaCha8Rng) -> (&'static str, bool) {
    match random.random_range(0..3) {
        0 => {
            let parent = run.id().to_string();
            let mut kill = Command::new("pkill");
            let status = kill.args(["-KILL", "-P", &parent, "ssh"]).status();
            ("its client was killed", status.unwrap().success())
        }
        1 => {
            let mut kill = machine.command("pkill -KILL -f 'sshd: lab@notty'");
            let hit = kill.output().unwrap().status.success();
            ("its session was killed", hit)
        }
        _ => {
            machine.plug(false);
            std::thread::sleep(Duration::from_secs(random.random_range(1..30)));
            machine.plug(true);
            ("its line was dead for a while", true)
        }
    }
}

/// The end of the run, which is resumed where it ended with an error.
fn ended(bench: &Bench, run: &mut Child) -> Option<ExitStatus> {
    let limit = Instant::now() + LIMIT;
    while Instant::now() < limit {
        match run.try_wait().unwrap() {
            Some(status) if status.success() => return Some(status),
            Some(_) => *run = start(bench, &["run", "--resume", "out"]),
            None => std::thread::sleep(Duration::from_secs(1)),
        }
    }
    let _ = run.kill();
    None
}

#[test]
#[ignore = "takes 20 minutes; make test-long runs it"]
fn a_connection_that_is_cut_fifty_times_loses_no_finished_trial_and_leaves_no_knob() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let before: u32 = machine.wait(KNOB).trim().parse().unwrap();
    let bench = machine.bench();
    let file = bench.file("soak.toml", &experiment(&machine, before));
    let mut run = start(bench, &["run", &file, "-o", "out"]);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let begun = Instant::now();
    let (mut seen, mut hits) = (BTreeSet::new(), 0);
    for number in 1..=CUTS {
        let due = Duration::from_millis(
            (SECONDS * 1000 / CUTS) * (number - 1) + random.random_range(0..20_000),
        );
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let (how, hit) = cut(&machine, &run, &mut random);
        hits += u64::from(hit);
        let now = finished(bench);
        let at = begun.elapsed().as_secs();
        eprintln!(
            "{at} s: cut {number}: {how} ({hit}); {} trials are finished",
            now.len()
        );
        assert!(now.is_superset(&seen), "{seen:?} {now:?}");
        seen = now;
        if let Some(status) = run.try_wait().unwrap() {
            assert!(!status.success(), "all is measured after {number} cuts");
            eprintln!("the run ended with {status} and is resumed");
            run = start(bench, &["run", "--resume", "out"]);
        }
    }
    // A client or a session that is just being made anew cannot be hit.
    assert!(hits * 2 > CUTS, "{hits} of {CUTS} cuts hit a connection");
    let ended = ended(bench, &mut run);
    eprintln!(
        "{} s, {hits} cuts hit a connection",
        begun.elapsed().as_secs()
    );
    let said = std::fs::read_to_string(bench.path("said")).unwrap();
    assert!(ended.is_some(), "{said}");
    assert!(finished(bench).is_superset(&seen));
    assert_eq!(finished(bench).len(), 2 * BLOCKS as usize);
    expect_code(&bench.run(&["verify", "out"]), 0);
    let after: u32 = machine.wait(KNOB).trim().parse().unwrap();
    assert_eq!(after, before);
    let left = machine.wait("pgrep -fa '[s]chedlab' || true");
    assert_eq!(left.trim(), "");
}
