//! Commands that read what others made, with the formats that they print.

use crate::seeds::{HONEST, Input, Kind, PROFILES, results_name};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// A command.
#[derive(Debug)]
pub struct Command {
    /// Name of it, and of its counts.
    pub name: &'static str,
    /// Kind of what it reads.
    pub input: Kind,
    /// Its words; `input` is the directory of results, `TOOL` the name of a tool.
    words: &'static [&'static str],
    formats: &'static [&'static str],
    /// Exit codes that it may have.
    pub codes: &'static [i32],
}

const TABLES: &[&str] = &[
    "text",
    "csv",
    "comparisons",
    "requests",
    "json",
    "html",
    "markdown",
    "lkml",
    "junit",
];
const GATES: &[&str] = &["text", "json", "junit", "markdown"];
const PLAIN: &[&str] = &["text", "json"];
const NONE: &[&str] = &[];

const fn command(
    name: &'static str,
    input: Kind,
    words: &'static [&'static str],
    formats: &'static [&'static str],
    codes: &'static [i32],
) -> Command {
    Command {
        name,
        input,
        words,
        formats,
        codes,
    }
}

/// All of them. None starts anything of its input: `check` and `run` do.
pub const COMMANDS: &[Command] = &[
    command(
        "report",
        Kind::Results,
        &["report", "input"],
        TABLES,
        &[0, 1, 2, 4],
    ),
    command(
        "verify",
        Kind::Results,
        &["verify", "input"],
        PLAIN,
        &[0, 1, 2],
    ),
    command(
        "compare",
        Kind::Results,
        &["compare", "input", HONEST],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "compare-as-second",
        Kind::Results,
        &["compare", HONEST, "input"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "recommend",
        Kind::Results,
        &["recommend", "input"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "recommend-of-two",
        Kind::Results,
        &["recommend", HONEST, "input", "--weigh=wakeup=2,hackbench=1"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "gate",
        Kind::Results,
        &["gate", HONEST, "input"],
        GATES,
        &[0, 1, 2, 4, 5],
    ),
    command(
        "gate-of-levels",
        Kind::Results,
        &["gate", "input", HONEST, "--by=levels", "--fail-on=unknown"],
        GATES,
        &[0, 1, 2, 4, 5],
    ),
    command(
        "gate-in-virtual-time",
        Kind::Results,
        &["gate", HONEST, "input", "--virtual"],
        GATES,
        &[0, 1, 2, 4, 5],
    ),
    command(
        "report-that-fails",
        Kind::Results,
        &["report", "input", "--full", "--fail-on=unknown"],
        TABLES,
        &[0, 1, 2, 4, 5],
    ),
    command(
        "report-to-a-file",
        Kind::Results,
        &["report", "input", "-o", "out.html"],
        TABLES,
        &[0, 1, 2, 4],
    ),
    command(
        "histograms",
        Kind::Results,
        &["report", "input", "--hgrm", "out"],
        NONE,
        &[0, 1, 2, 4],
    ),
    command(
        "forecast-of-an-effect",
        Kind::Results,
        &["plan", "--from", "input", "--effect=3%", "--budget=10m"],
        PLAIN,
        &[0, 1, 2, 3, 4],
    ),
    command(
        "compare-capsules",
        Kind::Capsule,
        &["compare", "input-file", HONEST, "--full"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "merge-capsules",
        Kind::Capsule,
        &["merge", HONEST, "input-file", "-o", "out"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "check",
        Kind::Experiment,
        &["check", "--no-start", "input-file"],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "check-of-bench",
        Kind::Bench,
        &["check", "--no-start", "input-file.bench"],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "units",
        Kind::Experiment,
        &[
            "service",
            "install",
            "input-file",
            "--dry-run",
            "--directory=out",
        ],
        NONE,
        &[0, 1, 2, 3],
    ),
    command(
        "plan-of-profiles",
        Kind::Profile,
        &["plan", "-adefault", "-wwakeup", "--profiles", PROFILES],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "merge",
        Kind::Results,
        &["merge", "input", HONEST, "-o", "out"],
        PLAIN,
        &[0, 1, 2, 4],
    ),
    command(
        "history-add",
        Kind::Results,
        &["history", "add", "input", "--store", "out"],
        PLAIN,
        &[0, 1, 2],
    ),
    command(
        "pack",
        Kind::Results,
        &["pack", "input", "-o", "out.tar.gz"],
        NONE,
        &[0, 1, 2],
    ),
    command(
        "forecast",
        Kind::Results,
        &["plan", "--from", "input"],
        PLAIN,
        &[0, 1, 2, 3, 4],
    ),
    command(
        "like",
        Kind::Results,
        &["run", "--like", "input"],
        NONE,
        &[1, 2, 3],
    ),
    command(
        "verify-capsule",
        Kind::Capsule,
        &["verify", "input-file"],
        PLAIN,
        &[0, 1, 2],
    ),
    command(
        "report-capsule",
        Kind::Capsule,
        &["report", "input-file"],
        TABLES,
        &[0, 1, 2, 4],
    ),
    command(
        "like-capsule",
        Kind::Capsule,
        &["run", "--like", "input-file"],
        NONE,
        &[1, 2, 3],
    ),
    command(
        "plan",
        Kind::Experiment,
        &["plan", "input-file"],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "plan-of-bench",
        Kind::Bench,
        &["plan", "input-file.bench"],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "plan-of-words",
        Kind::Words,
        &["plan"],
        PLAIN,
        &[0, 1, 2, 3],
    ),
    command(
        "import",
        Kind::Import,
        &["import", "TOOL", "input-file", "-o", "out"],
        TABLES,
        &[0, 1, 2, 4],
    ),
];

impl Command {
    /// The words of a command line for an input.
    pub fn words(&self, random: &mut ChaCha8Rng, input: &Input) -> Vec<String> {
        let word = |word: &&str| match (input, *word) {
            (Input::File(tool, _), "TOOL") => tool.clone(),
            (Input::Results(index, _), "input") => results_name(*index),
            (_, word) => word.to_owned(),
        };
        let mut words: Vec<String> = self.words.iter().map(word).collect();
        if let Input::Words(more) = input {
            for (option, word) in [("-a", "default"), ("-a", &more[0]), ("-w", &more[1])] {
                words.push(format!("{option}{word}"));
            }
        }
        if let Some(format) = self.formats.choose(random) {
            words.push(format!("--format={format}"));
        }
        if self.name == "import" && random.random_bool(0.4) {
            words.push("--skip-bad".to_owned());
        }
        words
    }
}
