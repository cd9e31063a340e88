//! Experiments of the command line.

use plan::{CommandLine, parse_command_line};
use serde_json::json;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn line(arms: &[&str], workloads: &[&str]) -> CommandLine {
    CommandLine {
        arms: words(arms),
        workloads: words(workloads),
        ..CommandLine::default()
    }
}

#[test]
fn a_server_is_asked_by_the_workloads_that_ask_one_and_antagonists_are_beside_all() {
    let with = CommandLine {
        server: Some("nginx".to_owned()),
        beside: words(&["spinner", "stress-ng"]),
        ..line(&["default"], &["http:2k/s", "wakeup"])
    };
    let [http, wakeup] = &parse_command_line(&with).expect("is right").workloads[..] else {
        panic!("two workloads");
    };
    let server = http.server.as_ref().expect("a server");
    assert_eq!(server.program.name(), "nginx");
    assert_eq!(wakeup.server, None);
    for workload in [http, wakeup] {
        let names: Vec<&str> = workload.antagonists.iter().map(|a| &*a.name).collect();
        assert_eq!(names, ["spinner", "stress-ng"]);
    }
    let stress = wakeup.antagonists[1].program.params();
    assert_eq!(stress["args"], json!(["--cpu", "0"]));
}

#[test]
fn a_role_that_cannot_be_is_answered_with_what_can() {
    let wrong = |server: Option<&str>, beside: &[&str], workload: &str| {
        let line = CommandLine {
            server: server.map(str::to_owned),
            beside: words(beside),
            ..line(&["default"], &[workload])
        };
        let error = parse_command_line(&line).expect_err("is wrong");
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
        format!("{error}: {}", help.unwrap_or_default())
    };
    for (said, expected) in [
        (
            wrong(Some("nginxx"), &[], "http:1k/s"),
            "did you mean `nginx`?",
        ),
        (wrong(Some("nginx -v"), &[], "http:1k/s"), "has no `args`"),
        (
            wrong(Some("nginx"), &[], "wakeup"),
            "asks a server: -w http --server",
        ),
        (
            wrong(None, &["spiner"], "wakeup"),
            "did you mean `spinner`?",
        ),
        (
            wrong(None, &["spinner", "spinner"], "wakeup"),
            "two antagonists `spinner`",
        ),
        (
            wrong(None, &["stress-ng '"], "wakeup"),
            "open quotation mark",
        ),
        (wrong(None, &[""], "wakeup"), "`--beside` without a kind"),
    ] {
        assert!(said.contains(expected), "{said}");
    }
}
