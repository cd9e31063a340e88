//! The file system of a container as the root of a guest, made as docs/your-application.md says.

use super::guests::{KERNEL, trials};
use std::process::Command;
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout};

/// Nothing but a program and its files, as images without a distribution are; names are empty, as
/// the engine that made them leaves them.
const MAKE: &str = "set -e; mkdir -p c/app c/www c/dev c/etc c/proc c/sys
    touch c/.dockerenv c/etc/hosts c/etc/hostname c/etc/resolv.conf
    cp \"$(command -v busybox)\" c/app/busybox; echo hello > c/www/index.html
    cd c; tar -c .dockerenv * > ../container.tar; cd ..; tar2sqfs -q app.squashfs < container.tar";

const EXPERIMENT: &str = r#"
[target]
kind = "vm"
kernel = "KERNEL"
memory = "512M"
root = "image:app.squashfs"
[[arm]]
name = "default"
[[workload]]
kind = "http"
url = "/index.html"
loads = ["20/s"]
warmup = "500ms"
duration = "3s"
metrics = ["request_p50"]
[[workload.service]]
name = "app"
before-start = [["/app/busybox", "ping", "-c", "1", "localhost"]]
command = ["/app/busybox", "httpd", "-f", "-p", "127.0.0.1:{port}", "-h", "/www"]
ports = ["http"]
ready = { path = "/index.html" }
[stop]
min-blocks = 1
max-blocks = 1
max-attempts = 1
"#;

#[test]
fn a_service_of_an_exported_container_is_measured_in_a_guest() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let has = |tool: &str| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {tool}")])
            .output();
        found.is_ok_and(|found| found.status.success())
    };
    if let Some(tool) = ["busybox", "tar2sqfs"].into_iter().find(|tool| !has(tool)) {
        return tests::skipped(format!(
            "{tool} is not installed (busybox-static, squashfs-tools-ng)"
        ));
    }
    let made = Command::new("sh")
        .args(["-c", MAKE])
        .current_dir(bench.dir.path())
        .output()
        .expect("sh");
    assert!(made.status.success(), "{}", stderr(&made));
    let file = bench.file("container.toml", &EXPERIMENT.replace("KERNEL", KERNEL));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    let result = &trials[0].trial.result;
    let rate = result
        .metrics
        .iter()
        .find(|m| m.metric == "requests_per_sec");
    assert!(rate.is_some_and(|rate| rate.value > 15.0), "{result:?}");
    let note = "what a trial runs is started anew, in a guest that is booted once for each kernel";
    let said = stdout(&output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(said.contains(note), "{said}");
}
