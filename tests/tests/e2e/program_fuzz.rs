//! Some hundred mutated inputs through the program itself; `benches/program-fuzz` reads as many as
//! there is time for.

use program_fuzz::{Campaign, started};

/// Some seconds of a debug build.
const INPUTS: usize = 200;

#[test]
fn no_input_makes_a_command_panic_hang_fill_the_memory_or_obey() {
    let keep = tempfile::tempdir().expect("a temporary directory");
    let mut campaign = Campaign::new(1, started);
    let found: Vec<_> = (0..INPUTS)
        .filter_map(|_| campaign.step(keep.path()))
        .map(|found| format!("{:?}: {:?}", found.fault, found.words))
        .collect();
    assert_eq!(found, [""; 0]);
    assert!(campaign.counts.len() > 10, "{:?}", campaign.counts);
}
