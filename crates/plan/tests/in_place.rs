//! `in-place`: which workloads have arms that take turns, and why others do not.

#![allow(clippy::unwrap_used)] // In a test a panic is the message.

mod named;

use model::Experiment;
use named::parse_experiment;

fn experiment(top: &str, arm: &str, workloads: &str) -> Experiment {
    let text = format!(
        "name = \"turns\"\n{top}\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"other\"\n{arm}\n\
         {workloads}"
    );
    parse_experiment("turns.toml", &text).unwrap()
}

const TWO: &str = "[[workload]]\nkind = \"wakeup\"\n\
                   [[workload]]\nkind = \"hackbench\"\nname = \"messages\"\n";

#[test]
fn the_key_of_the_experiment_is_that_of_every_workload_without_one() {
    let found = experiment("in-place = \"auto\"", "policy = { nice = 5 }", TWO);
    let lengths = found.workloads[0].in_place.unwrap();
    assert!(lengths.pilot);
    assert_eq!(found.workloads[0].whole_because, None);
    assert_eq!(found.workloads[1].in_place, None);
    let why = found.workloads[1].whole_because.as_deref().unwrap();
    assert!(why.contains("does not record window by window"), "{why}");

    let own = "[[workload]]\nkind = \"wakeup\"\nin-place = \"never\"\n";
    let found = experiment("in-place = \"auto\"", "policy = { nice = 5 }", own);
    assert_eq!(found.workloads[0].in_place, None);
    assert_eq!(found.workloads[0].whole_because, None);
}

#[test]
fn arms_that_cannot_change_in_place_are_named_and_measured_in_whole_trials() {
    let one = "[[workload]]\nkind = \"wakeup\"\n[workload.server]\nkind = \"echo\"\n";
    let fixed = "to = \"server\"\ncpus = \"0\"";
    let served = one.replace("wakeup", "rr");
    let found = experiment("in-place = \"auto\"", fixed, &served);
    assert_eq!(found.workloads[0].in_place, None);
    let why = found.workloads[0].whole_because.as_deref().unwrap();
    assert!(why.contains("arm `other`"), "{why}");
}

#[test]
fn a_pilot_of_sched_ext_schedulers_begins_with_a_washout_in_which_one_can_attach() {
    let one = "[[workload]]\nkind = \"wakeup\"\nduration = \"60s\"\n";
    let found = experiment("in-place = \"auto\"", "scheduler = \"scx_rusty\"", one);
    let lengths = found.workloads[0].in_place.unwrap();
    assert_eq!(lengths.washout_ns, 1_000_000_000);
    assert!(lengths.pilot);
}

#[test]
fn lengths_that_a_pilot_chooses_cannot_be_given() {
    let text = "name = \"turns\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\n\
                policy = { class = \"batch\" }\n\
                [[workload]]\nkind = \"wakeup\"\nin-place = \"auto\"\nturn = \"50ms\"\n";
    let error = parse_experiment("turns.toml", text)
        .unwrap_err()
        .to_string();
    assert!(error.contains("a pilot chooses it"), "{error}");
}

const COUNTS: &str = "[[workload]]\nkind = \"command\"\ncommand = [\"true\"]\n\
                      [[workload.metric]]\nname = \"ops\"\nbetter = \"higher\"\n\
                      regex = 'ops (?<v>.+)'\n";

/// Error of two arms under a program with these keys.
fn refused(workload: &str) -> String {
    let text = format!(
        "name = \"turns\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"other\"\n\
         policy = {{ nice = 5 }}\n{workload}"
    );
    parse_experiment("turns.toml", &text)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_program_takes_turns_where_it_prints_as_it_goes_and_is_told_for_how_long() {
    let always = |keys: &str, pick: &str| {
        let keys = format!("[[workload]]\nin-place = \"always\"\n{keys}");
        COUNTS.replace("[[workload]]\n", &keys) + pick
    };
    let rate = "pick = \"rate\"\n";
    let found = experiment(
        "",
        "policy = { nice = 5 }",
        &always("duration = \"10s\"\n", rate),
    );
    assert!(found.workloads[0].in_place.is_some());
    let endless = refused(&always("", rate));
    assert!(
        endless.contains("need a time for which it runs"),
        "{endless}"
    );
    let many = refused(&always("duration = \"10s\"\n", ""));
    assert!(many.contains("is in many lines"), "{many}");
    let in_json =
        always("duration = \"10s\"\n", "").replace("regex = 'ops (?<v>.+)'", "json = \"$.a\"");
    assert!(refused(&in_json).contains("takes a regex"), "{in_json}");
    // A program that ends has one figure, and nobody sees when it was printed.
    let whole = refused(&format!("{COUNTS}{rate}"));
    assert!(whole.contains("for arms that take turns"), "{whole}");
    let found = experiment("in-place = \"auto\"", "policy = { nice = 5 }", COUNTS);
    let why = found.workloads[0].whole_because.as_deref().unwrap();
    assert!(why.contains("runs to its end"), "{why}");
}

#[test]
fn workers_that_are_guests_or_processes_take_no_turns() {
    for workers in ["guests", "processes"] {
        let workload = format!(
            "[[workload]]\nkind = \"burnwait\"\nworkers = \"{workers}\"\nin-place = \"always\"\n"
        );
        let said = refused(&workload);
        assert!(said.contains(&format!("are {workers}")), "{said}");
    }
}

#[test]
fn a_turn_gives_back_one_weight_and_not_one_to_each_neighbour() {
    let beside = |second: u32| {
        let text = format!(
            "name = \"turns\"\nin-place = \"auto\"\n[[arm]]\nname = \"default\"\n\
             to = \"antagonist\"\n[[arm]]\nname = \"light\"\nto = \"antagonist\"\nweight = 20\n\
             [[workload]]\nkind = \"wakeup\"\n\
             [[workload.antagonist]]\nkind = \"spinner\"\nname = \"a\"\nweight = 50\n\
             [[workload.antagonist]]\nkind = \"spinner\"\nname = \"b\"\nweight = {second}\n"
        );
        let read = parse_experiment("turns.toml", &text);
        read.unwrap().workloads[0].clone()
    };
    let unlike = beside(300).whole_because.unwrap();
    assert!(unlike.contains("a weight of their own each"), "{unlike}");
    assert!(beside(50).in_place.is_some());
}
