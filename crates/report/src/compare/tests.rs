use super::*;
use synthetic::Scenario;
use tempfile::TempDir;

fn stored(scenario: &Scenario) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    (dir, results)
}

fn compared(a: &Scenario, b: &Scenario) -> SideBySide {
    let ((_a_dir, a), (_b_dir, b)) = (stored(a), stored(b));
    let side = |label, results| Side { label, results };
    side_by_side(side("here", &a), side("there", &b), false)
}

fn with_seed(seed: u64) -> Scenario {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = seed;
    scenario
}

/// batch no longer helps hackbench, on another kernel.
fn changed() -> Scenario {
    let mut scenario = with_seed(99);
    scenario.system.kernel_release = "7.2.13".to_owned();
    for effect in &mut scenario.effects {
        if effect.cell == "hackbench" && effect.arm == "batch" {
            effect.throughput = 0.8;
        }
    }
    scenario
}

#[test]
fn loads_that_take_different_ways_are_different_work() {
    let mut other = synthetic::quickstart();
    let both = compared(&synthetic::quickstart(), &other);
    assert!(both.unmatched.is_empty());
    for workload in &mut other.experiment.workloads {
        workload.load_on = model::Place::Controller;
        workload.load_way = model::Way::Network;
    }
    let both = compared(&synthetic::quickstart(), &other);
    let said = both.unmatched.join("; ");
    assert!(
        said.contains("load on none in A, the controller, over the network in B"),
        "{said}"
    );
}

#[test]
fn equal_circumstances_leave_only_the_time() {
    let ((_a_dir, a), (_b_dir, mut b)) = (
        stored(&synthetic::quickstart()),
        stored(&synthetic::quickstart()),
    );
    b.manifest.created = "2026-11-21T23:16:06Z".to_owned();
    let side = |label, results| Side { label, results };
    let both = side_by_side(side("here", &a), side("there", &b), false);
    assert_eq!(both.differs, []);
    assert!(both.unmatched.is_empty());
    assert!(
        both.effects
            .iter()
            .all(|e| e.agreement != Agreement::Differs)
    );
    assert!(
        both.conclusions
            .iter()
            .any(|c| c.contains("Nothing that was recorded"))
    );
}

#[test]
fn an_event_that_only_one_run_saw_is_named_with_both_sides() {
    let mut kept = synthetic::thrown_out();
    kept.event_rates.retain(|rate| rate.event != "ejected");
    kept.experiment.seed += 1;
    let both = compared(&kept, &synthetic::thrown_out());
    assert_eq!(both.events.len(), 2);
    let said = both
        .conclusions
        .iter()
        .find(|c| c.starts_with("Rare events"));
    let said = said.expect("one of them called it");
    assert!(said.contains("in A never thrown out"), "{said}");
    assert!(said.contains("in B thrown out 21 times"), "{said}");
    // Where there is no event there is no interval of the ratio, and so no claim that the two differ.
    let ejected = both.events.iter().find(|e| e.event == "ejected");
    assert_eq!(ejected.map(|e| e.agreement), Some(Agreement::Open));
}

#[test]
fn an_effect_that_is_another_one_is_said_to_differ() {
    let both = compared(&synthetic::quickstart(), &changed());
    let differing: Vec<_> = both
        .effects
        .iter()
        .filter(|e| e.agreement == Agreement::Differs)
        .map(|e| (e.cell.as_str(), e.arm.as_str()))
        .collect();
    assert!(
        differing
            .iter()
            .all(|(cell, arm)| cell.starts_with("hackbench") && *arm == "batch")
    );
    assert!(!differing.is_empty());
}

#[test]
fn what_differs_is_listed_and_named_as_a_possible_cause() {
    let both = compared(&synthetic::quickstart(), &changed());
    let whats: Vec<&str> = both.differs.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(whats, ["kernel", "seed"]);
    let causes = both
        .conclusions
        .iter()
        .find(|c| c.contains("cannot be told apart"));
    assert!(
        causes.is_some_and(|c| c.contains("kernel, seed")),
        "{:?}",
        both.conclusions
    );
}

#[test]
fn levels_lie_side_by_side_with_an_interval() {
    let both = compared(&synthetic::quickstart(), &with_seed(5));
    let level = &both.levels[0];
    let (low, high) = (level.low.unwrap(), level.high.unwrap());
    assert!(low < level.ratio.unwrap() && level.ratio.unwrap() < high);
    assert!(level.a_trials > 5 && level.b_trials > 5);
}

#[test]
fn cells_and_arms_that_are_not_alike_are_not_compared() {
    let mut other = synthetic::quickstart();
    other.experiment.workloads[0].duration_ns += 1_000_000_000;
    other.experiment.arms[1].policy = None;
    let both = compared(&synthetic::quickstart(), &other);
    let arm = &other.experiment.arms[1].name;
    let of_cell = both.unmatched.iter().find(|u| u.starts_with("cell "));
    assert!(
        of_cell.is_some_and(|u| u.contains("duration ")),
        "{of_cell:?}"
    );
    assert!(both.effects.iter().all(|e| e.arm != *arm));
    assert!(
        both.unmatched
            .iter()
            .any(|u| u.starts_with(&format!("arm {arm}: not defined")))
    );
    let workload = &other.experiment.workloads[0].name;
    assert!(
        both.levels
            .iter()
            .all(|l| !l.cell.starts_with(workload.as_str()))
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100] {
        let text = compared(&synthetic::quickstart(), &changed()).to_text(width);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{text}");
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn a_run_and_itself_agree_in_nothing() {
    let scenario = synthetic::quickstart();
    let both = compared(&scenario, &scenario);
    assert!(both.same_run && both.effects.is_empty());
    let text = both.to_text(100);
    assert!(text.contains("are the same run"), "{text}");
    assert!(!text.contains("agree"), "{text}");
}

#[test]
fn a_run_that_went_on_is_the_same_run() {
    let ((_a_dir, a), (_b_dir, mut b)) = (
        stored(&synthetic::quickstart()),
        stored(&synthetic::quickstart()),
    );
    b.trials.truncate(20);
    b.experiment.stop.budget_ns = Some(1);
    let later = a.trials.len() - 20;
    let side = |label, results| Side { label, results };
    let both = side_by_side(side("here", &a), side("there", &b), false);
    let said = format!("A has gone on for {later} trials more");
    assert!(
        both.conclusions[0].contains(&said),
        "{:?}",
        both.conclusions
    );
}

#[test]
fn the_conclusion_comes_before_the_tables() {
    let text = compared(&synthetic::quickstart(), &changed()).to_text(100);
    assert!(
        text.find("Of 21 effects, ") < text.find("What differs"),
        "{text}"
    );
    assert!(text.contains("Of 21 effects, "), "{text}");
    assert!(
        text.contains(" 1 differs (batch hackbench_time in hackbench 4), "),
        "{text}"
    );
}

#[test]
fn only_what_can_matter_differs() {
    let mut other = with_seed(1);
    other.experiment.seed = synthetic::quickstart().experiment.seed;
    let mut first = synthetic::quickstart();
    let facts = [
        ("vm.boot_time_ms", "7000", "6100"),
        ("tool.stress-ng", "0.15", "0.14"),
        ("tool.hackbench", "2.4", "2.3"),
        ("vm.qemu", "7.2.22", "10.0.2"),
        ("vm.accel", "tcg", ""),
    ];
    for (name, here, there) in facts {
        let facts = &mut first.system.facts;
        facts.insert(name.to_owned(), here.to_owned());
        let facts = &mut other.system.facts;
        facts.insert(name.to_owned(), there.to_owned());
    }
    other.system.kernel_release = "7.2.13".to_owned();
    let both = compared(&first, &other);
    let whats: Vec<&str> = both.differs.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(whats, ["kernel", "tool.hackbench", "vm.qemu"]);
}

#[test]
fn neither_side_is_cut_where_the_other_is_long() {
    let mut other = changed();
    let why = "needed for parallel emulation, as Debian's backports have it, and more words";
    let facts = &mut other.system.facts;
    facts.insert("vm.qemu".to_owned(), format!("10.0.2 ({why})"));
    let mut first = synthetic::quickstart();
    let facts = &mut first.system.facts;
    facts.insert(
        "vm.qemu".to_owned(),
        "7.2.22 (Debian 1:7.2+dfsg)".to_owned(),
    );
    let text = compared(&first, &other).to_text(100);
    assert!(text.contains("A: 7.2.22 (Debian 1:7.2+dfsg)"), "{text}");
    assert!(text.contains("and more words)"), "{text}");
}
