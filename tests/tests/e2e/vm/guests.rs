//! Experiments in a guest, and what their trials say.

use model::{Fact, TrialResult};
use results::{ResultSet, StoredTrial};
use std::process::Command;
use tests::{Bench, stderr};

pub const KERNEL: &str = "debian:sid";

pub fn experiment(arms: &str, command: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"1G\"\n\
         [[arm]]\nname = \"eevdf\"\n{arms}\
         [[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n"
    )
}

pub fn trials(bench: &Bench) -> Vec<StoredTrial> {
    ResultSet::read(&bench.path("out"))
        .expect("readable")
        .trials
}

/// The trials that count. What made others void is printed: a busy machine may hold a guest up, and the trial
/// is repeated then.
#[expect(clippy::print_stdout, reason = "it is read where the test fails")]
pub fn trials_that_count(bench: &Bench) -> Vec<StoredTrial> {
    let mut all = trials(bench);
    all.retain(|stored| {
        let why = stored.trial.result.state.why();
        why.inspect(|why| println!("repeated: {why}")).is_none()
    });
    all
}

/// Facts that held for the whole trial.
pub fn fact<'a>(result: &'a TrialResult, what: &str) -> &'a Fact {
    let mut facts = result.evidence.facts.iter();
    let fact = facts.find(|fact| fact.what == what);
    fact.unwrap_or_else(|| panic!("{what}: {:?}", result.evidence))
}

pub fn of<'a>(trials: &'a [StoredTrial], arm: &str) -> &'a StoredTrial {
    let mut of_arm = trials.iter().filter(|t| t.trial.arm == arm);
    of_arm.next().unwrap_or_else(|| panic!("{arm} was tried"))
}

/// `image.squashfs` with these programs and their libraries, and a root user; or why there is none.
pub fn image(bench: &Bench, programs: &[&str]) -> Option<String> {
    let script = "set -e; mkdir -p r/bin r/dev r/proc r/sys r/run r/tmp r/etc; \
         echo root:x:0:0:root:/:/bin/sh > r/etc/passwd; \
         for n in \"$@\"; do p=$(command -v $n); cp -L $p r/bin/; \
         for l in $(ldd $p 2>/dev/null | grep -o '/[^ ]*'); do \
         mkdir -p r$(dirname $l); cp -L $l r$l; done; done; \
         tar -C r -c . | tar2sqfs -q image.squashfs";
    let made = Command::new("sh")
        .args(["-c", script, "sh"])
        .args(programs)
        .current_dir(bench.dir.path())
        .output()
        .expect("sh");
    (!made.status.success()).then(|| {
        let programs = programs.join(", ");
        let why = stderr(&made);
        format!("no image can be made ({programs}, squashfs-tools-ng): {why}")
    })
}
