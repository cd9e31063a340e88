//! Commands that write a few files of the machine, killed in the middle: entries of the boot
//! loader, and units of systemd. They see files of the test's own in place of the machine's.

use crate::{Damage, Tally};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tests::{Bench, is_root, schedlab, shell_with_own_mounts, write_program};

const RELEASE: &str = "6.1.0-50-amd64";
const GRUB_CFG: &str = "\
if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   save_env next_entry\nfi\n\
menuentry 'Debian GNU/Linux' {\n\tlinux /boot/vmlinuz-6.1.0-50-amd64 root=UUID=ab ro\n}\n\
source ${config_directory}/custom.cfg\n";
const OWN_ENTRY: &str = "menuentry 'mine' {\n\techo hi\n}\n";
const OWN_WISH: &str = "timeout=3\nnext_entry=mine\n";
/// It takes its time, as a real one does that waits for the disk.
const EDITENV: &str = "#!/bin/sh\nsleep 0.02\nfile=$1\ncase $2 in\n\
    list) cat \"$file\" ;;\n\
    set) sed /^next_entry=/d \"$file\" > \"$file.n\"; echo \"$3\" >> \"$file.n\"; mv \"$file.n\" \"$file\" ;;\n\
    unset) sed \"/^$3=/d\" \"$file\" > \"$file.n\"; mv \"$file.n\" \"$file\" ;;\nesac\n";
const PROBE: &str = "#!/bin/sh\ncase $1 in --target=fs) echo ext2 ;; esac\n";
const SYSTEMCTL: &str = "#!/bin/sh\nsleep 0.01\n[ \"$1\" != is-system-running ] || echo running\n";
/// Until a killed command and its programs have ended.
const AFTERMATH: Duration = Duration::from_millis(150);

/// A machine whose `/run`, and one other directory, are the test's own.
struct Scratch {
    bench: Bench,
    over: &'static str,
}

impl Scratch {
    fn new(over: &'static str) -> Result<Self, String> {
        let bench = Bench::default();
        let scratch = Scratch { bench, over };
        for directory in ["bin", "files", "run/systemd/system"] {
            let made = fs::create_dir_all(scratch.bench.path(directory));
            made.map_err(|error| error.to_string())?;
        }
        let programs = [
            ("grub-editenv", EDITENV),
            ("grub-probe", PROBE),
            ("systemctl", SYSTEMCTL),
            ("systemd-analyze", "#!/bin/sh\n"),
        ];
        for (name, script) in programs {
            write_program(&scratch.bench.path("bin").join(name), script);
        }
        if !is_root() || !Path::new(over).is_dir() {
            return Err(format!("it needs root and {over}"));
        }
        match scratch.command(&["--version"]).output() {
            Ok(output) if output.status.success() => Ok(scratch),
            other => Err(format!("no mounts of its own: {other:?}")),
        }
    }

    /// `schedlab ARGS…` as the process that is started, so that a kill meets it.
    fn command(&self, args: &[&str]) -> Command {
        let dir = self.bench.dir.path().display();
        let script = format!(
            "mount --bind {dir}/files {} && mount --bind {dir}/run /run && exec \"$0\" \"$@\"",
            self.over
        );
        let mut command = shell_with_own_mounts(&[], &script);
        command.arg(schedlab()).args(args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{dir}/bin:{path}"));
        command.env("SCHEDLAB_STATE_DIR", self.bench.path("state"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("schedlab starts")
    }

    /// Kills it at a random moment; gives whether it still ran.
    fn kill(&self, args: &[&str], moment: Duration) -> bool {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("schedlab starts");
        std::thread::sleep(moment);
        let ran = child.try_wait().expect("it is our child").is_none();
        let _ = child.kill();
        let _ = child.wait();
        std::thread::sleep(AFTERMATH);
        ran
    }

    /// All files in place of the machine's, by their names below the directory.
    fn files(&self, below: &str) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.bench.path("files").join(below));
        let entries = entries.into_iter().flatten().flatten();
        let each = entries.map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).unwrap_or_default())
        });
        each.collect()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.bench.path("files").join(name);
        let directory = path.parent().expect("it is below the files");
        fs::create_dir_all(directory).expect("a directory");
        fs::write(path, text).expect("a file");
    }
}

/// Kills of `boot-next restart` and `boot-next clear`, by GRUB. Lost is what the owner had in its
/// files; left is what `clear` does not take back.
pub fn boot_entries(kills: usize, seed: u64) -> Result<Tally, String> {
    let scratch = Scratch::new("/boot")?;
    scratch.write(&format!("vmlinuz-{RELEASE}"), "");
    scratch.write("grub/grub.cfg", GRUB_CFG);
    scratch.write("grub/custom.cfg", OWN_ENTRY);
    scratch.write("grub/grubenv", OWN_WISH);
    let before = scratch.files("grub");
    let restart = ["boot-next", "restart", "--by", "grub", RELEASE];
    let clear = ["boot-next", "clear"];
    tests::expect_code(&scratch.run(&restart), 0);
    tests::expect_code(&scratch.run(&clear), 0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    while tally.kills < kills {
        let clears = random.random_bool(0.5);
        if clears {
            tests::expect_code(&scratch.run(&restart), 0);
        }
        let moment = Duration::from_millis(random.random_range(0..250));
        let killed = scratch.kill(if clears { &clear } else { &restart }, moment);
        tally.kills += usize::from(killed);
        let custom = scratch
            .files("grub")
            .remove("custom.cfg")
            .unwrap_or_default();
        let lost = custom.matches(OWN_ENTRY).count() != 1;
        let cleared = scratch.run(&clear);
        let after = scratch.files("grub");
        let damage = Damage {
            trials_lost: usize::from(lost),
            knobs_left: usize::from(after != before),
            runs_stuck: usize::from(cleared.status.code() != Some(0)),
            ..Damage::default()
        };
        if damage != Damage::default() {
            eprintln!(
                "boot entries, clears {clears}, {moment:?}: {damage:?} {after:?} {cleared:?}"
            );
            return Ok(with(tally, damage));
        }
        tally.completed += 1;
    }
    Ok(tally)
}

/// Kills of `service install` and `service remove`. Lost is a unit of somebody else; left is what
/// `remove` does not take away, and stuck is half a unit.
pub fn service_units(kills: usize, seed: u64) -> Result<Tally, String> {
    let scratch = Scratch::new("/etc/systemd/system")?;
    let text = "name = \"kills\"\n[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"command\"\n\
                command = [\"true\"]\n";
    let experiment = scratch.bench.file("kills.toml", text);
    let results = scratch.bench.path("results").display().to_string();
    scratch.write("other.service", "[Service]\nExecStart=true\n");
    let before = scratch.files("");
    let install = ["service", "install", &experiment, "--directory", &results];
    let remove = ["service", "remove", "kills"];
    tests::expect_code(&scratch.run(&install), 0);
    let whole = scratch.files("");
    tests::expect_code(&scratch.run(&remove), 0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    while tally.kills < kills {
        let removes = random.random_bool(0.5);
        if removes {
            tests::expect_code(&scratch.run(&install), 0);
        }
        let moment = Duration::from_millis(random.random_range(0..200));
        let killed = scratch.kill(if removes { &remove } else { &install }, moment);
        tally.kills += usize::from(killed);
        let there = scratch.files("");
        let is_half =
            |(name, text): (&String, &String)| whole.get(name).is_some_and(|whole| whole != text);
        let halves = there.iter().filter(|unit| is_half(*unit)).count();
        let removed = scratch.run(&remove);
        let after = scratch.files("");
        let damage = Damage {
            trials_lost: usize::from(after.get("other.service") != before.get("other.service")),
            knobs_left: usize::from(after != before),
            // Code 2: there was none to remove.
            runs_stuck: halves + usize::from(!matches!(removed.status.code(), Some(0 | 2))),
            ..Damage::default()
        };
        if damage != Damage::default() {
            eprintln!(
                "units, removes {removes}, {moment:?}: {damage:?} {there:?} {after:?} {removed:?}"
            );
            return Ok(with(tally, damage));
        }
        tally.completed += 1;
    }
    Ok(tally)
}

fn with(mut tally: Tally, damage: Damage) -> Tally {
    tally.damage += damage;
    tally
}
