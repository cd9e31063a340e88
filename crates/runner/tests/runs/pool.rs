//! Several machines that measure one experiment together.

use super::events::{ejections, one_ejection};
use super::place::{Place, experiment, took};
use machines::fake::{FakeTarget, Fate};
use model::{DecidedBy, Experiment, Trial};
use runner::{Event, Outcome, Pool, RunError};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Trials of a machine, how its run ended, and its warnings.
type End = (Vec<Trial>, Result<Outcome, RunError>, Vec<String>);
/// Shorter than that of a run.
const GRACE: Duration = Duration::from_secs(1);
/// What becomes of the trials of a machine.
type Story = fn(usize, &model::TrialSpec) -> Fate;

fn run_on(
    machines: usize,
    experiment: &Experiment,
    story: Story,
    ends_after: fn(usize) -> Option<usize>,
) -> Vec<End> {
    // No block is late.
    run_with_grace(
        Duration::from_secs(600),
        machines,
        experiment,
        story,
        ends_after,
    )
}

fn run_with_grace(
    grace: Duration,
    machines: usize,
    experiment: &Experiment,
    story: Story,
    ends_after: fn(usize) -> Option<usize>,
) -> Vec<End> {
    let of_all = schedule::plan_blocks(experiment);
    let pool = Pool::new(experiment, &of_all).with_grace(grace);
    let start = Barrier::new(machines);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..machines)
            .map(|machine| {
                let (member, start) = (pool.add_member(&[]), &start);
                let place = Place::new(Experiment {
                    seed: schedule::machine_seed(experiment.seed, &machine.to_string()),
                    ..experiment.clone()
                });
                scope.spawn(move || {
                    let target = FakeTarget::new(move |spec| {
                        std::thread::sleep(Duration::from_millis(2));
                        story(machine, spec)
                    });
                    let (mut trials, writer) = (Vec::new(), place.writer());
                    let mut sink = |event: &Event, stop: &AtomicBool| {
                        if let Event::TrialEnded { trial } = event {
                            trials.push((*trial).clone());
                        }
                        stop.store(Some(trials.len()) == ends_after(machine), Ordering::Relaxed);
                    };
                    start.wait();
                    let pool = Some(member);
                    let end = place.run_in(pool, target, None, writer, Vec::new(), &mut sink);
                    (trials, end, said(&place))
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join().unwrap());
        ends.collect()
    })
}

/// Warnings of a machine, which has no results where it came too late.
fn said(place: &Place) -> Vec<String> {
    let manifest = results::read::read_manifest(place.path()).unwrap();
    let warnings = manifest.warnings.into_iter();
    warnings.map(|warning| warning.what).collect()
}

/// Noise between the arms that decides nothing in a dozen blocks.
fn noisy(spec: &model::TrialSpec) -> Fate {
    let noise = (spec.seed % 1000) as f64 / 1000.0;
    took(if spec.arm.name == "default" {
        1.0
    } else {
        0.5 + noise
    })
}

fn blocks(trials: &[Trial]) -> usize {
    let blocks: BTreeSet<u32> = trials.iter().map(|trial| trial.place.block).collect();
    blocks.len()
}

#[test]
fn all_machines_together_measure_as_many_blocks_as_one_would() {
    let ends = run_on(
        4,
        &experiment(&["default", "same"]),
        |_, spec| noisy(spec),
        |_| None,
    );
    let counts: Vec<usize> = ends.iter().map(|(trials, ..)| blocks(trials)).collect();
    assert_eq!(counts.iter().sum::<usize>(), 12, "{counts:?}");
    assert!(
        counts.iter().filter(|count| **count > 0).count() > 1,
        "{counts:?}"
    );
    assert!(
        ends.iter()
            .all(|(_, end, _)| matches!(end, Ok(Outcome::Done)))
    );
}

#[test]
fn an_interrupted_machine_gives_its_open_block_to_the_others() {
    let ends = run_on(
        2,
        &experiment(&["default", "same"]),
        |_, spec| noisy(spec),
        |machine| (machine == 0).then_some(3),
    );
    let whole: usize = ends
        .iter()
        .map(|(trials, ..)| {
            (1..=12)
                .filter(|b| trials.iter().filter(|t| t.place.block == *b).count() == 2)
                .count()
        })
        .sum();
    let begun: usize = ends.iter().map(|(trials, ..)| blocks(trials)).sum();
    assert_eq!((whole, begun), (12, 13), "one was begun and given back");
    assert!(matches!(ends[0].1, Ok(Outcome::Interrupted)));
}

#[test]
fn a_block_of_a_machine_that_waits_is_measured_by_another() {
    let story: Story = |machine, spec| {
        if machine == 0 && spec.arm.name == "default" {
            // Its node is somebody else's for a while.
            std::thread::sleep(GRACE * 4);
        }
        noisy(spec)
    };
    let arms = experiment(&["default", "same"]);
    let ends = run_with_grace(GRACE, 2, &arms, story, |_| None);
    let counts: Vec<usize> = ends.iter().map(|(trials, ..)| blocks(trials)).collect();
    let sum: usize = counts.iter().sum();
    assert_eq!(sum, 13, "its own comes to an end all the same: {counts:?}");
    let is_done = |(_, end, _): &End| matches!(end, Ok(Outcome::Done));
    assert!(ends.iter().all(is_done));
}

#[test]
fn a_machine_on_which_nothing_works_takes_no_blocks_from_the_others() {
    let story: Story = |machine, spec| match machine {
        0 => Fate::Failed("the disk is full"),
        1 if spec.arm.name == "same" => Fate::Failed("no such scheduler"),
        _ => noisy(spec),
    };
    let ends = run_on(3, &experiment(&["default", "same"]), story, |_| None);
    let good = |trials: &[Trial]| trials.iter().filter(|trial| trial.is_ok()).count();
    assert!(
        ends[0].0.len() <= 6 && good(&ends[0].0) == 0,
        "{:?}",
        ends[0].0.len()
    );
    assert!(ends[1].0.len() <= 4, "{:?}", ends[1].0.len());
    assert!(good(&ends[2].0) >= 22, "the third measures nearly all");
    let is_told = |said: &[String]| said.iter().any(|what| what.contains("took no more blocks"));
    assert!(is_told(&ends[0].2) && is_told(&ends[1].2), "{ends:?}");
    assert!(!is_told(&ends[2].2));
    assert!(
        ends.iter()
            .all(|(_, end, _)| matches!(end, Ok(Outcome::Done)))
    );
}

#[test]
fn sixty_four_machines_find_what_they_have_in_common() {
    // Each machine is slower or faster as a whole, which is not the arm's doing.
    let story: Story = |machine, spec| {
        let of_machine = 1.0 + machine as f64 / 64.0;
        let of_arm = if spec.arm.name == "slow" { 1.05 } else { 1.0 };
        let noise = 1.0 + 0.02 * ((spec.seed.wrapping_mul(31) % 11) as f64 / 5.0 - 1.0);
        let own = if spec.arm.name == "slow" { 1.0 } else { noise };
        took(of_machine * of_arm * own)
    };
    let mut wanted = experiment(&["default", "slow"]);
    wanted.stop.max_blocks = 500;
    let ends = run_on(64, &wanted, story, |_| None);
    let begun: usize = ends.iter().map(|(trials, ..)| blocks(trials)).sum();
    // Those under way when it was decided come to their end.
    assert!((5..300).contains(&begun), "{begun} blocks");
    let most = ends.iter().map(|(trials, ..)| blocks(trials)).max();
    assert!(
        most.is_some_and(|most| most < 20),
        "{most:?} on one machine"
    );
    assert!(
        ends.iter()
            .all(|(_, end, _)| matches!(end, Ok(Outcome::Done)))
    );
}

/// Blocks of a hunt on one machine, in two of three of which one arm is thrown out.
fn hunt() -> (Experiment, Vec<Vec<Trial>>) {
    let mut hunted = ejections();
    hunted.stop.decided_by = DecidedBy::Events;
    hunted.stop.max_blocks = 60;
    let mut target = FakeTarget::new(|_| took(1.0));
    target.happened = |spec| one_ejection(spec.arm.name == "thrown" && spec.seed % 3 > 0);
    let trials = Place::new(hunted.clone()).run(target);
    let blocks = trials.chunk_by(|a, b| a.place.block == b.place.block);
    (hunted, blocks.map(<[Trial]>::to_vec).collect())
}

/// These blocks in their order, with the numbers of one guest.
fn numbered(blocks: &[&Vec<Trial>]) -> Vec<Trial> {
    let number = |(block, trials): (u32, &&Vec<Trial>)| {
        let mut trials = (*trials).clone();
        trials
            .iter_mut()
            .for_each(|trial| trial.place.block = block);
        trials
    };
    (1..).zip(blocks).flat_map(number).collect()
}

#[test]
fn the_verdict_on_an_event_is_the_same_whichever_guests_had_its_blocks() {
    let (hunted, blocks) = hunt();
    let plan = schedule::plan_blocks(&hunted);
    let judged = |dealt: &[Vec<&Vec<Trial>>]| {
        let event = &hunted.observe.events[0];
        let all = numbered(&dealt.concat());
        let pairs = judge::events::pair_events(&all, 0, event, [1, 0]);
        let judged = judge::events::judge_events(&pairs, event, &hunted.stop, true);
        let pool = Pool::new(&hunted, &plan);
        for guest in dealt {
            pool.add_member(&numbered(guest));
        }
        (
            pool.is_decided(),
            judged.verdict,
            (judged.e_value * 1e6).round(),
        )
    };
    let mut ends = BTreeSet::new();
    for count in 1..=blocks.len() {
        let alone = judged(&[blocks[..count].iter().collect()]);
        ends.insert(alone.0);
        for (guests, from) in [(2, 0), (2, 1), (3, 2), (5, 4)] {
            let mut dealt = vec![Vec::new(); guests];
            for (index, block) in blocks[..count].iter().enumerate() {
                dealt[(index * index + from) % guests].push(block);
            }
            assert_eq!(judged(&dealt), alone, "{count} blocks of {guests}");
        }
    }
    assert_eq!(ends, BTreeSet::from([false, true]));
}
