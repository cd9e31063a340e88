//! Two kernels as arms of one run: the blocks boot each of them, and every trial has the proof
//! of its own.

use super::guests::{KERNEL, fact, trials_that_count};
use std::collections::{BTreeMap, BTreeSet};
use tests::{Bench, beside_others, expect_code, no_guests};

/// Another kernel than [`KERNEL`]: Linux 6.12.
const OTHER: &str = "debian:trixie";

#[test]
fn two_kernels_are_compared_within_blocks_and_each_is_proven() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"512M\"\n\
         [[arm]]\nname = \"new\"\n\
         [[arm]]\nname = \"old\"\nkernel = \"{OTHER}\"\n\
         [[workload]]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"uname -r; cat /proc/sys/kernel/random/boot_id\"]\n\
         [stop]\nmin-blocks = 2\nmax-blocks = 2\n"
    );
    let file = bench.file("kernels.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let trials = trials_that_count(&bench);
    assert_eq!(trials.len(), 4);
    let mut boots = BTreeSet::new();
    let mut build_ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut blocks: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for stored in &trials {
        let (trial, result) = (&stored.trial, &stored.trial.result);
        assert_eq!(result.state.why(), None, "{}", trial.arm);
        let printed = std::fs::read_to_string(stored.dir.join("stdout.log")).expect("kept");
        let (release, boot) = printed.trim().split_once('\n').expect("two lines");
        // What the program in the guest saw, what the image says, and what is on record.
        assert_eq!(
            release.starts_with("6.12."),
            trial.arm == "old",
            "{release}"
        );
        for what in ["kernel", "kernel build ID"] {
            let fact = fact(result, what);
            assert_eq!(fact.wanted.as_ref(), Some(&fact.found), "{what}");
        }
        let kernel = &fact(result, "kernel").found;
        assert!(kernel.contains(release), "{kernel}: {release}");
        let build_id = &fact(result, "kernel build ID").found;
        build_ids.entry(&trial.arm).or_default().insert(build_id);
        blocks
            .entry(trial.place.block)
            .or_default()
            .insert(&trial.arm);
        boots.insert(boot.to_owned());
    }
    assert_eq!(boots.len(), 4, "each block boots each kernel: {boots:?}");
    assert!(blocks.values().all(|arms| arms.len() == 2), "{blocks:?}");
    assert!(
        build_ids.values().all(|ids| ids.len() == 1),
        "{build_ids:?}"
    );
    assert_ne!(build_ids["new"], build_ids["old"]);
}
