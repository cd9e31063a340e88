//! The kill test at full size. It prints a line for each mechanism, and fails if anything
//! was lost or left.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use kills::{Campaign, Damage, HEADING, Mechanism, Tally, Victim, boot_entries, service_units};
use std::process::ExitCode;

const USAGE: &str = "usage: kills [KILLS] [policy|tunables|turns|deadline|ssh|bisection|cgroups|services|\
                     full-disk|guest|xen|boot-entries|units]…";

/// Commands that write a few files, killed in the middle.
const STEPS: [(&str, Steps); 2] = [("boot-entries", boot_entries), ("units", service_units)];
type Steps = fn(usize, u64) -> Result<Tally, String>;

/// Process that is killed.
#[derive(Clone, Copy)]
enum Subject {
    Runs(Mechanism),
    Steps(&'static str, Steps),
}

impl Subject {
    fn all() -> Vec<Subject> {
        let steps = STEPS.map(|(name, steps)| Subject::Steps(name, steps));
        let runs = Mechanism::ALL.into_iter().map(Subject::Runs);
        runs.chain(steps).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Subject::Runs(mechanism) => mechanism.name(),
            Subject::Steps(name, _) => name,
        }
    }

    /// The part of the kills that it gets: a guest takes long to boot, a bisection to end.
    fn weight(self) -> usize {
        match self {
            Subject::Runs(Mechanism::Guest | Mechanism::Xen | Mechanism::Bisection) => 5,
            _ => 19,
        }
    }

    fn kill(self, kills: usize) -> Result<Tally, String> {
        match self {
            Subject::Runs(mechanism) => campaign(mechanism, kills),
            Subject::Steps(_, steps) => steps(kills, SEED),
        }
    }
}

const SEED: u64 = 7;

fn main() -> Result<ExitCode, String> {
    let mut kills = 1000;
    let mut subjects = Vec::new();
    for word in std::env::args().skip(1) {
        if let Ok(number) = word.parse() {
            kills = number;
            continue;
        }
        let known = Subject::all().into_iter().find(|s| s.name() == word);
        subjects.push(known.ok_or(USAGE)?);
    }
    if subjects.is_empty() {
        subjects = Subject::all();
    }
    println!("{:<12} {HEADING}", "");
    let mut damage = Damage::default();
    let whole: usize = subjects.iter().map(|s| s.weight()).sum();
    for subject in &subjects {
        let share = (kills * subject.weight()).div_ceil(whole);
        match subject.kill(share) {
            Ok(tally) => {
                println!("{:<12} {tally}", subject.name());
                damage += tally.damage;
            }
            Err(why) => println!("{:<12} not run: {why}", subject.name()),
        }
    }
    Ok(match damage == Damage::default() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn campaign(mechanism: Mechanism, kills: usize) -> Result<Tally, String> {
    let mut campaign = Campaign::new(mechanism, SEED)?;
    for victim in Victim::EACH.into_iter().cycle() {
        campaign.kill(victim);
        if campaign.tally.kills.is_multiple_of(10) {
            eprintln!("{mechanism:<10} {}", campaign.tally);
        }
        let stuck = campaign.tally.damage.runs_stuck;
        if campaign.tally.kills >= kills || stuck > 5 {
            break;
        }
    }
    Ok(campaign.finish())
}
