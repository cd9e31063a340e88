//! From what was typed to what it means: an experiment and its source.

use crate::args::{ExperimentArgs, WordArgs};
use crate::exit::CliError;
use crate::{complete, sources, targets};
use doors::started::Agreed;
use machines::{Expose, TargetDef};
use model::{Calibration, Experiment, TargetSpec};
use plan::{Document, Key, PlanError, Words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment.
pub struct Wanted {
    pub experiment: Experiment,
    /// The text of its file; one that says the same where it came from a command line.
    pub source: Option<String>,
    /// Calibrations of an earlier run that is to be repeated with the very same work.
    pub calibrations: BTreeMap<String, Calibration>,
}

pub fn read_wanted(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let arms = &args.words.arms;
    let (mut experiment, source) = match &args.file {
        None => from_words(args).map(|(experiment, text)| (experiment, Some(text)))?,
        Some(path) => {
            let (experiment, text) = from_file(path, arms)?;
            let is_its_own = arms.is_empty();
            (overridden(experiment, args)?, is_its_own.then_some(text))
        }
    };
    let cpus = targets::cpus(&experiment.target);
    complete::complete(&mut experiment, &cpus);
    Ok(Wanted {
        experiment,
        source,
        calibrations: BTreeMap::new(),
    })
}

/// The experiment of a command line, and the text of the file that it becomes.
fn from_words(args: &ExperimentArgs) -> Result<(Experiment, String), CliError> {
    let mut document = Document::from_words(&words(args)?)?;
    let (experiment, text) = document.read()?;
    let left_out = args.cells.left_out(&experiment)?;
    if left_out.is_empty() {
        return Ok((experiment, text));
    }
    document.leave_out(&left_out);
    Ok(document.read()?)
}

/// An experiment that was written elsewhere, as the command line wants it.
pub fn overridden(
    mut experiment: Experiment,
    args: &ExperimentArgs,
) -> Result<Experiment, CliError> {
    args.cells.narrow(&mut experiment)?;
    let mut keys = keys(args);
    if let Some(hunt) = &args.hunt {
        let is_usual = args.event.is_empty() && experiment.observe.events.is_empty();
        let is_endless = args.budget.is_none() && experiment.stop.budget_ns.is_none();
        keys.extend(of_hunt(is_usual, is_endless));
        experiment = plan::provoke(experiment, &hunt.provoke)?;
    }
    let mut experiment = plan::lay_over(experiment, &keys)?;
    expose(&mut experiment, &args.expose)?;
    if let Some(guests) = args.guests {
        can_have_guests(machines::find_def(&experiment.target).map_err(PlanError::from)?)?;
        experiment.target = experiment.target.with_key("guests", json!(guests));
    }
    plan::check(&experiment)?;
    Ok(experiment)
}

/// An experiment that the user measures, and so agrees to: what its arms name by a commit is built.
pub fn read_measurable(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let mut wanted = read_wanted(args)?;
    sources::build(&mut wanted.experiment, Agreed::by_command())?;
    sources::require_installed(&wanted.experiment)?;
    Ok(wanted)
}

/// On the command line as in the file.
fn expose(experiment: &mut Experiment, paths: &[String]) -> Result<(), CliError> {
    if paths.is_empty() {
        return Ok(());
    }
    let def = machines::find_def(&experiment.target).map_err(PlanError::from)?;
    let expose = can_expose(def)?;
    Ok(expose(&mut experiment.target, paths).map_err(PlanError::from)?)
}

/// The way in which a target that is a guest sees files of this machine.
fn can_expose(def: &TargetDef) -> Result<Expose, CliError> {
    def.expose.ok_or_else(|| {
        let what = format!(
            "`--expose` is for guests, and this experiment runs on {} itself",
            def.summary
        );
        CliError::usage(what, "leave it out, or run in a guest: `--vm debian:sid`")
    })
}

/// Refuses several guests of a target that is none.
fn can_have_guests(def: &TargetDef) -> Result<(), CliError> {
    if def.keys.iter().any(|key| key.name == "guests") {
        return Ok(());
    }
    let what = format!(
        "`--guests` is for guests of QEMU, and this experiment runs on {}",
        def.summary
    );
    Err(CliError::usage(
        what,
        "leave it out, or run in guests: `--vm debian:sid`",
    ))
}

/// Extension of the files of schedbench.
const CLASSIC: &str = "bench";

/// The experiment of a file, with these arms in place of its own if there are any, and its text.
pub fn from_file(path: &Path, arms: &[String]) -> Result<(Experiment, String), CliError> {
    let is_classic = path.extension().is_some_and(|end| end == CLASSIC);
    let text = match is_classic {
        true => import::bench_file::experiment_text(path)
            .map_err(|e| CliError::usage(e.to_string(), e.remedy))?,
        false => read_text(path).map_err(|e| {
            CliError::usage(
                format!("reading {}: {e}", path.display()),
                "give the path of an experiment file, or arms and workloads: -a default -a batch -w \
                 wakeup",
            )
        })?,
    };
    let name = path.display().to_string();
    let experiment = plan::parse_with_arms(&name, &text, arms)?;
    Ok((experiment, text))
}

/// The table `[tune]` of a file.
pub fn read_tuning(path: &Path) -> Result<plan::Tuning, CliError> {
    let (_, text) = from_file(path, &["default".to_owned()])?;
    Ok(plan::read_tuning(&path.display().to_string(), &text)?)
}

/// The most that an experiment file has: there is much room for comments.
const MOST_FILE_BYTES: u64 = 4 << 20;

/// Text of a file, or of a pipe that somebody writes to.
fn read_text(path: &Path) -> std::io::Result<String> {
    doors::read::text_of_file_or_pipe(path, MOST_FILE_BYTES)
}

fn words(args: &ExperimentArgs) -> Result<Words, CliError> {
    let words = &args.words;
    let options = [
        ("--perf", "perf", json!(words.perf)),
        ("--duration", "workload.duration", json!(words.duration)),
        ("--in-place", "workload.in-place", json!(words.in_place)),
        ("--turn", "workload.turn", json!(words.turn)),
        ("--washout", "workload.washout", json!(words.washout)),
    ];
    let mut keys = [keys(args), given(options)].concat();
    if args.hunt.is_some() {
        keys.extend(of_hunt(args.event.is_empty(), args.budget.is_none()));
    }
    keys.extend(target_keys(args)?);
    let provoke = args.hunt.as_ref().map(|hunt| hunt.provoke.clone());
    Ok(Words {
        arms: arms(words)?,
        workloads: words.workloads.clone(),
        command: words.command.clone(),
        prepare: words.prepare.clone(),
        metrics: words.metrics.clone(),
        server: words.server.clone(),
        beside: words.beside.clone(),
        co_runners: words.co_runner.clone(),
        provoke: provoke.unwrap_or_default(),
        keys,
    })
}

/// The events as they were typed, as one key.
fn events(args: &ExperimentArgs) -> Vec<Key> {
    let typed = args.event.iter();
    let mut words: Vec<String> = typed.map(|event| format!("--event '{event}'")).collect();
    let hunt = args.hunt.clone().unwrap_or_default();
    let table = |event: &String| {
        let mut table = json!({ "when": event });
        if let Some(below) = &hunt.same_below {
            table["same-below"] = json!(below);
        }
        if let Some(within) = hunt.same_within {
            table["same-within"] = json!(within);
        }
        table
    };
    words.extend(
        hunt.same_below
            .iter()
            .map(|below| format!("--same-below {below}")),
    );
    words.extend(
        hunt.same_within
            .map(|within| format!("--same-within {within}")),
    );
    let tables: Vec<Value> = args.event.iter().map(table).collect();
    let key = Key::of_word(&words.join(" "), "event", tables);
    (!args.event.is_empty())
        .then_some(key)
        .into_iter()
        .collect()
}

/// Blocks of a hunt: its events or its budget end it.
const BLOCKS_OF_HUNT: u32 = 2_000;

/// The keys that make a hunt of a run, with the usual event and the usual budget where nothing else is said.
fn of_hunt(is_usual: bool, is_endless: bool) -> Vec<Key> {
    let word = "schedlab hunt";
    let key = |name, value: Value| Key::of_word(word, name, value);
    let mut keys = vec![key("stop.decided-by", json!("events"))];
    if is_usual {
        keys.push(key("event", json!([{ "when": "ejected" }])));
    }
    if is_endless {
        keys.push(key("stop.budget", json!("1h")));
    }
    keys
}

/// The options that take the place of keys of a file, also of one that was written elsewhere.
pub fn keys(args: &ExperimentArgs) -> Vec<Key> {
    let blocks = args.hunt.as_ref().map(|_| BLOCKS_OF_HUNT);
    let options = given([
        ("--aa", "aa", json!(args.aa)),
        ("--trace", "trace", json!(args.trace)),
        ("--seed", "seed", json!(args.seed)),
        ("--budget", "stop.budget", json!(args.budget)),
        (
            "--max-blocks",
            "stop.max-blocks",
            json!(args.max_blocks.or(blocks)),
        ),
        (
            "--smallest-effect",
            "stop.smallest-effect",
            json!(args.smallest_effect),
        ),
        ("--confidence", "stop.confidence", json!(args.confidence)),
    ]);
    [options, events(args)].concat()
}

/// The keys of the options that were given.
fn given<const N: usize>(options: [(&str, &str, Value); N]) -> Vec<Key> {
    let is_given = |value: &Value| ![json!(null), json!(false), json!([])].contains(value);
    let options = options.into_iter().filter(|(.., value)| is_given(value));
    options
        .map(|(option, name, value)| Key::new(option, name, value))
        .collect()
}

/// The arms as they were typed, and one for each profile. Without any that was typed, profiles
/// are compared with the machine as it is.
fn arms(words: &WordArgs) -> Result<Vec<String>, CliError> {
    let mut arms = words.arms.clone();
    let Some(directory) = &words.profiles else {
        return Ok(arms);
    };
    if arms.is_empty() {
        // A profile may be called `default`.
        arms.push("unchanged:=default".to_owned());
    }
    arms.extend(profiles(directory)?);
    Ok(arms)
}

/// An arm for each file of a directory, named after it.
fn profiles(directory: &Path) -> Result<Vec<String>, CliError> {
    let refuse = |what: String| {
        let remedy = "a profile is a file of NAME=VALUE lines, such as low_latency.conf with \
                      SCHED_MIGRATION_COST_NS=100000";
        CliError::usage(what, remedy)
    };
    let unreadable = |e| refuse(format!("reading the profiles {}: {e}", directory.display()));
    let mut arms = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !path.is_file() {
            continue;
        }
        let Some(text) = path.to_str() else {
            let what = format!("`{}`: a path that is not UTF-8", path.display());
            return Err(refuse(what + " cannot stand in an experiment file"));
        };
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let Some(name) = name.filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if text.contains('+') {
            return Err(refuse(format!(
                "`{text}`: a `+` in the path would join two changes of an arm"
            )));
        }
        arms.push(format!("{name}:=profile={text}"));
    }
    if arms.is_empty() {
        let what = format!("there are no profiles in {}", directory.display());
        return Err(refuse(what));
    }
    arms.sort();
    Ok(arms)
}

/// The keys of `[target]` that the arguments mean; none is this machine.
fn target_keys(args: &ExperimentArgs) -> Result<Vec<Key>, CliError> {
    let words = &args.words;
    let mut keys = match (&words.target, &words.vm) {
        (Some(text), _) => short_form(text, &format!("--target {text}"))?,
        (None, Some(kernel)) => short_form(&format!("vm:{kernel}"), &format!("--vm {kernel}"))?,
        (None, None) => Vec::new(),
    };
    let kind = keys.first().and_then(|kind| kind.value.as_str());
    if let Some(def) = machines::find_by_name(kind.unwrap_or("local")) {
        if !args.expose.is_empty() {
            can_expose(def)?;
        }
        if args.guests.is_some() {
            can_have_guests(def)?;
        }
    }
    keys.extend(given([
        (
            "--architecture",
            "target.architecture",
            json!(words.architecture),
        ),
        ("--cpus", "target.cpus", json!(words.cpus)),
        ("--clock", "target.clock", json!(words.clock)),
        (
            "--memory",
            "target.memory",
            json!(words.vm.as_ref().map(|_| &words.memory)),
        ),
        ("--expose", "target.expose", json!(args.expose)),
        ("--guests", "target.guests", json!(args.guests)),
    ]));
    Ok(keys)
}

/// The keys of `[target]` that `KIND:TEXT` of this word means.
fn short_form(text: &str, word: &str) -> Result<Vec<Key>, CliError> {
    let (kind, value) = match text.split_once(':') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    let keys = |def: &machines::TargetDef, named: Option<(&str, &str)>| {
        let kind = std::iter::once(("kind", def.name));
        let keys = kind.chain(named);
        let key = |(name, value)| Key::of_word(word, &format!("target.{name}"), value);
        keys.map(key).collect()
    };
    let found = match value {
        Some(value) => {
            machines::find_by_short(kind).map(|(def, short)| keys(def, Some((short.key, value))))
        }
        None => machines::find_by_name(kind)
            .filter(|def| def.shorts.is_empty())
            .map(|def| keys(def, None)),
    };
    found.ok_or_else(|| {
        CliError::usage(
            format!("`{text}` is no target"),
            format!("a target is one of: {}", target_forms().join(", ")),
        )
    })
}

/// Short form of a target on a command line: `local`, `ssh:HOST`.
fn target_forms() -> Vec<String> {
    let of_target = |def: &&'static machines::TargetDef| {
        let shorts = def.shorts.iter();
        let forms = shorts.map(|short| format!("{}:{}", short.word, short.name.to_uppercase()));
        match def.shorts.is_empty() {
            true => vec![def.name.to_owned()],
            false => forms.collect(),
        }
    };
    machines::TARGETS.iter().flat_map(of_target).collect()
}

/// The target that `KIND:TEXT` means, or the file of an experiment names, and whether it was typed.
pub fn target_of(text: &str) -> Result<(TargetSpec, bool), CliError> {
    let path = Path::new(text);
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return Ok((from_file(path, &[])?.0.target, false));
    }
    // An experiment is read as from any command line; its target is all that is wanted.
    let words = Words {
        arms: vec!["default".to_owned()],
        workloads: vec!["wakeup".to_owned()],
        keys: short_form(text, text)?,
        ..Words::default()
    };
    let (experiment, _) = Document::from_words(&words)?.read()?;
    Ok((experiment.target, true))
}

/// The experiment of a run that goes on. It may get more time or more blocks: its verdicts hold
/// whenever it stops. All else would make the trials so far those of another experiment.
pub fn extend_experiment(
    before: &Experiment,
    args: &ExperimentArgs,
) -> Result<Experiment, CliError> {
    let mut keys = keys(args);
    // With an experiment beside it, that is said of the experiment.
    keys.retain(|key| key.name != "aa" || args.is_empty());
    let is_fixed = |key: &&Key| !["stop.budget", "stop.max-blocks"].contains(&key.name.as_str());
    if let Some(key) = keys.iter().find(is_fixed) {
        let option = key.word.split(' ').next().unwrap_or(&key.word);
        return Err(CliError::usage(
            format!("`{option}` cannot be changed in a run that goes on"),
            "leave it out, or start a new run without --resume; --budget and --max-blocks may be \
             given",
        ));
    }
    let blocks = before.stop.max_blocks;
    if args.max_blocks.is_some_and(|wanted| wanted < blocks) {
        return Err(CliError::usage(
            format!("`--max-blocks` is less than the {blocks} of the run so far"),
            "give more, or give a shorter --budget",
        ));
    }
    Ok(plan::lay_over(before.clone(), &keys)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_profile_that_no_file_could_name_is_refused_and_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let add = |name: &[u8]| {
            let file = dir.path().join(OsStr::from_bytes(name));
            std::fs::write(file, "SCHED_MIGRATION_COST_NS=100000").unwrap();
        };
        add(b"low.conf");
        let path = dir.path().join("low.conf");
        let arm = format!("low:=profile={}", path.display());
        assert_eq!(profiles(dir.path()).unwrap(), [arm]);
        add(b"l\xf8w.conf");
        let refused = profiles(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("not UTF-8"), "{refused}");
    }

    #[test]
    fn a_run_that_goes_on_takes_more_time_and_blocks_and_nothing_else() {
        let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"wakeup\"\n";
        catalogue::install();
        let before = plan::parse_experiment("x.toml", text).unwrap();
        let longer = ExperimentArgs {
            budget: Some("90s".to_owned()),
            max_blocks: Some(50),
            ..ExperimentArgs::default()
        };
        let after = extend_experiment(&before, &longer).unwrap();
        assert_eq!(after.stop.budget_ns, Some(90_000_000_000));
        assert_eq!(after.stop.max_blocks, 50);
        let with_aa = ExperimentArgs {
            aa: true,
            ..longer.clone()
        };
        let refused = extend_experiment(&before, &with_aa)
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("`--aa` cannot be changed"), "{refused}");
        // Said of the experiment beside it, which is compared with that of the run.
        let of_file = ExperimentArgs {
            file: Some("x.toml".into()),
            ..with_aa
        };
        assert_eq!(extend_experiment(&before, &of_file).unwrap(), after);
        let fewer = ExperimentArgs {
            max_blocks: Some(3),
            ..ExperimentArgs::default()
        };
        assert!(extend_experiment(&before, &fewer).is_err());
    }
}
