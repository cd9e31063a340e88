//! A results directory keeps what was put in, whole or not at all.

#![allow(clippy::unwrap_used)]

use model::{
    Arm, Build, Calibration, Cell, Evidence, Experiment, Kind, Load, Machine, Plan, PlannedTrial,
    Start, StopRule, System, TargetSpec, Trial, TrialFile, TrialResult, TrialState, Workload,
};
use results::{
    FORMAT, Format, Manifest, ResultSet, ResultsError, RunState, TrialFiles, Writer, read,
};
use std::collections::BTreeMap;
use std::path::Path;

fn manifest() -> Manifest {
    Manifest {
        format: FORMAT,
        tool_version: "0.1.0".into(),
        tool_commit: String::new(),
        name: "x".into(),
        seed: 1,
        created: "2026-11-21T19:16:06Z".into(),
        state: RunState::Running,
        warnings: Vec::new(),
        sources: Vec::new(),
        together: false,
    }
}

fn experiment() -> Experiment {
    Experiment {
        name: "x".into(),
        question: None,
        seed: 1,
        target: TargetSpec::local(),
        arms: vec![Arm::unchanged("default")],
        baseline: 0,
        workloads: vec![Workload {
            name: "make".into(),
            time_limit_ns: 1_000_000_000,
            ..Workload::new(Kind::new("command").with("argv", vec!["make"]))
        }],
        stop: StopRule::default(),
        collect: None,
        perf: Vec::new(),
        trace: None,
        aa_arm: None,
    }
}

fn plan() -> Plan {
    Plan {
        seed: 1,
        cells: vec![Cell {
            workload: 0,
            load: Load::One,
            name: "make/../x".into(),
        }],
        trials: (0..40).map(place).collect(),
    }
}

fn place(index: u32) -> PlannedTrial {
    PlannedTrial {
        index,
        block: index + 1,
        cell: 0,
        arm: 0,
    }
}

fn trial(index: u32, attempt: u32) -> Trial {
    Trial {
        place: place(index),
        cell: "make/../x".into(),
        arm: "default".into(),
        attempt,
        start: 1,
        result: TrialResult {
            state: TrialState::Ok,
            started_unix_ns: 1,
            elapsed_ns: 2,
            window_start_ns: 0,
            window_end_ns: 2,
            evidence: Evidence::default(),
            metrics: Vec::new(),
            warnings: Vec::new(),
            for_good: false,
            trace: None,
            windows: None,
        },
    }
}

fn create(dir: &Path) -> Writer {
    let mut writer = begun(dir);
    writer
        .add_start(Start {
            began: "2026-11-21T19:16:06Z".to_owned(),
            build: Build::default(),
            machines: vec![Machine {
                kernel: None,
                system: System::default(),
            }],
        })
        .unwrap();
    writer
}

/// Before the machine was looked at.
fn begun(dir: &Path) -> Writer {
    let source = Some("name = \"x\"");
    Writer::create(dir, manifest(), source, &experiment(), &plan()).unwrap()
}

#[test]
fn a_run_that_measured_nothing_leaves_no_directory() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("out");
    create(&dir).discard();
    assert!(!dir.exists());
}

#[test]
fn what_others_put_into_a_directory_is_never_removed_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let writer = create(dir.path());
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    std::fs::create_dir(dir.path().join("trials/mine")).unwrap();
    writer.discard();
    let kept = dir.path().join("manifest.json").exists();
    assert!(kept, "trials/ is not empty");
    std::fs::remove_dir(dir.path().join("trials/mine")).unwrap();
    writer.discard();
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "notes.txt");
}

#[test]
fn a_directory_of_an_earlier_run_is_never_discarded() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    Writer::reopen(dir.path()).unwrap().discard();
    assert!(dir.path().join("manifest.json").exists());
}

#[test]
fn a_run_that_was_killed_before_it_had_a_manifest_can_be_started_again() {
    let dir = tempfile::tempdir().unwrap();
    begun(dir.path());
    std::fs::rename(
        dir.path().join("manifest.json"),
        dir.path().join(".partial-manifest.json"),
    )
    .unwrap();
    let resumed = Writer::reopen(dir.path());
    let never = matches!(resumed, Err(ResultsError::NeverBegan(_)));
    assert!(never, "{resumed:?}");
    begun(dir.path());
    assert!(Writer::reopen(dir.path()).is_ok());
}

#[test]
fn a_directory_with_anything_else_in_it_is_occupied() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("trials/00000")).unwrap();
    let refused = Writer::create(dir.path(), manifest(), None, &experiment(), &plan());
    assert!(matches!(refused, Err(ResultsError::Occupied(_))));
}

#[test]
fn what_was_written_is_read_back_in_the_order_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let writer = create(dir.path());
    let log = TrialFile {
        name: "stdout.log".into(),
        text: "hello\n".into(),
    };
    writer
        .add_trial(
            &trial(10, 1),
            &TrialFiles {
                texts: vec![log],
                kept: BTreeMap::from([("load/../a b/x.bin".to_owned(), vec![0, 255])]),
            },
        )
        .unwrap();
    writer
        .add_trial(&trial(2, 2), &TrialFiles::default())
        .unwrap();
    let mut void = trial(2, 1);
    void.result.state = TrialState::Void { why: "x".into() };
    writer.add_trial(&void, &TrialFiles::default()).unwrap();
    let set = ResultSet::read(dir.path()).unwrap();
    assert_eq!(set.experiment, experiment());
    let places: Vec<_> = set
        .trials
        .iter()
        .map(|t| (t.trial.place.index, t.trial.attempt))
        .collect();
    assert_eq!(places, [(2, 1), (2, 2), (10, 1)]);
    assert_eq!(set.trials[2].trial, trial(10, 1));
    let text = std::fs::read_to_string(set.trials[2].dir.join("stdout.log")).unwrap();
    assert_eq!(text, "hello\n");
    let kept = std::fs::read(set.trials[2].dir.join("kept/load/a-b/x.bin")).unwrap();
    assert_eq!(kept, [0, 255]);
}

#[test]
fn a_name_with_slashes_stays_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path())
        .add_trial(&trial(0, 1), &TrialFiles::default())
        .unwrap();
    let entries: Vec<_> = std::fs::read_dir(dir.path().join("trials"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(entries, ["00000-make-..-x-b1-default"]);
}

#[test]
fn a_trial_half_written_by_a_crash_is_not_seen_and_goes_on_resume() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let partial = dir.path().join("trials/.partial-00000-make");
    std::fs::create_dir(&partial).unwrap();
    assert!(ResultSet::read(dir.path()).unwrap().trials.is_empty());
    Writer::reopen(dir.path()).unwrap();
    assert!(!partial.exists());
}

#[test]
fn a_directory_that_is_in_use_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let again = Writer::create(dir.path(), manifest(), None, &experiment(), &plan());
    assert!(matches!(again, Err(ResultsError::Occupied(_))), "{again:?}");
}

#[test]
fn a_newer_format_is_refused_and_a_newer_minor_is_read() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let write = |format| {
        let text = serde_json::to_vec(&Manifest {
            format,
            ..manifest()
        })
        .unwrap();
        std::fs::write(dir.path().join("manifest.json"), text).unwrap();
    };
    write(Format {
        major: FORMAT.major,
        minor: 99,
    });
    assert!(ResultSet::read(dir.path()).is_ok());
    write(Format {
        major: FORMAT.major + 1,
        minor: 0,
    });
    let refused = ResultSet::read(dir.path()).unwrap_err();
    assert!(refused.to_string().contains("newer schedlab"), "{refused}");
}

#[test]
fn any_directory_is_not_a_results_directory() {
    let dir = tempfile::tempdir().unwrap();
    let refused = ResultSet::read(dir.path()).unwrap_err();
    assert!(matches!(refused, ResultsError::NotResults(_)), "{refused}");
}

#[test]
fn what_was_calibrated_is_kept_for_a_resume() {
    let dir = tempfile::tempdir().unwrap();
    let writer = create(dir.path());
    assert!(read::read_calibrations(dir.path()).unwrap().is_empty());
    let mut found = BTreeMap::new();
    let mut calibration = Calibration::default();
    calibration.values.insert("loops".into(), 400);
    found.insert("hackbench 1".to_owned(), calibration);
    writer.write_calibrations(&found).unwrap();
    assert_eq!(read::read_calibrations(dir.path()).unwrap(), found);
}
