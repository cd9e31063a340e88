//! Killed at random moments: no finished trial is lost, the machine is as before, and
//! resume completes the same plan. `benches/kills` does the same a thousand times.

use kills::{Campaign, Damage, Mechanism, Victim};
use tests::{alone, skipped};

const KILLS: usize = 6;

fn nothing_is_lost_or_left(mechanism: Mechanism) {
    let _turn = alone();
    let mut campaign = match Campaign::new(mechanism, 7) {
        Ok(campaign) => campaign,
        Err(why) => return skipped(why),
    };
    for victim in Victim::EACH.into_iter().cycle().take(KILLS) {
        campaign.kill(victim);
    }
    let tally = campaign.finish();
    assert_eq!(tally.damage, Damage::default());
    assert!(
        tally.kills > KILLS / 2,
        "most of them came in time: {tally}"
    );
    assert!(tally.completed > 0, "{tally}");
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
