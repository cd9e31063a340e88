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
fn equal_circumstances_leave_only_the_time() {
    let scenario = synthetic::quickstart();
    let both = compared(&scenario, &scenario);
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
    other.experiment.workloads[0].duration_ns += 1;
    other.experiment.arms[1].policy = None;
    let both = compared(&synthetic::quickstart(), &other);
    let arm = &other.experiment.arms[1].name;
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
fn no_line_is_wider_than_100_columns() {
    let text = compared(&synthetic::quickstart(), &changed()).text();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.is_ascii(), "{text}");
}
