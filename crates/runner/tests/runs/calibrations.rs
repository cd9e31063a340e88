//! Calibrations: found once for a cell, or once for all loads of a workload.

use crate::place::{Place, experiment, undecided};
use machines::fake::FakeTarget;
use model::Load;
use results::read::read_calibrations;

/// Number of the calibration that each cell has.
fn turns(target: FakeTarget) -> Vec<u64> {
    let mut wanted = experiment(&["default", "same"]);
    wanted.workloads[0].loads = vec![Load::Count(1), Load::Count(2)];
    let place = Place::new(wanted);
    place.run(target);
    let found = read_calibrations(place.path()).unwrap();
    let mut turns: Vec<u64> = found.values().map(|c| c.values["turn"]).collect();
    turns.sort_unstable();
    turns
}

#[test]
fn a_calibration_is_of_its_cell_unless_it_holds_for_all_loads() {
    assert_eq!(turns(undecided()), [1, 2]);
    let mut target = undecided();
    target.calibrates_all_loads = true;
    assert_eq!(turns(target), [1, 1]);
}
