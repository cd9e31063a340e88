//! A results directory keeps what was put in, whole or not at all.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::{
    Arm, Build, Calibration, Cell, Evidence, Experiment, Kind, Load, Machine, Observe, Plan,
    PlannedTrial, Start, StopRule, System, TargetSpec, Trial, TrialFile, TrialResult, TrialState,
    Workload,
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
            ..Workload::new(Kind::new("command").with_param("argv", vec!["make"]))
        }],
        pause_ns: 0,
        stop: StopRule::default(),
        observe: Observe::default(),
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
            events: Vec::new(),
            rail: None,
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
    drop(create(dir.path()));
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
fn an_experiment_of_the_user_is_neither_replaced_nor_removed() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["experiment.toml", "plan.json", ".partial-manifest.json"] {
        let file = dir.path().join(name);
        std::fs::write(&file, "mine").unwrap();
        let refused = Writer::create(dir.path(), manifest(), None, &experiment(), &plan());
        assert!(matches!(refused, Err(ResultsError::Occupied(_))), "{name}");
        assert!(results::write::check_place(dir.path()).is_err(), "{name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn what_the_user_changed_in_the_directory_of_a_killed_run_stays() {
    let dir = tempfile::tempdir().unwrap();
    drop(begun(dir.path()));
    std::fs::remove_file(dir.path().join("manifest.json")).unwrap();
    std::fs::write(dir.path().join("experiment.toml"), "mine now").unwrap();
    let refused = Writer::create(dir.path(), manifest(), None, &experiment(), &plan());
    assert!(matches!(refused, Err(ResultsError::Occupied(_))));
    let text = std::fs::read_to_string(dir.path().join("experiment.toml")).unwrap();
    assert_eq!(text, "mine now");
}

#[test]
fn a_directory_that_the_user_made_stays_after_a_run_that_measured_nothing() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path()).discard();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn all_that_was_written_goes_and_the_notes_of_the_user_stay() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("merged");
    let writer = create(&dir);
    writer
        .add_trial(&trial(0, 1), &TrialFiles::default())
        .unwrap();
    std::fs::write(dir.join("trials/notes.txt"), "mine").unwrap();
    writer.discard_all();
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().collect();
    let mut left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["trials"]);
    let kept = std::fs::read_to_string(dir.join("trials/notes.txt")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn a_second_process_is_kept_out_before_it_reads_or_removes_anything() {
    let dir = tempfile::tempdir().unwrap();
    let writer = create(dir.path());
    let partial = dir.path().join("trials/.partial-00000-make");
    std::fs::create_dir(&partial).unwrap();
    let second = Writer::reopen(dir.path());
    assert!(matches!(second, Err(ResultsError::InUse(_))), "{second:?}");
    assert!(partial.exists(), "the first is just writing it");
    drop(writer);
    assert!(Writer::reopen(dir.path()).is_ok());
    assert!(!partial.exists());
}

#[test]
fn results_without_a_mark_of_an_earlier_version_can_be_resumed_and_packed() {
    let dir = tempfile::tempdir().unwrap();
    drop(create(dir.path()));
    std::fs::remove_file(dir.path().join(".schedlab")).unwrap();
    drop(Writer::reopen(dir.path()).unwrap());
    assert!(dir.path().join(".schedlab").exists());
}

#[test]
fn kept_files_whose_names_collide_once_they_are_plain_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a", "a/b", "a/b/c", "a b", "a-b", "...", "trial.json"];
    let kept = names.map(|name| (name.to_owned(), name.as_bytes().to_vec()));
    let text = |name: &str| TrialFile {
        name: name.into(),
        text: name.into(),
    };
    let files = TrialFiles {
        texts: names.map(text).to_vec(),
        kept: BTreeMap::from(kept),
    };
    create(dir.path()).add_trial(&trial(0, 1), &files).unwrap();
    let stored = ResultSet::read(dir.path()).unwrap().trials.remove(0);
    assert_eq!(stored.trial, trial(0, 1));
    let mut there = Vec::new();
    let mut folders = vec![stored.dir.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => there.push(std::fs::read_to_string(entry.path()).unwrap()),
            }
        }
    }
    for name in names {
        let count = there.iter().filter(|text| *text == name).count();
        assert_eq!(count, 2, "{name} as a text and as a kept file");
    }
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
