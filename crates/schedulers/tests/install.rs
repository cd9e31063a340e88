//! Installing with a fake cargo, which sees what the real one would be asked
//! and leaves behind what it would leave.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use doors::started::Agreed;
use schedulers::{Cache, Error, Installer, Step};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A machine with a search path of fakes and an empty cache.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn with_cargo(script: &str) -> Self {
        let machine = Machine {
            dir: tempfile::tempdir().unwrap(),
        };
        for tool in ["clang-19", "cc", "protoc", "pkg-config"] {
            machine.put(tool, "exit 0");
        }
        machine.put("cargo", script);
        machine
    }

    /// A program that may use the machine's own shell and tools.
    fn put(&self, name: &str, script: &str) {
        let file = self.bin().join(name);
        fs::create_dir_all(self.bin()).unwrap();
        let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n");
        tests::write_program(&file, text);
    }

    fn bin(&self) -> std::path::PathBuf {
        self.dir.path().join("bin")
    }

    fn cache(&self) -> Cache {
        Cache::in_directory(self.dir.path().join("cache"))
    }

    fn install(&self, name: &str) -> (Result<schedulers::Installed, Error>, Vec<Step>) {
        let mut steps = Vec::new();
        let installer = Installer::new(self.cache(), Agreed::by_command())
            .with_path(self.bin())
            .with_tree(self.dir.path().join("tree/target"));
        let result = installer.install(name, None, &mut |step| steps.push(step));
        (result, steps)
    }
}

/// `cargo info` knows 1.1.4; `cargo install` shows its bar and installs.
const GOOD_CARGO: &str = r#"
case "$1" in
info) echo "version: 1.1.4"; exit 0 ;;
install)
    echo "$@" > "$(dirname "$0")/asked"
    env | grep -E 'CLANG|RUSTFLAGS|TARGET_DIR' > "$(dirname "$0")/environment"
    while [ "$1" != --root ]; do shift; done
    printf '   Compiling libc v0.2\n    Building [=>  ] 1/2: scx\r' >&2
        for name; do :; done
    mkdir -p "$2/bin"; echo built > "$2/bin/$name" ;;
esac
"#;

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

#[test]
fn a_version_is_built_and_found_by_name_and_by_version() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    let (result, steps) = machine.install("scx_rusty");
    assert_eq!(result.unwrap().version.to_string(), "1.1.4");
    let bin = machine.cache().bin_dir();
    assert_eq!(read(&bin.join("scx_rusty")), "built\n");
    assert_eq!(read(&bin.join("scx_rusty@1.1.4")), "built\n");
    let building = |s: &Step| {
        matches!(
            s,
            Step::Compiling {
                done: 1,
                total: 2,
                ..
            }
        )
    };
    assert!(steps.iter().any(building), "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::Installed));
}

#[test]
fn the_version_that_was_tried_is_installed_and_the_newest_only_when_asked_for() {
    let machine = Machine::with_cargo(&GOOD_CARGO.replace("version: 1.1.4", "version: 9.9.9"));
    let version = |name| machine.install(name).0.unwrap().version.to_string();
    assert_eq!(version("scx_rusty"), "1.1.4");
    assert_eq!(version("scx_cosmos"), "1.1.7");
    assert_eq!(version("scx_rusty@latest"), "9.9.9");
    let error = machine.install("scx_unheard_of").0.unwrap_err().to_string();
    assert!(error.contains("scx_unheard_of@latest"), "{error}");
}

#[test]
fn roots_builds_run_as_another_user_who_cannot_change_what_root_runs() {
    let Some(user) = confine::User::for_builds() else {
        return tests::skipped("only root can build as another user");
    };
    // The program says as whom it was built.
    let script = r#"
while [ "$1" != --root ]; do shift; done
mkdir -p "$2/bin"
{ id -u; echo "HOME=$HOME"; touch /etc/built 2>&1 || true; } > "$2/bin/scx_rusty"
"#;
    let machine = Machine::with_cargo(script);
    // As the home of root, which is where its toolchain and its cache usually are.
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(machine.dir.path(), closed).unwrap();
    let installer = Installer::new(machine.cache(), Agreed::by_command())
        .with_path(machine.bin())
        .with_user(Some(user.clone()));
    let installed = installer.install("scx_rusty", None, &mut |_| {}).unwrap();
    let said = read(&installed.program);
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some(user.uid.to_string().as_str()));
    let builds = format!("build-{}/crates.io-", user.uid);
    let is_home = |line: &str| line.contains(&builds) && line.ends_with("/home");
    assert!(lines.next().is_some_and(is_home), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
    let owner = |path: &Path| std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap());
    for path in installed.program.ancestors().take(3) {
        assert_eq!(owner(path), 0, "{}", path.display());
    }
}

#[test]
fn cargo_is_asked_for_the_locked_version_with_the_chosen_clang() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    machine.install("scx_lavd@1.0.9").0.unwrap();
    let asked = read(&machine.bin().join("asked"));
    assert!(asked.contains("--locked"), "{asked}");
    assert!(asked.contains("--force --version 1.0.9"), "{asked}");
    let environment = read(&machine.bin().join("environment"));
    let clang = format!("BPF_CLANG={}", machine.bin().join("clang-19").display());
    assert!(environment.contains(&clang), "{environment}");
    assert!(!environment.contains("RUSTFLAGS"), "{environment}");
}

#[test]
fn only_a_scheduler_that_decides_in_user_space_has_its_libraries_optimised() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    let asked_for = |name| {
        machine.install(name).0.unwrap();
        read(&machine.bin().join("asked"))
    };
    assert!(asked_for("scx_rusty").contains("opt-level=0"));
    assert!(!asked_for("scx_rustland").contains("opt-level"));
    assert!(!asked_for("scx_unheard_of@1.0.0").contains("opt-level"));
}

/// A source tree with a scheduler of our own.
fn plant_tree(machine: &Machine) {
    let dir = machine.dir.path().join("tree/sched/scx_microquanta");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("Cargo.toml"), "").unwrap();
}

/// The fake `cargo install` takes its last argument for the name.
const TREE_CARGO: &str = r#"
case "$1" in
pkgid) echo "path+file:///tree/sched/scx_microquanta#0.1.0" ;;
install)
    echo "$@" >> "$(dirname "$0")/asked"
    while [ "$1" != --root ]; do shift; done
    mkdir -p "$2/bin"; echo built > "$2/bin/scx_microquanta" ;;
*) exit 1 ;;
esac
"#;

#[test]
fn one_of_our_own_is_built_from_the_tree_each_time() {
    let machine = Machine::with_cargo(TREE_CARGO);
    plant_tree(&machine);
    for _ in 0..2 {
        let installed = machine.install("scx_microquanta").0.unwrap();
        assert_eq!(installed.version.to_string(), "0.1.0");
    }
    let asked = read(&machine.bin().join("asked"));
    assert_eq!(asked.lines().count(), 2, "{asked}");
    assert!(asked.contains("--force --path"), "{asked}");
    assert!(asked.contains("tree/sched/scx_microquanta"), "{asked}");
    let link = machine.cache().bin_dir().join("scx_microquanta");
    assert_eq!(read(&link), "built\n");
}

#[test]
fn one_of_our_own_needs_the_tree_and_has_only_the_version_there() {
    let machine = Machine::with_cargo(TREE_CARGO);
    let error = machine.install("scx_microquanta").0.unwrap_err();
    assert!(error.to_string().contains("run it in the source tree"));
    plant_tree(&machine);
    let error = machine.install("scx_microquanta@0.2.0").0.unwrap_err();
    assert!(error.to_string().contains("0.1.0 and not 0.2.0"), "{error}");
    assert!(!machine.bin().join("asked").exists());
}

#[test]
fn what_is_installed_is_not_built_again() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    machine.install("scx_rusty").0.unwrap();
    fs::remove_file(machine.bin().join("asked")).unwrap();
    let (result, _) = machine.install("scx_rusty@1.1.4");
    assert!(result.is_ok());
    assert!(!machine.bin().join("asked").exists());
}

#[test]
fn without_a_network_the_newest_installed_version_serves() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    machine.install("scx_rusty").0.unwrap();
    machine.put("cargo", "echo 'error: no network' >&2; exit 101");
    let (result, _) = machine.install("scx_rusty@latest");
    assert_eq!(result.unwrap().version.to_string(), "1.1.4");
    let (result, _) = machine.install("scx_lavd@latest");
    let error = result.unwrap_err().to_string();
    assert!(error.contains("no network"), "{error}");
    assert!(error.contains("name a version"), "{error}");
}

#[test]
fn a_build_that_fails_shows_its_last_lines_and_keeps_the_whole_log() {
    let script = r#"
i=0
while [ $i -lt 30 ]; do i=$((i + 1)); echo "line $i" >&2; done
echo "error: linking failed" >&2
exit 101"#;
    let machine = Machine::with_cargo(script);
    let (result, _) = machine.install("scx_rusty@1.1.4");
    let Err(Error::BuildFailed { log, tail, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(tail.len(), 20);
    assert_eq!(tail.last().unwrap(), "error: linking failed");
    assert!(read(&log).starts_with("line 1\n"));
    assert!(machine.cache().list_installed().unwrap().is_empty());
}

#[test]
fn a_build_that_leaves_no_program_is_an_error() {
    let machine = Machine::with_cargo("exit 0");
    let (result, _) = machine.install("scx_rusty@1.1.4");
    let error = result.unwrap_err().to_string();
    assert!(error.contains("scx_rusty-1.1.4/bin/scx_rusty"), "{error}");
}

#[test]
fn missing_tools_are_named_before_anything_is_built() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    fs::remove_file(machine.bin().join("protoc")).unwrap();
    let (result, _) = machine.install("scx_rusty@1.1.4");
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("apt-get install protobuf-compiler"),
        "{error}"
    );
    assert!(!machine.bin().join("asked").exists());
}

#[test]
fn names_that_cannot_be_schedulers_are_refused_with_the_nearest_one() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    let all = "schedlab scheduler list has all";
    for (name, help) in [
        ("rusty", "did you mean `scx_rusty`?"),
        ("scx_", all),
        ("scx_../x", all),
        ("--help", all),
        ("libc", all),
    ] {
        let error = machine.install(name).0.unwrap_err().to_string();
        assert!(error.contains(help), "{error}");
    }
}

#[test]
fn a_crate_that_does_not_exist_is_answered_with_the_nearest_name() {
    let machine = Machine::with_cargo("echo 'error: could not find `x` in registry' >&2; exit 101");
    let error = machine
        .install("scx_bfpland@latest")
        .0
        .unwrap_err()
        .to_string();
    assert!(error.contains("did you mean `scx_bpfland`"), "{error}");
}

#[test]
fn a_version_that_is_none_is_refused() {
    let machine = Machine::with_cargo(GOOD_CARGO);
    let error = machine.install("scx_rusty@new").0.unwrap_err().to_string();
    assert!(error.contains("`new` is not a version"), "{error}");
}

/// A repository with one crate, `scx_here`, and a second commit.
fn repository(machine: &Machine) -> std::path::PathBuf {
    let place = machine.dir.path().join("repository");
    let directory = place.join("scheds/scx_here");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join("Cargo.toml"),
        "[package]\nname = \"scx_here\"\n",
    )
    .unwrap();
    let script = "git init -q . && git add . && c='git -c user.name=a -c user.email=a@b.c commit -q' && \
                  $c -m one && git tag first && $c --allow-empty -m two";
    let made = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(&place)
        .status();
    assert!(made.unwrap().success());
    place
}

#[test]
fn each_commit_of_a_repository_is_built_once_and_no_plain_name_leads_to_it() {
    if which::which("git").is_err() {
        return tests::skipped("there is no git");
    }
    // What it builds is the crate that it is told.
    let script = r#"
while [ "$1" != --root ]; do shift; done
root=$2
while [ "$1" != --path ]; do shift; done
[ -e "$2/Cargo.toml" ] || exit 1
echo built >> "$(dirname "$0")/builds"
mkdir -p "$root/bin"; echo built > "$root/bin/scx_here"
"#;
    let machine = Machine::with_cargo(script);
    let repository = repository(&machine).display().to_string();
    let installer = Installer::new(machine.cache(), Agreed::by_command()).with_path(machine.bin());
    let install = |text: &str| {
        let text = text.replace("REPO", &repository);
        let of = schedulers::GitName::parse(&text).unwrap();
        installer.install_git(of, &mut |_| {})
    };
    let (first, commit) = install("scx_here@git:REPO#first").unwrap();
    assert_eq!((read(&first).as_str(), commit.len()), ("built\n", 40));
    let (head, other) = install("scx_here@git:REPO").unwrap();
    assert!(head != first && other != commit);
    assert_eq!(install("scx_here@git:REPO#first").unwrap().0, first);
    let builds = read(&machine.bin().join("builds"));
    assert_eq!(builds.lines().count(), 2, "each commit once");
    assert_eq!(machine.cache().list_installed().unwrap(), []);
    let says = |text: &str| install(text).unwrap_err().to_string();
    assert!(says("scx_here@git:REPO#no-such").contains("no commit no-such"));
    assert!(says("scx_other@git:REPO").contains("no crate scx_other"));
    assert!(says("here@git:REPO").contains("not a sched_ext scheduler"));
}
