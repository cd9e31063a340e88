//! Killed at random moments: no finished trial is lost, the machine is as before, and
//! resume completes the same plan. `benches/kills` does the same a thousand times.

use kills::{Campaign, Damage, Mechanism, Tally, Victim, boot_entries, service_units};
use tests::{alone, skipped};

const SEED: u64 = 7;
/// Runs that may end before their kill comes: they do not count, and others take their place.
const STARTS: usize = 4 * Victim::EACH.len();

/// Every victim is killed once while its run is under way.
fn nothing_is_lost_or_left(mechanism: Mechanism) {
    let _turn = alone();
    let mut campaign = match Campaign::new(mechanism, SEED) {
        Ok(campaign) => campaign,
        Err(why) => return skipped(why),
    };
    let mut victims = Victim::EACH.into_iter();
    let mut victim = victims.next();
    for _ in 0..STARTS {
        let Some(next) = victim else { break };
        if campaign.kill(next) {
            victim = victims.next();
        }
    }
    let tally = campaign.finish();
    assert_eq!(tally.damage, Damage::default());
    assert_eq!(
        tally.kills,
        Victim::EACH.len(),
        "each came in time: {tally}"
    );
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
    nothing_is_lost_or_left(Mechanism::Policy);
}

#[test]
fn kills_leave_no_knob_turned() {
    nothing_is_lost_or_left(Mechanism::Tunables);
}

#[test]
fn kills_leave_no_knob_turned_whose_arms_take_turns() {
    nothing_is_lost_or_left(Mechanism::Turns);
}

#[test]
fn kills_leave_no_thread_with_a_deadline() {
    nothing_is_lost_or_left(Mechanism::Deadline);
}

#[test]
fn kills_leave_no_knob_turned_on_another_machine() {
    nothing_is_lost_or_left(Mechanism::Ssh);
}

#[test]
fn a_bisection_that_is_killed_goes_on_to_the_same_commit() {
    nothing_is_lost_or_left(Mechanism::Bisection);
}

#[test]
fn kills_leave_no_group_and_no_neighbour() {
    nothing_is_lost_or_left(Mechanism::Cgroups);
}

#[test]
fn kills_leave_no_server() {
    nothing_is_lost_or_left(Mechanism::Services);
}

#[test]
fn kills_on_a_full_disk_leave_no_knob_turned() {
    nothing_is_lost_or_left(Mechanism::FullDisk);
}

#[test]
fn kills_within_the_files_of_the_boot_loader_keep_what_is_the_owners() {
    expect_undamaged(boot_entries(10, SEED), 10);
}

#[test]
fn kills_within_the_units_of_a_service_leave_no_half_of_one() {
    expect_undamaged(service_units(10, SEED), 10);
}
