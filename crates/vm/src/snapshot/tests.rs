use super::*;
use std::io::Write;

const PARTS: [&str; 15] = [
    "CPU",
    "QEMU",
    "accelerator",
    "build of schedlab",
    "capacities",
    "directory",
    "environment",
    "image",
    "kernel",
    "kernel command line",
    "machine",
    "memory size",
    "network",
    "number of CPUs",
    "topology",
];

fn parts() -> BTreeMap<String, String> {
    let all = PARTS.map(|part| (part.to_owned(), format!("{part} 1")));
    all.into()
}

fn experiment() -> Experiment {
    let text = r#"{"name":"x","seed":1,"arms":[],"baseline":0,"workloads":[],"target":{"kind":"vm"},
        "stop":{"confidence":0.95,"smallest_effect":0.02,"min_blocks":1,"max_blocks":1,"max_attempts":1}}"#;
    let mut experiment: Experiment = serde_json::from_str(text).unwrap();
    experiment.workloads = vec![model::Workload::new(model::Kind::new("command"))];
    experiment
}

fn snapshot(done: Option<Done>) -> Snapshot {
    Snapshot {
        name: "warm".to_owned(),
        guest: "default".to_owned(),
        created_unix_s: 1,
        spec: VmSpec::new("debian:sid", 2, 1 << 30),
        options: Options {
            program: PathBuf::new(),
            cache: PathBuf::new(),
            agent: Vec::new(),
            shown: Vec::new(),
            directory: PathBuf::new(),
            environment: BTreeMap::new(),
        },
        ready: Ready {
            release: "7.2.13".to_owned(),
            version: String::new(),
            build_id: None,
            uptime_ns: 1,
        },
        facts: BTreeMap::new(),
        parts: parts(),
        done,
        bytes: 3,
        sha256: "ab".repeat(32),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let all = Snapshot::list(directory).into_iter();
    all.map(|(name, _)| name).collect()
}

#[test]
fn every_part_that_differs_is_told_with_a_remedy() {
    let snapshot = snapshot(None);
    let hash = snapshot.sha256.clone();
    snapshot.prove(&parts(), &hash).unwrap();
    for part in PARTS {
        let mut others = parts();
        others.insert(part.to_owned(), "another".to_owned());
        let said = snapshot.prove(&others, &hash).unwrap_err().to_string();
        let expected = format!("its {part} is {part} 1, not another;");
        assert!(said.contains(&expected), "{said}");
        assert!(said.contains("schedlab vm snapshot delete warm"), "{said}");
        others.remove(part);
        let said = snapshot.prove(&others, &hash).unwrap_err().to_string();
        assert!(said.contains(&format!("its {part} is")), "{said}");
    }
    let said = snapshot.prove(&parts(), &"cd".repeat(32)).unwrap_err();
    let expected = "its memory was saved as abababababab… and is cdcdcdcdcdcd…";
    assert!(said.to_string().contains(expected), "{said}");
}

#[test]
fn services_of_another_workload_are_refused_and_those_of_a_hand_made_one_are_not() {
    let build = Build::default();
    let done = Done::new(&build, &experiment(), BTreeMap::new());
    let made = snapshot(Some(done));
    made.refuse_other_work(&experiment()).unwrap();
    let mut other = experiment();
    other.workloads[0].warmup_ns += 1;
    other.observe.perf = vec!["cycles".to_owned()];
    let said = made.refuse_other_work(&other).unwrap_err().to_string();
    assert!(said.contains("another perf, warmup_ns"), "{said}");
    snapshot(None).refuse_other_work(&other).unwrap();
}

#[test]
fn a_snapshot_is_there_when_it_is_whole_and_the_first_of_two_wins() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("snapshots");
    let store = |bytes: &'static [u8]| {
        let write = |mut file: File| file.write_all(bytes);
        snapshot(None).store(&directory, write)
    };
    let late = snapshot(None).store(&directory, |mut file| {
        file.write_all(b"half")?;
        assert_eq!(names(&directory), [""; 0], "half of it");
        store(b"other").map_err(Error::other)
    });
    let said = late.unwrap_err().to_string();
    assert!(said.contains("snapshot warm: it exists"), "{said}");
    let found = Snapshot::find(&directory, "warm").unwrap().unwrap();
    let memory = fs::read(directory.join("warm/memory")).unwrap();
    assert_eq!((found.bytes, &memory[..]), (5, &b"other"[..]));
    let hashed = Named::default().hash_file(&directory.join("warm/memory"));
    assert_eq!(hashed.unwrap(), found.sha256);
    let rights = fs::metadata(directory.join("warm")).unwrap().mode() & 0o777;
    assert_eq!(rights, 0o700, "memory is private");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no rest");
}

#[test]
fn what_a_killed_process_was_making_is_not_listed_and_goes_with_the_next() {
    let place = tempfile::tempdir().unwrap();
    let part = Part::create_in(place.path()).unwrap();
    fs::create_dir(part.path()).unwrap();
    fs::write(part.path().join(DESCRIPTION), "{}").unwrap();
    let left = part.directory().to_owned();
    assert_eq!(names(place.path()), [""; 0]);
    // The lock of a process that was killed is free.
    let kept = left.with_file_name(".part-killed");
    fs::create_dir(&kept).unwrap();
    for entry in fs::read_dir(&left).unwrap().flatten() {
        let to = kept.join(entry.file_name());
        fs::rename(entry.path(), to).unwrap();
    }
    drop(part);
    snapshot(None).store(place.path(), |_| Ok(())).unwrap();
    assert_eq!(names(place.path()), ["warm"]);
    assert!(!kept.exists());
}

#[test]
fn a_full_disk_leaves_nothing_and_says_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let full = snapshot(None).store(place.path(), |_| Err(ErrorKind::StorageFull.into()));
    let said = full.unwrap_err().to_string();
    assert!(said.contains("does not fit"), "{said}");
    assert!(said.contains("free some space there"), "{said}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_description_that_cannot_be_read_is_listed_with_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("gone")).unwrap();
    fs::create_dir(place.path().join("old")).unwrap();
    fs::write(place.path().join("old").join(DESCRIPTION), "{}").unwrap();
    let listed = Snapshot::list(place.path());
    for ((name, found), expected) in listed.iter().zip(["gone", "old"]) {
        let said = found.as_ref().unwrap_err().to_string();
        assert_eq!(name, expected);
        let remedy = format!("schedlab vm snapshot delete {name}");
        assert!(
            said.contains("cannot be read") && said.contains(&remedy),
            "{said}"
        );
    }
    assert_eq!(listed.len(), 2);
    assert_eq!(Snapshot::find(place.path(), "none").unwrap(), None);
    assert!(Snapshot::find(place.path(), "../x").is_err());
}

#[test]
fn a_file_that_was_changed_by_hand_is_read_again_whatever_its_time_says() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("memory");
    fs::write(&path, "before").unwrap();
    let mut named = Named::default();
    let before = named.hash_file(&path).unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let known = named.hashes[&path].0;
    // The kernel's clock for files goes in steps.
    while stamp(&fs::metadata(&path).unwrap()) == known {
        fs::write(&path, "behind").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    }
    assert_ne!(named.hash_file(&path).unwrap(), before);
    fs::write(&path, "before").unwrap();
    assert_eq!(named.hash_file(&path).unwrap(), before);
}

#[test]
fn a_guest_whose_image_was_made_anew_since_it_started_is_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("lab.squashfs");
    fs::write(&image, "one").unwrap();
    let mut named = Named::default();
    named.note_start([image.clone()].into_iter());
    assert!(named.refuse_changed("warm").is_ok());
    // As a build does it: another file takes its name.
    fs::write(dir.path().join("new"), "two").unwrap();
    fs::rename(dir.path().join("new"), &image).unwrap();
    let refused = named.refuse_changed("warm").unwrap_err().to_string();
    assert!(
        refused.contains("was changed since the guest started"),
        "{refused}"
    );
}
