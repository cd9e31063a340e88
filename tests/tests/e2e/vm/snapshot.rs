//! Trials that go on from a snapshot of the guest with its services running.

use super::guests::{KERNEL, fact, image, trials, trials_that_count};
use std::collections::{BTreeMap, BTreeSet};
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout};

/// The load leaves a line in the guest and prints how many there are, which process serves, and
/// since which boot.
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
  ./busybox cat /proc/sys/kernel/random/boot_id
  printf 'version\\r\\n' | ./busybox nc -w 5 127.0.0.1 {store.port} | ./busybox head -n 1"""]
[[workload.service]]
name = "store"
command = ["/bin/memcached", "-l", "127.0.0.1", "-U", "0", "-u", "root", "-p", "{port}"]
ports = ["main"]
[stop]
min-blocks = 1
max-blocks = 2
"#;

/// An image for the experiment; `None` where that cannot be tried here.
fn bench_with_image() -> Option<Bench> {
    let bench = Bench::default();
    match no_guests()
        .map(str::to_owned)
        .or_else(|| image(&bench, &["busybox", "memcached"]))
    {
        None => Some(bench),
        Some(why) => {
            tests::skipped(why);
            None
        }
    }
}

/// Texts that the loads of each block printed, in blocks of two trials that all went on from
/// a snapshot.
fn said_in_blocks(bench: &Bench, reset: &str, blocks: usize) -> BTreeMap<u32, BTreeSet<String>> {
    let text = EXPERIMENT.replace("KERNEL", KERNEL);
    let text = text.replace("max-blocks = 2", &format!("max-blocks = {blocks}"));
    let file = bench.file("snapshot.toml", &text.replace("\"snapshot\"", reset));
    let _ = std::fs::remove_dir_all(bench.path("out"));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials_that_count(bench);
    assert_eq!(trials.len(), 2 * blocks);
    let mut said = BTreeMap::<u32, BTreeSet<String>>::new();
    for stored in &trials {
        let result = &stored.trial.result;
        assert!(stored.trial.is_ok(), "{:?}", result.state);
        let snapshot = fact(result, "guest goes on from");
        let is_named = reset.starts_with('{');
        let begins = if is_named {
            "the snapshot test-"
        } else {
            "a snapshot of"
        };
        assert!(snapshot.found.starts_with(begins), "{snapshot:?}");
        assert!(fact(result, "kernel").wanted.is_some());
        let text = std::fs::read_to_string(stored.dir.join("stdout.log")).expect("kept");
        assert!(
            text.starts_with("2\n") && text.contains("VERSION"),
            "one load before: {text}"
        );
        said.entry(stored.trial.place.block)
            .or_default()
            .insert(text);
    }
    said
}

/// A snapshot that is gone after its test.
struct Gone<'a>(&'a Bench, String);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.run(&["vm", "snapshot", "delete", &self.1]);
    }
}

#[test]
fn the_trials_of_two_nights_go_on_from_the_same_services_after_the_same_load() {
    let Some(bench) = bench_with_image() else {
        return;
    };
    let _turn = beside_others();
    let name = format!("test-night-{}", std::process::id());
    let reset = format!("{{ snapshot = \"{name}\" }}");
    let planned =
        || stdout(&bench.run(&["plan", &bench.path("snapshot.toml").display().to_string()]));
    let gone = Gone(&bench, name.clone());
    let first = said_in_blocks(&bench, &reset, 1);
    let second = said_in_blocks(&bench, &reset, 1);
    assert_eq!((first[&1].len(), &first), (1, &second), "one boot");
    let expected = format!("goes on from the snapshot {name} by a run for busybox");
    assert!(planned().contains(&expected), "{}", planned());
    // Services that answered another load are refused before anything is booted.
    let text = std::fs::read_to_string(bench.path("snapshot.toml")).expect("written");
    let other = bench.file("other.toml", &text.replace("echo here", "echo there"));
    let refused = bench.run(&["run", &other, "-o", "other"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(
        said.contains("answered a workload with another kind"),
        "{said}"
    );
    drop(gone);
    assert!(planned().contains(&format!("there is no snapshot {name} yet")));
}

/// A load on the controller that counts in the guest's memcached, and prints the count.
const COUNTED_FROM_OUTSIDE: &str = r#"
load-on = "controller"
command = ["bash", "-c", """
  exec 3<>/dev/tcp/127.0.0.1/{store.port}
  printf 'add n 0 0 1\r\n0\r\nincr n 1\r\nquit\r\n' >&3
  cat <&3"""]
[[workload.service]]"#;

#[test]
fn a_load_on_the_controller_finds_the_services_as_the_snapshot_has_them() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    if let Some(why) = image(&bench, &["busybox", "memcached"]) {
        return tests::skipped(why);
    }
    let (before, after) = EXPERIMENT.split_once("command = ").expect("a load");
    let (_, services) = after.split_once("[[workload.service]]").expect("services");
    let text = [before, COUNTED_FROM_OUTSIDE, services].concat();
    let text = text
        .replace("KERNEL", KERNEL)
        .replace("max-blocks = 2", "max-blocks = 1");
    let output = bench.run(&["run", &bench.file("outside.toml", &text), "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    assert_eq!(trials.len(), 2);
    for stored in &trials {
        assert!(stored.trial.is_ok(), "{:?}", stored.trial.result.state);
        let said = std::fs::read_to_string(stored.dir.join("stdout.log")).expect("kept");
        // The load before the snapshot counted to 1, and the other arm's trial is forgotten.
        assert_eq!(said, "NOT_STORED\r\n2\r\n");
    }
}

#[test]
#[ignore = "two boots and two snapshots, in make test-long"]
fn every_block_has_services_and_a_snapshot_of_its_own() {
    let Some(bench) = bench_with_image() else {
        return;
    };
    let _turn = beside_others();
    let said = said_in_blocks(&bench, "\"block-snapshot\"", 2);
    assert_eq!((said[&1].len(), said[&2].len()), (1, 1), "{said:?}");
    assert_ne!(said[&1], said[&2], "another boot for each block");
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
