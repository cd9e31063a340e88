//! Killed at random moments: no finished trial is lost, the machine is as before, and
//! resume completes the same plan. `benches/kills` does the same a thousand times.

use kills::{Campaign, Damage, Mechanism, Tally, Victim, boot_entries, service_units};
use tests::{beside_others, skipped, with_lock_of_runs};

const SEED: u64 = 7;
/// The mechanisms, each with a test. Each has so many of the eight victims, beginning where the one before ended: each
/// victim is met at least twice in `make test`. `make test-long` has all of them.
const ROWS: [Mechanism; 9] = [
    Mechanism::Policy,
    Mechanism::Tunables,
    Mechanism::Turns,
    Mechanism::Deadline,
    Mechanism::Ssh,
    Mechanism::Bisection,
    Mechanism::Cgroups,
    Mechanism::Services,
    Mechanism::FullDisk,
];
const IN_EACH: usize = 3;

fn some_lose_and_leave_nothing(mechanism: Mechanism) {
    let row = ROWS.iter().position(|other| *other == mechanism);
    let before = row.expect("a row") * IN_EACH;
    let victims = Victim::EACH.into_iter().cycle().skip(before).take(IN_EACH);
    nothing_is_lost_or_left(mechanism, &victims.collect::<Vec<_>>());
}

/// Every victim is killed once while its run is under way. What turns a knob of this machine has the
/// lock of runs.
fn nothing_is_lost_or_left(mechanism: Mechanism, victims: &[Victim]) {
    let _turn = match mechanism.needs_lock_of_runs() {
        true => with_lock_of_runs(),
        false => beside_others(),
    };
    let mut campaign = match Campaign::new(mechanism, SEED) {
        Ok(campaign) => campaign,
        Err(why) => return skipped(why),
    };
    let mut left = victims.iter();
    let mut victim = left.next();
    // Runs that end before their kill comes do not count, and others take their place.
    for _ in 0..4 * victims.len() {
        let Some(next) = victim else { break };
        if campaign.kill(*next) {
            victim = left.next();
        }
    }
    let tally = campaign.finish();
    assert_eq!(tally.damage, Damage::default());
    assert_eq!(tally.kills, victims.len(), "each came in time: {tally}");
    assert!(tally.completed > 0, "{tally}");
}

fn expect_undamaged(tally: Result<Tally, String>, kills: usize) {
    match tally {
        Err(why) => skipped(why),
        Ok(tally) => {
            assert_eq!(tally.damage, Damage::default());
            assert_eq!(tally.kills, kills);
        }
    }
}

#[test]
fn kills_lose_no_trial_and_leave_no_process_of_another_session() {
    some_lose_and_leave_nothing(Mechanism::Policy);
}

#[test]
fn kills_leave_no_knob_turned() {
    some_lose_and_leave_nothing(Mechanism::Tunables);
}

#[test]
fn kills_leave_no_knob_turned_whose_arms_take_turns() {
    some_lose_and_leave_nothing(Mechanism::Turns);
}

#[test]
fn kills_leave_no_thread_with_a_deadline() {
    some_lose_and_leave_nothing(Mechanism::Deadline);
}

#[test]
fn kills_leave_no_knob_turned_on_another_machine() {
    some_lose_and_leave_nothing(Mechanism::Ssh);
}

#[test]
#[ignore = "a minute: make test-long ROWS=kills"]
fn a_bisection_that_is_killed_goes_on_to_the_same_commit() {
    some_lose_and_leave_nothing(Mechanism::Bisection);
}

#[test]
fn kills_leave_no_group_and_no_neighbour() {
    some_lose_and_leave_nothing(Mechanism::Cgroups);
}

#[test]
fn kills_leave_no_server() {
    some_lose_and_leave_nothing(Mechanism::Services);
}

#[test]
#[ignore = "takes minutes: make test-long ROWS=containers"]
fn kills_leave_no_container() {
    nothing_is_lost_or_left(Mechanism::Containers, &Victim::EACH);
}

#[test]
#[ignore = "half a minute: make test-long ROWS=kills"]
fn kills_on_a_full_disk_leave_no_knob_turned() {
    some_lose_and_leave_nothing(Mechanism::FullDisk);
}

#[test]
fn kills_within_the_files_of_the_boot_loader_keep_what_is_the_owners() {
    expect_undamaged(boot_entries(10, SEED), 10);
}

#[test]
fn kills_within_the_units_of_a_service_leave_no_half_of_one() {
    expect_undamaged(service_units(10, SEED), 10);
}

#[test]
#[ignore = "kills every victim of each mechanism: a quarter of an hour, in make test-long"]
fn every_victim_of_each_mechanism_loses_and_leaves_nothing() {
    for mechanism in ROWS {
        nothing_is_lost_or_left(mechanism, &Victim::EACH);
    }
}
