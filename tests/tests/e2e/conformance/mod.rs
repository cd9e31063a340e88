//! Every target does what a target must do: the one test of all of them.

#![allow(clippy::disallowed_methods)]

mod toy;

use machines::conformance::check_conformance;
use machines::{Host, Keys, TargetDef};
use model::{Experiment, TargetSpec};
use std::process::Command;
use tests::{
    Bench, Container, Sshd, alone, own_mounts_or_skip, schedlab, shell_with_own_mounts, skipped,
};

/// Targets of `machines::TARGETS`, and one more in one file and one line.
static TARGETS: &[(&TargetDef, &str)] = &[
    (&machines::local::DEF, "{}"),
    (&toy::DEF, "{shell = \"sh\"}"),
];

/// In the command line of the workload that is ended: no other process sleeps so long.
const MARK: &str = "301.30103";

fn experiment() -> Experiment {
    let command = |name: &str, seconds: &str| {
        format!(
            "[[workload]]\nkind = \"command\"\nname = \"{name}\"\n\
             command = [\"sleep\", \"{seconds}\"]\n"
        )
    };
    let text = "[[arm]]\nname = \"default\"\n".to_owned()
        + &command("short", "0.2")
        + &command("long", MARK);
    catalogue::install();
    plan::parse_experiment("x.toml", &text).expect("an experiment")
}

fn host(state: &tempfile::TempDir) -> Host {
    let state = state.path().display().to_string();
    Host {
        program: Some(schedlab()),
        environment: vec![("SCHEDLAB_STATE_DIR".to_owned(), state)],
        elsewhere: vec![(
            "SCHEDLAB_STATE_DIR".to_owned(),
            "/run/schedlab-state".to_owned(),
        )],
        ..Host::default()
    }
}

/// Its test has the machine alone: no child of this process is to be left, whosever it is.
fn conforms(def: &TargetDef, spec: &TargetSpec) {
    let state = tempfile::tempdir().expect("a temporary directory");
    let mut target = (def.make)(spec, &host(&state)).expect("a target");
    assert_eq!(target.kind(), def.name);
    assert_eq!((def.can)(spec), Ok(target.abilities()));
    let result = check_conformance(target.as_mut(), &experiment(), MARK);
    assert_eq!(result, Ok(()), "{}", def.name);
}

#[test]
fn targets_on_this_machine_do_what_a_target_must() {
    let _turn = alone();
    for (def, keys) in TARGETS {
        let keys = Keys::parse(keys).expect("a table");
        let spec = (def.read)(keys).expect("a target");
        assert_eq!(spec.kind(), def.name);
        conforms(def, &spec);
    }
}

#[test]
fn a_guest_does_what_a_target_must() {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    if !qemu.is_ok_and(|o| o.status.success()) {
        return skipped("qemu-system-x86_64 is not installed");
    }
    let _turn = alone();
    let keys = Keys::parse("{kernel = \"debian:sid\", memory = \"768M\"}").expect("a table");
    let spec = (machines::vm::DEF.read)(keys).expect("a guest");
    conforms(&machines::vm::DEF, &spec);
}

#[test]
fn a_machine_over_ssh_does_what_a_target_must() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = alone();
    let config = sshd.path("config");
    let keys = format!("{{host = \"lab\", config = \"{}\"}}", config.display());
    let spec = (machines::ssh::DEF.read)(Keys::parse(&keys).expect("a table"));
    conforms(&machines::ssh::DEF, &spec.expect("a machine"));
}

/// The target that these words lead to, with an agent whose files are in the bench.
fn exec_conforms(bench: &Bench, leading: &[String]) {
    let own = ["state", "cache"].map(|name| bench.path(name).display().to_string());
    let own = [
        format!("SCHEDLAB_STATE_DIR={}", own[0]),
        format!("XDG_CACHE_HOME={}", own[1]),
    ];
    let words = [leading, &["env".to_owned()], &own].concat();
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let keys = format!("{{command = [{}]}}", words.join(", "));
    let spec = (machines::exec::DEF.read)(Keys::parse(&keys).expect("a table"));
    conforms(&machines::exec::DEF, &spec.expect("a place"));
}

#[test]
fn a_place_that_a_command_leads_to_does_what_a_target_must() {
    let words = match tests::is_root() && own_mounts_or_skip() {
        true => own_processes(),
        false => Vec::new(),
    };
    let _turn = alone();
    exec_conforms(&Bench::default(), &words);
}

/// Words that run a command with processes and mounts of its own.
fn own_processes() -> Vec<String> {
    let command = shell_with_own_mounts(
        &["--pid", "--fork", "--kill-child"],
        "mount -t proc proc /proc && exec \"$0\" \"$@\"",
    );
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| word.to_string_lossy().into_owned());
    words.collect()
}

#[test]
fn a_container_does_what_a_target_must() {
    if !tests::is_root() {
        return skipped("podman is used as root");
    }
    if !Container::is_possible_or_skip() {
        return;
    }
    let _turn = alone();
    let bench = Bench::default();
    let container = Container::start(&bench, &[], &["sleep", "100000"]);
    let keys = format!("{{podman = \"{}\"}}", container.name);
    let spec = (machines::exec::DEF.read)(Keys::parse(&keys).expect("a table"));
    conforms(&machines::exec::DEF, &spec.expect("a container"));
}

#[test]
fn a_key_that_a_target_does_not_have_is_named() {
    for (def, keys) in TARGETS {
        let keys = keys.replace(
            '}',
            if *keys == "{}" {
                "moon = 1}"
            } else {
                ", moon = 1}"
            },
        );
        let error = (def.read)(Keys::parse(&keys).expect("a table")).expect_err("a wrong key");
        assert!(error.to_string().contains("moon"), "{error}");
    }
}
