//! Between the trials of two cells: pauses, and machines that are started anew for each workload.

use crate::place::{Place, experiment, took};
use machines::fake::FakeTarget;
use model::{Experiment, Load, Reset, TargetSpec};
use runner::{Event, Outcome};
use std::sync::atomic::Ordering;

/// Two workloads, the first of which has two loads, over two blocks.
fn two_workloads() -> Experiment {
    let mut wanted = experiment(&["a", "b"]);
    let mut second = wanted.workloads[0].clone();
    second.name = "link".to_owned();
    wanted.workloads[0].loads = vec![Load::Count(1), Load::Count(2)];
    wanted.workloads.push(second);
    wanted.stop.min_blocks = 2;
    wanted.stop.max_blocks = 2;
    wanted
}

#[test]
fn a_machine_is_started_anew_for_each_workload_of_a_block_and_not_for_its_loads() {
    for (reset, boots) in [
        (Reset::None, 1),
        (Reset::Block, 2),
        (Reset::Workload, 4),
        (Reset::Trial, 12),
    ] {
        let mut wanted = two_workloads();
        wanted.target = TargetSpec::new("local", &serde_json::json!({ "reset": reset }));
        let place = Place::new(wanted);
        let mut target = FakeTarget::new(|_| took(1.0));
        target.can.reset = reset;
        let booted = target.boots.clone();
        assert_eq!(place.run(target).len(), 12);
        assert_eq!(booted.lock().unwrap().len(), boots, "{reset:?}");
    }
}

fn is_pause(event: &Event) -> bool {
    matches!(event, Event::Step { step } if step.starts_with("pausing for 1ms"))
}

#[test]
fn a_pause_comes_between_two_cells_and_not_within_one() {
    let mut wanted = two_workloads();
    wanted.pause_ns = 1_000_000;
    let place = Place::new(wanted);
    let mut cells: Vec<usize> = place.plan.trials.iter().map(|t| t.cell).collect();
    cells.dedup();
    let mut pauses = 0;
    let target = FakeTarget::new(|_| took(1.0));
    let count = |event: &Event, _: &_| pauses += usize::from(is_pause(event));
    let outcome = place.run_with(target, place.writer(), Vec::new(), count);
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(pauses, cells.len() - 1);
}

#[test]
fn an_interrupt_ends_a_pause() {
    let mut wanted = two_workloads();
    // Nobody waits for its end.
    wanted.pause_ns = 100 * 3_600_000_000_000;
    let place = Place::new(wanted);
    let target = FakeTarget::new(|_| took(1.0));
    let outcome = place.run_with(target, place.writer(), Vec::new(), |event, stop| {
        if matches!(event, Event::Step { step } if step.starts_with("pausing for ")) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Interrupted);
    assert_eq!(place.trials().len(), 2);
}
