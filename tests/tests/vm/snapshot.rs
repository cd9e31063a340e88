//! Trials that go on from a snapshot of the guest with its services running.

use crate::guests::{KERNEL, fact, image, trials};
use std::collections::BTreeSet;
use tests::{Bench, alone, expect_code, no_guests, stderr};

/// The load leaves a line in the guest and prints how many there are, and which process serves.
const EXPERIMENT: &str = r#"
[target]
kind = "vm"
kernel = "KERNEL"
memory = "512M"
root = "image:image.squashfs"
reset = "snapshot"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "command"
command = ["/bin/busybox", "sh", "-c", """
  cd /bin; ./busybox echo here >> /tmp/mark; ./busybox wc -l < /tmp/mark; ./busybox pidof memcached
  printf 'version\\r\\n' | ./busybox nc -w 5 127.0.0.1 {store.port} | ./busybox head -n 1"""]
[[workload.service]]
name = "store"
command = ["/bin/memcached", "-l", "127.0.0.1", "-U", "0", "-u", "root", "-p", "{port}"]
ports = ["main"]
[stop]
min-blocks = 1
max-blocks = 2
"#;

#[test]
fn every_trial_goes_on_from_the_same_services_after_the_same_load() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    if let Some(why) = image(&bench, &["busybox", "memcached"]) {
        return tests::skipped(why);
    }
    let file = bench.file("snapshot.toml", &EXPERIMENT.replace("KERNEL", KERNEL));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    assert_eq!(trials.len(), 4);
    let mut said = BTreeSet::new();
    for stored in &trials {
        let result = &stored.trial.result;
        assert!(stored.trial.is_ok(), "{:?}", result.state);
        let snapshot = fact(result, "guest goes on from");
        assert!(snapshot.found.starts_with("a snapshot of"), "{snapshot:?}");
        assert!(fact(result, "kernel").wanted.is_some());
        said.insert(std::fs::read_to_string(stored.dir.join("stdout.log")).expect("kept"));
    }
    assert_eq!(
        said.len(),
        1,
        "the same process, and one load before: {said:?}"
    );
    let said = said.pop_first().unwrap_or_default();
    assert!(
        said.starts_with("2\n") && said.contains("VERSION"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_put_back_is_refused() {
    let bench = Bench::default();
    let text = EXPERIMENT.replace("KERNEL", KERNEL);
    let on_the_host = text.replace("image:image.squashfs", "host");
    let file = bench.file("host.toml", &on_the_host);
    let said = bench.run(&["plan", &file]);
    expect_code(&said, 2);
    assert!(
        stderr(&said).contains("root = \"image:PATH\""),
        "{}",
        stderr(&said)
    );
}
