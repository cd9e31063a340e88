//! Loads on the controller whose services are in the guest.

use super::guests::{fact, trials};
use std::process::Command;
use tests::{Bench, beside_others, expect_code, no_guests, stderr};

/// The guest's memcached listens on its loopback address only, and what the load writes stays
/// on the machine that it runs on.
const LOADS_APART: &str = r#"
[target]
kind = "vm"
kernel = "debian:sid"
memory = "1G"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "http"
loads = ["50/s"]
duration = "1s"
warmup = "100ms"
connections = 2
metrics = ["request_p50"]
load-on = "controller"
[[workload]]
kind = "command"
command = ["bash", "-c", """
  exec 3<>/dev/tcp/127.0.0.1/{store.port}
  printf 'version\\r\\n' >&3
  head -n 1 <&3 | tee {folder}/said >> /PLACE/said"""]
load-on = "controller"
keep = ["said"]
[[workload.service]]
name = "store"
command = ["memcached", "-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p", "{port}"]
ports = ["main"]
[stop]
min-blocks = 1
max-blocks = 1
"#;

#[test]
fn a_load_on_the_controller_asks_the_services_in_the_guest() {
    let _alone = beside_others();
    let memcached = Command::new("memcached").arg("-V").output();
    if let Some(why) = no_guests().or(memcached.err().map(|_| "memcached is not installed")) {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    let text = LOADS_APART.replace("/PLACE", &bench.dir.path().display().to_string());
    let file = bench.file("apart.toml", &text);
    let said = bench.run(&["run", &file, "-o", "out", "--quiet"]);
    expect_code(&said, 0);
    let trials = trials(&bench);
    assert_eq!(trials.len(), 4);
    for stored in &trials {
        let result = &stored.trial.result;
        assert!(stored.trial.is_ok(), "{:?}", result.state);
        let has = |name: &str| result.metrics.iter().any(|m| m.metric == name);
        let wanted = match stored.trial.cell.starts_with("http") {
            true => "request_p50",
            false => "wall_time",
        };
        assert!(has(wanted) && has("steal_time"), "{:?}", result.metrics);
        let kept = std::fs::read_to_string(stored.dir.join("kept/load/said"));
        assert_eq!(
            kept.is_ok_and(|said| said.starts_with("VERSION")),
            wanted == "wall_time"
        );
        // The kernel that is proven is the guest's.
        assert!(fact(result, "kernel").wanted.is_some());
    }
    let answers = std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    assert_eq!(answers.matches("VERSION").count(), 2, "{answers}");
}

#[test]
fn a_load_on_the_controller_that_its_arm_is_for_or_that_has_no_service_is_an_error() {
    let bench = Bench::default();
    let check = |text: &str| {
        let file = bench.file("wrong.toml", text);
        let said = bench.run(&["plan", &file]);
        expect_code(&said, 2);
        stderr(&said)
    };
    let for_load = LOADS_APART.replace("class = \"batch\" }", "class = \"batch\" }\nto = \"load\"");
    let said = check(&for_load);
    assert!(said.contains("runs on the controller"), "{said}");
    let alone = LOADS_APART
        .split("[[workload.service]]")
        .next()
        .unwrap_or_default();
    let said = check(alone);
    assert!(
        said.contains("nothing of the workload `bash` would run on the target"),
        "{said}"
    );
}
