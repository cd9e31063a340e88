use super::*;
use synthetic::Scenario;
use tempfile::TempDir;

fn stored(scenario: &Scenario) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    (dir, results)
}

fn recommended(scenario: &Scenario, weigh: &str) -> Result<Recommendation, RecommendError> {
    let (_dir, results) = stored(scenario);
    let source = Source {
        label: "results/a",
        results: &results,
    };
    let mix = Mix::parse_option(weigh)?;
    recommend_arm(&[source], &mix, None)
}

/// Another night of the quickstart experiment.
fn another(change: impl Fn(&mut Scenario)) -> Scenario {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = 7;
    change(&mut scenario);
    scenario
}

fn together(other: &Scenario) -> Result<Recommendation, RecommendError> {
    let ((_a, a), (_b, mut b)) = (stored(&synthetic::quickstart()), stored(other));
    b.manifest.created = "2026-11-22T19:16:06Z".to_owned();
    let sources = [("monday", &a), ("tuesday", &b)];
    let sources = sources.map(|(label, results)| Source { label, results });
    recommend_arm(&sources, &Mix::default(), None)
}

#[test]
fn the_arm_is_the_one_that_is_best_in_what_has_a_weight() {
    let batch = recommended(&synthetic::quickstart(), "hackbench=1").unwrap();
    assert_eq!((batch.advice, batch.arm.as_str()), (Advice::Arm, "batch"));
    assert!(
        batch
            .answer
            .starts_with("Take batch: it is ahead of default by")
    );
    let standing = batch.find_arm("batch").unwrap();
    assert!(
        standing.gain.low > 0.05 && standing.gain.high < 0.12,
        "{standing:?}"
    );
    assert!(standing.chance_best > 0.95);
    // The repetition of the baseline is a control, and no arm to take.
    assert!(batch.arms.iter().all(|arm| arm.arm != "default again"));
    let slice = recommended(&synthetic::quickstart(), "wakeup_p99=1").unwrap();
    assert_eq!(
        (slice.advice, slice.arm.as_str()),
        (Advice::Arm, "slice=0.3ms")
    );
    let worse = slice.not_covered.iter();
    let mut worse = worse.filter(|said| said.contains("worse in what has no weight: hackbench"));
    assert!(worse.next().is_some(), "{:?}", slice.not_covered);
}

#[test]
fn the_default_is_taken_where_no_arm_is_ahead_by_what_matters() {
    let mut scenario = synthetic::quickstart();
    scenario.effects.clear();
    scenario.experiment.stop.smallest_effect = 0.10;
    let found = recommended(&scenario, "hackbench=1").unwrap();
    assert_eq!(
        (found.advice, found.arm.as_str()),
        (Advice::Baseline, "default")
    );
    assert!(
        found.answer.starts_with("Take the default: "),
        "{}",
        found.answer
    );
    assert!(found.answer.contains("the 10 % that you care about"));
}

#[test]
fn few_blocks_leave_the_answer_open_and_say_how_many_more_it_takes() {
    let mut scenario = synthetic::few_blocks(3);
    scenario.effects.clear();
    let found = recommended(&scenario, "").unwrap();
    assert_eq!(found.advice, Advice::Open, "{found:?}");
    assert!(
        found.answer.starts_with("Not known yet: "),
        "{}",
        found.answer
    );
    assert!(
        found.answer.contains("take the default"),
        "{}",
        found.answer
    );
    let text = found.to_text(80);
    assert!(text.contains("more of the same would"), "{text}");
    let none = recommended(&synthetic::few_blocks(2), "").unwrap_err();
    assert!(none.to_string().contains("it has 2 of 3 blocks"), "{none}");
}

#[test]
fn weights_that_would_change_the_answer_are_named() {
    let found = recommended(&synthetic::quickstart(), "hackbench=1, wakeup_p99=0.03").unwrap();
    let mut turns = found.turns.iter();
    let turn = turns.find(|turn| turn.cell.starts_with("hackbench"));
    let turn = turn.unwrap_or_else(|| panic!("{found:?}"));
    assert!(turn.factor < 1.0 && turn.arm != "batch", "{turn:?}");
    let doubt: f64 = found.mix.iter().map(|weight| weight.doubt).sum();
    assert!(doubt.abs() < 1e-9 || (doubt - 1.0).abs() < 1e-9, "{doubt}");
    let weight: f64 = found.mix.iter().map(|weight| weight.weight).sum();
    assert!((weight - 1.0).abs() < 1e-9, "{weight}");
}

#[test]
fn two_nights_know_more_than_one() {
    let both = together(&another(|_| {})).unwrap();
    let one = recommended(&synthetic::quickstart(), "").unwrap();
    let blocks = |found: &Recommendation| found.mix.iter().map(|w| w.blocks).sum::<usize>();
    assert_eq!(blocks(&both), 2 * blocks(&one));
}

#[test]
fn results_that_do_not_belong_together_are_refused_with_both_places() {
    let machine = together(&another(|s| s.system.cpu_model = "another".to_owned()));
    let said = machine.unwrap_err().to_string();
    assert!(
        said.contains("AMD EPYC 7763 in monday and another in tuesday"),
        "{said}"
    );
    let baseline = together(&another(|s| s.experiment.baseline = 1));
    let said = baseline.unwrap_err().to_string();
    assert!(said.contains("no common baseline"), "{said}");
    let arm = together(&another(|s| {
        s.experiment.arms[1]
            .tunables
            .insert("autogroup".into(), "0".into());
    }));
    let said = arm.unwrap_err().to_string();
    assert!(
        said.contains("arm batch is not the same in monday and tuesday"),
        "{said}"
    );
    let cell = together(&another(|s| s.experiment.workloads[0].duration_ns += 1));
    let said = cell.unwrap_err().to_string();
    assert!(
        said.contains("is not the same in monday and tuesday"),
        "{said}"
    );
    let (_a, a) = stored(&synthetic::quickstart());
    let twice = ["a", "b"].map(|label| Source { label, results: &a });
    let same = recommend_arm(&twice, &Mix::default(), None).unwrap_err();
    assert_eq!(
        same,
        RecommendError::SameRun("a".to_owned(), "b".to_owned())
    );
    let alone = recommended(&synthetic::one_arm(), "").unwrap_err();
    assert!(matches!(alone, RecommendError::NoArm(_)), "{alone:?}");
}

#[test]
fn an_arm_that_has_more_of_a_rare_event_is_not_recommended_in_silence() {
    let found = recommended(&synthetic::thrown_out(), "").unwrap();
    assert_eq!(found.arm, "batch");
    assert!(
        found.not_covered[0].contains("batch has more of the event ejected than default"),
        "{:?}",
        found.not_covered
    );
}

#[test]
fn all_formats_say_the_same_and_text_keeps_to_its_width() {
    let found = recommended(&synthetic::quickstart(), "").unwrap();
    let text = found.to_text(80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.is_ascii(), "{text}");
    let markdown = found.to_markdown();
    let first = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    assert_eq!(first(&markdown).trim_start_matches("**"), first(&text));
    assert_eq!(markdown.matches("| ---").count(), 0);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["arm"], found.arm.as_str());
}
