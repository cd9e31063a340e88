//! The kill test at full size. It prints a line for each mechanism, and fails if anything
//! was lost or left.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use kills::{Campaign, Damage, HEADING, Mechanism, Tally, Victim};
use std::process::ExitCode;

const USAGE: &str = "usage: kills [KILLS] [policy|tunables|cgroups|services|full-disk|guest]…";

fn main() -> Result<ExitCode, String> {
    let mut kills = 1000;
    let mut mechanisms = Vec::new();
    for word in std::env::args().skip(1) {
        if let Ok(number) = word.parse() {
            kills = number;
            continue;
        }
        let known = Mechanism::ALL.into_iter().find(|m| m.name() == word);
        mechanisms.push(known.ok_or(USAGE)?);
    }
    if mechanisms.is_empty() {
        mechanisms = Mechanism::ALL.to_vec();
    }
    println!("{:<10} {HEADING}", "");
    let mut damage = Damage::default();
    let whole: usize = mechanisms.iter().map(|m| weight(*m)).sum();
    for mechanism in &mechanisms {
        let share = (kills * weight(*mechanism)).div_ceil(whole);
        match campaign(*mechanism, share) {
            Ok(tally) => {
                println!("{mechanism:<10} {tally}");
                damage += tally.damage;
            }
            Err(why) => println!("{mechanism:<10} not run: {why}"),
        }
    }
    Ok(match damage == Damage::default() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The part of the kills that a mechanism gets: a guest takes long to boot.
fn weight(mechanism: Mechanism) -> usize {
    match mechanism {
        Mechanism::Guest => 5,
        _ => 19,
    }
}

fn campaign(mechanism: Mechanism, kills: usize) -> Result<Tally, String> {
    let mut campaign = Campaign::new(mechanism, 7)?;
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
