//! The words of a command line as the text of an experiment file, which is read like any other.

use crate::arm::{parse_arm_for, usual_role};
use crate::document::{Key, Section, Text};
use crate::error::PlanError;
use crate::file::{self, parse};
use crate::metric;
use crate::workload::kinds;
use agent::arm::table::INGREDIENTS;
use load::Entry;
use load::kind::{KindDef, Window};
use load::roles::{ANTAGONISTS, SERVERS};
use model::{Antagonist, Arm, Experiment, Role, Workload};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const COMMENT: &str =
    "# The experiment of a command line, which `schedlab run` with this file repeats.\n";

/// Words of a command line that make an experiment without a file.
#[derive(Debug, Default)]
pub struct Words {
    /// Arms as after `-a`: `NAME:=CHANGES` or `CHANGES`. The first is the baseline.
    pub arms: Vec<String>,
    /// Workloads as after `-w`: a kind, with loads if wanted.
    pub workloads: Vec<String>,
    /// A command after `--`, as one more workload.
    pub command: Vec<String>,
    /// A command that runs before each trial of that one, as after `--prepare`.
    pub prepare: Option<String>,
    /// Metrics of the command as after `--metric`: `NAME=/REGEX/ higher`.
    pub metrics: Vec<String>,
    /// A server, as after `--server`: a kind, and its arguments if it takes some.
    pub server: Option<String>,
    /// Antagonists as after `--beside`, in the same form.
    pub beside: Vec<String>,
    /// Co-runners as after `--co-runner`: a kind, with a load if wanted.
    pub co_runners: Vec<String>,
    /// Provocations, as after `--provoke`: antagonists of all workloads.
    pub provoke: Vec<String>,
    /// Options that are keys of a file; `workload.duration` is one of each workload that can have it.
    pub keys: Vec<Key>,
}

/// An experiment of a command line on its way to the text of a file.
#[derive(Debug)]
pub struct Document {
    keys: Vec<Key>,
    arms: Vec<(Arm, String)>,
    workloads: Vec<Section>,
}

impl Document {
    /// The experiment that a command line means.
    pub fn from_words(words: &Words) -> Result<Self, PlanError> {
        let workloads = workloads(words)?;
        let read = read_workloads(&workloads)?;
        let arms = arms(&words.arms, &usual_role(&read))?;
        let mut keys = vec![Key::of_word("", "name", usual_name(&arms, &read))];
        let of_all = |key: &&Key| key.of_workloads().is_none();
        keys.extend(words.keys.iter().filter(of_all).cloned());
        Ok(Document {
            keys,
            arms,
            workloads,
        })
    }

    /// The experiment that its text says, and the text.
    pub fn read(&self) -> Result<(Experiment, String), PlanError> {
        let usual = usual_role(&read_workloads(&self.workloads)?);
        let arms = self.arms.iter();
        let arms = arms.map(|(arm, word)| table_of_arm(arm, word, &usual));
        let tables: Vec<Section> = arms.chain(self.workloads.iter().cloned()).collect();
        let text = Text::from_keys(COMMENT, &self.keys, &tables)?;
        let experiment = parse("experiment.toml", &text.text, &[]);
        let experiment = experiment.map_err(|e| text.in_words(e))?;
        Ok((experiment, text.text))
    }

    /// Takes cells of the experiment that was read out of it. A workload that has none left goes as well.
    pub fn leave_out(&mut self, cells: &BTreeSet<usize>) {
        let mut cell = 0..;
        let mut is_in = || cell.next().is_some_and(|index| !cells.contains(&index));
        self.workloads.retain_mut(|table| {
            let loads = table.loads_mut();
            match loads.and_then(|key| key.value.as_array_mut()) {
                None => is_in(),
                Some(loads) => {
                    loads.retain(|_| is_in());
                    !loads.is_empty()
                }
            }
        });
    }
}

/// The experiment with keys of a command line in place of its own.
pub fn lay_over(experiment: Experiment, keys: &[Key]) -> Result<Experiment, PlanError> {
    let text = Text::from_keys("", keys, &[])?;
    file::lay_over(experiment, &text.text).map_err(|e| text.in_words(e))
}

/// The experiment with these provocations beside all its workloads.
pub fn provoke(mut experiment: Experiment, names: &[String]) -> Result<Experiment, PlanError> {
    let mut table = workload("wakeup");
    table
        .inner
        .extend(names.iter().map(|name| provocation(name)));
    let read = read_workloads(&[table])?;
    let provocations: Vec<Antagonist> = read.into_iter().flat_map(|w| w.antagonists).collect();
    for workload in &mut experiment.workloads {
        workload.antagonists.extend(provocations.iter().cloned());
    }
    Ok(experiment)
}

/// A workload as after `-w`: `KIND` or `KIND:LOAD,LOAD`.
pub fn parse_workload(text: &str) -> Result<Workload, PlanError> {
    read_workloads(&[workload(text)]).map(|mut read| read.swap_remove(0))
}

fn read_workloads(tables: &[Section]) -> Result<Vec<Workload>, PlanError> {
    let text = Text::from_keys("", &[], tables)?;
    file::parse_workloads(&text.text).map_err(|e| text.in_words(e))
}

fn table_of_arm(arm: &Arm, word: &str, usual: &Role) -> Section {
    let mut keys = Map::new();
    for ingredient in INGREDIENTS.iter() {
        ingredient.write(arm, &mut keys);
    }
    match &arm.daemon {
        Some(daemon) => keys.insert("to".to_owned(), json!(daemon)),
        None if arm.to != *usual => keys.insert("to".to_owned(), arm.to.name().into()),
        None => None,
    };
    let table = Section::new("[[arm]]", word);
    table.with_key("name", arm.name.as_str()).with_all(keys)
}

/// The arms, and the words that they are of.
fn arms(texts: &[String], usual: &Role) -> Result<Vec<(Arm, String)>, PlanError> {
    let mut arms: Vec<(Arm, String)> = Vec::new();
    for text in texts {
        let mut arm = parse_arm_for(text, usual)?;
        let twin = arms.iter().position(|(other, _)| other.name == arm.name);
        if let Some(twin) = twin {
            // The arguments tell two arms of one scheduler apart.
            for (arm, text) in [(&mut arms[twin].0, &texts[twin]), (&mut arm, text)] {
                if !text.contains(":=") {
                    arm.name = arm.summary();
                }
            }
        }
        arms.push((arm, format!("-a {text}")));
    }
    Ok(arms)
}

/// Name of an experiment of the command line, `default-or-batch-wakeup`. The directory of its
/// results gets it, so it stays short.
fn usual_name(arms: &[(Arm, String)], workloads: &[Workload]) -> String {
    let arms: Vec<&str> = arms.iter().map(|(arm, _)| arm.name.as_str()).collect();
    let workloads: Vec<&str> = workloads.iter().map(|w| w.name.as_str()).collect();
    format!("{}-{}", short(&arms, "-or-"), short(&workloads, "-"))
}

/// The names; where they are long, the first of them and how many there are beside it.
fn short(names: &[&str], joint: &str) -> String {
    const LONGEST: usize = 40;
    let all = names.join(joint);
    match names {
        [first, _, ..] if all.len() > LONGEST => format!("{first}-and-{}-more", names.len() - 1),
        _ => all,
    }
}

/// The tables `[[workload]]` that a command line means.
fn workloads(words: &Words) -> Result<Vec<Section>, PlanError> {
    let mut tables = Vec::new();
    for text in &words.workloads {
        add(&mut tables, workload(text));
    }
    if let Some(server) = &words.server {
        set_server(&mut tables, &role("[workload.server]", "--server", server)?)?;
    }
    if !words.command.is_empty() {
        tables.push(command(words)?);
    } else if !words.metrics.is_empty() {
        return Err(PlanError::new("`--metric` without a command").with_help(
            "the command follows two dashes: --metric 'ops=/ops: (?<v>.+)/ higher' -- ./bench",
        ));
    }
    let keys = words.keys.iter().filter_map(Key::of_workloads);
    let keys: Vec<Key> = keys.collect();
    let is_always = |key: &Key| key.name == "in-place" && key.value == "always";
    let in_turns = keys.iter().any(is_always);
    for key in &keys {
        set_key(&mut tables, key, in_turns)?;
    }
    let co_runners = words.co_runners.iter().map(|text| Ok(co_runner(text)));
    let beside = words.beside.iter();
    let beside = beside.map(|text| role("[[workload.antagonist]]", "--beside", text));
    let beside = beside.chain(words.provoke.iter().map(|name| Ok(provocation(name))));
    let beside: Vec<Section> = co_runners.chain(beside).collect::<Result<_, _>>()?;
    for table in &mut tables {
        table.inner.extend(beside.iter().cloned());
    }
    Ok(tables)
}

/// Adds a workload. Loads of a kind that is there already are further loads of that one, since
/// `-w wakeup:1 -w wakeup:2` can only mean `-w wakeup:1,2`.
fn add(tables: &mut Vec<Section>, mut workload: Section) {
    let known = tables
        .iter_mut()
        .find(|t| t.get("kind") == workload.get("kind"));
    let loads = known.and_then(Section::loads_mut);
    match (loads, workload.loads_mut()) {
        (Some(loads), Some(more)) => loads.append(more),
        _ => tables.push(workload),
    }
}

/// `KIND` or `KIND:LOAD,LOAD`.
fn workload(text: &str) -> Section {
    let (kind, loads) = match text.split_once(':') {
        Some((kind, loads)) => (kind, Some(loads)),
        None => (text, None),
    };
    let table = Section::new("[[workload]]", &format!("-w {text}")).with_key("kind", kind);
    match loads {
        None => table,
        Some(loads) => table.with_key("loads", loads.split(',').map(load).collect::<Vec<_>>()),
    }
}

/// `KIND` or `KIND:LOAD`.
fn co_runner(text: &str) -> Section {
    let (kind, own) = match text.split_once(':') {
        Some((kind, own)) => (kind, Some(load(own))),
        None => (text, None),
    };
    let table = Section::new("[[workload.co-runner]]", &format!("--co-runner {text}"));
    let table = table.with_key("kind", kind);
    match own {
        Some(own) => table.with_key("load", own),
        None => table,
    }
}

/// A count is a number in a file.
fn load(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| text.into(), Value::from)
}

/// Any command, with one that runs before each trial, and metrics of its own.
fn command(words: &Words) -> Result<Section, PlanError> {
    let program = words.command.first().map_or("", String::as_str);
    let mut table = Section::new("[[workload]]", &format!("-- {program}"))
        .with_key("kind", "command")
        .with_key("command", words.command.as_slice());
    if let Some(text) = &words.prepare {
        let (argv, word) = (
            split(text, "--prepare 'make clean'")?,
            format!("--prepare {text}"),
        );
        table.keys.push(Key::of_word(&word, "prepare", argv));
    }
    for text in &words.metrics {
        let metric = Section::new("[[workload.metric]]", &format!("--metric {text}"));
        table.inner.push(metric.with_all(metric::keys(text)?));
    }
    Ok(table)
}

/// The kind of workload that a table names, where there is one of that name.
fn kind_of(table: &Section) -> Option<&'static KindDef> {
    load::kind::find(table.get("kind")?.as_str()?)
}

/// Sets a key in the workloads that can have it.
fn set_key(tables: &mut [Section], key: &Key, in_turns: bool) -> Result<(), PlanError> {
    let is_length = key.name == "duration";
    let takes = |table: &Section| match kind_of(table) {
        None => true,
        // A program that runs to its end has no window, unless it is to run until arms have taken their turns.
        Some(def) if is_length => def.window != Window::Whole || in_turns,
        // Those that cannot are measured in whole trials then, and the run says so.
        Some(def) => def.turns || key.value == "auto" || key.value == "never",
    };
    let mut taking = tables.iter_mut().filter(|table| takes(table)).peekable();
    if taking.peek().is_none() {
        let (what, help) = match is_length {
            true => (
                "has a window",
                "a program that runs to its end takes as long as it takes".to_owned(),
            ),
            false => (
                "records window by window",
                format!("`{}` can", kinds(|def| def.turns).join("`, `")),
            ),
        };
        let what = format!("`--{}` without a workload that {what}", key.name);
        return Err(PlanError::new(what).with_help(help));
    }
    taking.for_each(|table| table.keys.push(key.clone()));
    Ok(())
}

/// The server is for the workloads that send requests.
fn set_server(tables: &mut [Section], server: &Section) -> Result<(), PlanError> {
    let asks = |table: &Section| kind_of(table).is_none_or(|def| def.client);
    let mut asking = tables.iter_mut().filter(|table| asks(table)).peekable();
    if asking.peek().is_none() {
        let with = kinds(|def| def.client).join("`, `");
        return Err(
            PlanError::new("`--server` without a workload that asks a server")
                .with_help(format!("-w http --server nginx; `{with}` ask one")),
        );
    }
    asking.for_each(|table| table.inner.push(server.clone()));
    Ok(())
}

/// The antagonist that a provocation is.
fn provocation(name: &str) -> Section {
    Section::new("[[workload.antagonist]]", &format!("--provoke {name}"))
        .with_key("kind", "provoke")
        .with_key("name", name)
        .with_key("what", name)
}

/// The table of a server or of an antagonist: `KIND`, or `'KIND ARGUMENTS'` as a shell would cut
/// them. One that has the key `count` may be `KIND:COUNT`, and the words behind one that has `events`
/// are these.
fn role(header: &'static str, option: &str, text: &str) -> Result<Section, PlanError> {
    const HELP: &str = "--server nginx --beside 'stress-ng --cpu 2'";
    let words = split(text, HELP)?;
    let [kind, args @ ..] = &words[..] else {
        return Err(PlanError::new(format!("`{option}` without a kind")).with_help(HELP));
    };
    let (kind, count) = match kind.split_once(':') {
        Some((kind, count)) if has_key(kind, "count") => (kind, Some(count)),
        _ => (kind.as_str(), None),
    };
    let mut table = Section::new(header, &format!("{option} {text}")).with_key("kind", kind);
    if let Some(count) = count {
        table = table.with_key("count", load(count));
    }
    if args.is_empty() {
        return Ok(table);
    }
    if has_key(kind, "events") {
        let events = args.join(" ");
        let events = events.split(',').map(str::trim);
        return Ok(table.with_key("events", events.collect::<Vec<_>>()));
    }
    let key = match has_key(kind, "command") {
        true => "command",
        false => "args",
    };
    Ok(table.with_key(key, args))
}

/// Has a server or an antagonist of this kind that key?
fn has_key(kind: &str, key: &str) -> bool {
    let server = SERVERS.find(kind).map(Entry::keys);
    let antagonist = ANTAGONISTS.find(kind).map(Entry::keys);
    let mut keys = server.into_iter().chain(antagonist).flatten();
    keys.any(|def| def.name == key)
}

/// The words of a text, as a shell would cut them.
fn split(text: &str, help: &str) -> Result<Vec<String>, PlanError> {
    shlex::split(text).ok_or_else(|| {
        PlanError::new(format!("`{text}` has an open quotation mark")).with_help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arms: &[&str]) -> Result<Vec<String>, PlanError> {
        catalogue::install();
        let line = Words {
            arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
            workloads: vec!["wakeup".to_owned()],
            ..Words::default()
        };
        let (experiment, _) = Document::from_words(&line)?.read()?;
        Ok(experiment.arms.into_iter().map(|arm| arm.name).collect())
    }

    #[test]
    fn the_name_says_what_is_compared_by_which_work_and_stays_short() {
        catalogue::install();
        let name = |arms: &[&str], workloads: &[&str]| {
            let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
            let line = Words {
                arms: words(arms),
                workloads: words(workloads),
                command: words(&["/usr/bin/make", "-j4"]),
                ..Words::default()
            };
            Document::from_words(&line).unwrap().read().unwrap().0.name
        };
        let two = name(&["default", "batch"], &["wakeup:50%"]);
        assert_eq!(two, "default-or-batch-wakeup-make");
        let arms: Vec<String> = (1..=9)
            .map(|n| format!("arm number {n}:=nice={n}"))
            .collect();
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let many = name(&arms, &["wakeup", "hackbench"]);
        assert_eq!(many, "arm number 1-and-8-more-wakeup-hackbench-make");
    }

    #[test]
    fn arms_of_one_scheduler_are_told_apart_by_their_arguments() {
        let five = "scx_rusty --greedy-threshold 5";
        let expected = [five, "scx_rusty"];
        assert_eq!(names(&[five, "scx_rusty"]).unwrap(), expected);
        assert_eq!(names(&["scx_rusty", five]).unwrap(), ["scx_rusty", five]);
        let six = "scx_rusty --greedy-threshold 6";
        let all = names(&["default", five, six]).unwrap();
        assert_eq!(all, ["default", five, six]);
        assert!(names(&["x:=batch", "x:=idle"]).is_err());
        assert!(names(&["batch", "batch"]).is_err());
    }
}
