//! Commands that read what others made, with the formats that they print.

use crate::seeds::{HONEST, Input, Kind};
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
    /// Its words; `IN` is the input, `TOOL` the name of a tool.
    words: &'static [&'static str],
    formats: &'static [&'static str],
    /// Exit codes that it may have.
    pub codes: &'static [i32],
}

const TABLES: &[&str] = &["text", "csv", "json", "html", "markdown", "lkml", "junit"];
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
        &[0, 1, 2],
    ),
    command(
        "compare-as-second",
        Kind::Results,
        &["compare", HONEST, "input"],
        PLAIN,
        &[0, 1, 2],
    ),
    command(
        "gate",
        Kind::Results,
        &["gate", HONEST, "input"],
        &["text", "json", "junit"],
        &[0, 1, 2, 4, 5],
    ),
    command(
        "merge",
        Kind::Results,
        &["merge", "input", HONEST, "-o", "out"],
        PLAIN,
        &[0, 1, 2, 4],
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
        &["forecast", "input"],
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
