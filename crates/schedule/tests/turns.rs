//! Lengths of processes in which arms take turns.

#![allow(clippy::unwrap_used)]

mod named;

const WHOLE: u64 = 83;

/// Pairs in the process of each of these blocks, of windows of 10 ms after 2 ms.
fn pairs(head: &str, workload: &str, blocks: &[u32]) -> Vec<u64> {
    let text = format!(
        "{head}\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"slower\"\nhandicap = \"3%\"\n\
         [[workload]]\nkind = \"wakeup\"\nwarmup = \"50ms\"\nduration = \"1s\"\nin-place = \"always\"\n\
         turn = \"10ms\"\nwashout = \"2ms\"\n{workload}"
    );
    let experiment = named::parse_experiment(&text).unwrap();
    let plan = schedule::plan_blocks(&experiment);
    let pairs = |block: &u32| {
        let place = plan.trials.iter().find(|trial| trial.block == *block);
        let workload = &experiment.workloads[0];
        let lengths = workload.in_place.unwrap();
        let taking = schedule::plan_turns(&experiment, &plan, place.unwrap(), lengths).unwrap();
        let turns_ns = schedule::turns_ns(&experiment, workload, *block, lengths);
        assert_eq!(turns_ns, taking.turns.all_ns());
        taking.turns.order.len() as u64 / 2
    };
    blocks.iter().map(pairs).collect()
}

#[test]
fn the_first_processes_are_short_and_each_is_longer_than_the_one_before() {
    // A process has 0.35 s around its turns.
    let found = pairs("", "", &[1, 2, 3, 5, 6, 40]);
    assert_eq!(found, [14, 29, 43, 72, WHOLE, WHOLE]);
    let all: Vec<u32> = (1..=40).collect();
    let sum: u64 = pairs("", "", &all).into_iter().sum();
    assert!(10 * sum >= 9 * 40 * WHOLE, "{sum} pairs in all");
}

#[test]
fn a_short_process_has_pairs_enough_for_an_answer() {
    let sure = pairs("stop = { confidence = 0.9999999 }", "", &[1]);
    assert!(sure[0] > 20, "{sure:?}");
}

#[test]
fn processes_are_whole_where_nothing_comes_sooner_by_short_ones() {
    let fixed = "stop = { min-blocks = 20, max-blocks = 20 }";
    assert_eq!(pairs(fixed, "", &[1, 20]), [WHOLE; 2]);
    let few = "stop = { min-blocks = 1, max-blocks = 9 }";
    assert_eq!(pairs(few, "", &[1, 9]), [WHOLE; 2]);
    // It starts for longer than the arms take turns.
    let slow = "[[workload.service]]\nname = \"store\"\ncommand = [\"./store\"]\n";
    assert_eq!(pairs("", slow, &[1]), [WHOLE]);
}
