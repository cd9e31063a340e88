//! `[[workload.service]]`: what it says, and what is wrong with it, with its place.

#![allow(clippy::unwrap_used)]

mod named;

use model::{Ready, Role, StopSignal};
use named::parse_experiment;

const STACK: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }

[[workload]]
kind = "http"
url = "/accounts"

[[workload.service]]
name = "broker"
command = ["broker", "{folder}/server.properties"]
ports = ["client", "controller"]
env = { HEAP = "-Xmx512m" }
before-start = [["broker-storage", "format", "{folder}"]]
when-ready = [["broker-topics", "--create", "127.0.0.1:{port}"]]
ready-limit = "3m"
stop-signal = "INT"
cpus = "0"
[workload.service.files]
"server.properties" = "listeners=127.0.0.1:{port.client},127.0.0.1:{port.controller}\n"

[[workload.service]]
name = "api"
command = ["api", "--port={port}", "--broker=127.0.0.1:{broker.port}"]
ports = ["http"]
ready = { path = "/health" }
"#;

#[test]
fn services_are_read_in_their_order_and_answer_the_load() {
    let experiment = parse_experiment("x.toml", STACK).unwrap();
    let workload = &experiment.workloads[0];
    assert_eq!(
        workload.server, None,
        "the last service with a port is asked"
    );
    assert_eq!(experiment.arms[1].to, Role::Server);
    let [broker, api] = &workload.services[..] else {
        panic!("{workload:?}");
    };
    assert_eq!(
        (broker.ready.clone(), broker.stop_signal),
        (Ready::Ports, StopSignal::Int)
    );
    assert_eq!(broker.ready_limit_ns, 180_000_000_000);
    assert_eq!(broker.placement.cpus.as_deref(), Some("0"));
    let health = Ready::Http {
        path: "/health".to_owned(),
        status: 200,
    };
    assert_eq!(api.ready, health);
}

/// The message, and the text that is pointed at.
fn wrong(from: &str, to: &str) -> (String, String) {
    assert!(STACK.contains(from), "{from}");
    let text = STACK.replacen(from, to, 1);
    let error = parse_experiment("x.toml", &text).unwrap_err();
    let label = miette::Diagnostic::labels(&error).and_then(|mut labels| labels.next());
    let place = label.map_or("", |label| {
        &text[label.offset()..label.offset() + label.len()]
    });
    (error.to_string(), place.to_owned())
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases = [
        (
            "{broker.port}\"]",
            "{brokr.port}\"]",
            "`{brokr.port}` stands for nothing",
            "[\"api\"",
        ),
        (
            "name = \"api\"",
            "name = \"broker\"",
            "there are two services `broker`",
            "\"broker\"",
        ),
        (
            "name = \"api\"",
            "name = \"../api\"",
            "`../api` is no name",
            "\"../api\"",
        ),
        (
            "[\"client\", \"controller\"]",
            "[\"a\", \"a\"]",
            "two ports `a`",
            "[\"a\"",
        ),
        (
            "\"server.properties\" = ",
            "\"../x\" = ",
            "`../x` is no file in the folder",
            "",
        ),
        (
            "{ path = \"/health\" }",
            "{ path = \"/\", log = \"up\" }",
            "`ready` is one of",
            "{ path",
        ),
        ("ports = [\"http\"]", "ports = []", "has no port", "{ path"),
        ("cpus = \"0\"", "cpus = \"x\"", "x", "\"x\""),
        (
            "HEAP = ",
            "\"A=B\" = ",
            "`A=B` is no environment variable",
            "",
        ),
    ];
    for (from, to, message, place) in cases {
        let (said, at) = wrong(from, to);
        assert!(said.contains(message), "{from}: {said}");
        assert!(at.starts_with(place), "{from}: {at}");
    }
}

/// The service `api` as a container with these further keys.
fn in_container(keys: &str) -> String {
    let command = "command = [\"api\", \"--port={port}\", \"--broker=127.0.0.1:{broker.port}\"]";
    assert!(STACK.contains(command));
    STACK.replace(command, keys)
}

#[test]
fn a_service_with_an_image_is_a_container_that_needs_no_command() {
    let text = in_container(
        "image = \"localhost/api:1\"\noptions = [\"--label={container}\"]\n\
         container-ports = { http = 80 }",
    );
    let experiment = parse_experiment("x.toml", &text).unwrap();
    let api = &experiment.workloads[0].services[1];
    let container = api.container.as_ref().unwrap();
    assert_eq!(
        (api.argv.len(), container.image.as_str()),
        (0, "localhost/api:1")
    );
    assert_eq!((container.ports["http"], &container.engine), (80, &None));
}

#[test]
fn what_no_container_could_be_is_said() {
    for (keys, why) in [
        ("engine = \"podman\"", "`engine` is of a container"),
        ("options = []", "`options` is of a container"),
        ("image = \"-v\"", "`-v` is no name of an image"),
        ("image = \"a b\"", "`a b` is no name of an image"),
        (
            "image = \"a\"\nengine = \"rkt\"",
            "`rkt` is no engine that schedlab knows",
        ),
        (
            "image = \"a\"\noptions = [\"--name=x\"]",
            "`--name=x` is given by schedlab itself",
        ),
        (
            "image = \"a\"\ncontainer-ports = { web = 80 }",
            "`web` is none of its ports",
        ),
        (
            "image = \"a\"\nmemory-node = 0",
            "the engine says where the memory",
        ),
        (
            "image = \"a\"\ncommand = [\"{prot}\"]",
            "`{prot}` stands for nothing",
        ),
    ] {
        let error = parse_experiment("x.toml", &in_container(keys))
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{keys}: {error}");
    }
}

const FILES: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "command"
command = ["cat", "{folder}/conf/task.json"]
[workload.files]
"conf/task.json" = '{ "logdir": "{folder}" }'
"#;

#[test]
fn a_load_that_names_its_folder_has_one() {
    let text = |command: &str| {
        format!("[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"command\"\n{command}\n")
    };
    for (command, has) in [
        ("command = [\"true\"]", false),
        ("command = [\"sh\", \"-c\", \"echo {folders}\"]", false),
        ("command = [\"touch\", \"{folder}/a\"]", true),
        (
            "command = [\"true\"]\nprepare = [\"mkdir\", \"{folder}/a\"]",
            true,
        ),
    ] {
        let experiment = parse_experiment("x.toml", &text(command)).unwrap();
        assert_eq!(experiment.workloads[0].has_folders(), has, "{command}");
    }
}

#[test]
fn files_of_the_load_stay_in_its_folder_and_are_a_reason_to_have_one() {
    let experiment = parse_experiment("x.toml", FILES).unwrap();
    let workload = &experiment.workloads[0];
    assert!(workload.has_folders());
    assert_eq!(
        workload.files["conf/task.json"],
        "{ \"logdir\": \"{folder}\" }"
    );
    for outside in ["../task.json", "/task.json", ""] {
        let text = FILES.replace("\"conf/task.json\" =", &format!("\"{outside}\" ="));
        let error = parse_experiment("x.toml", &text).unwrap_err().to_string();
        assert!(error.contains("no file in the folder"), "{error}");
    }
}

#[test]
fn only_a_guest_that_is_saved_has_a_load_before_that() {
    let text = STACK.replace("url =", "warmup = \"5s\"\nsnapshot-warmup = \"2m\"\nurl =");
    let error = parse_experiment("x.toml", &text).unwrap_err().to_string();
    assert!(error.contains("this target saves none"), "{error}");
    let saved = "[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\nroot = \"image:a.squashfs\"\nreset = \"snapshot\"\n";
    let command =
        "[[workload]]\nkind = \"command\"\ncommand = [\"true\"]\nsnapshot-warmup = \"2m\"\n";
    let arms = "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\npolicy = { nice = 1 }\n";
    let search =
        "loads = { find = \"max\", slo = \"p99 < 20ms\", from = \"200/s\", to = \"5k/s\" }";
    for (text, why) in [
        (format!("{saved}{arms}{command}"), "has none"),
        (
            format!("{saved}{}", text.replace("warmup = \"5s\"", search)),
            "at each rate",
        ),
    ] {
        let error = parse_experiment("x.toml", &text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let experiment = parse_experiment("x.toml", &format!("{saved}{text}")).unwrap();
    let workload = &experiment.workloads[0];
    assert_eq!(workload.warmup_ns, 5_000_000_000);
    assert_eq!(workload.snapshot_warmup_ns, Some(120_000_000_000));
}
