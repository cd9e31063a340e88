//! The words of a command line as the keys that a file has for the same.

use crate::build::CommandLine;
use crate::error::PlanError;
use crate::metric;
use crate::table::Value as Written;
use load::kind::{KindDef, Window};
use load::roles::burnwait;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// Keys of one table of a file.
pub(crate) type Table = Map<String, Value>;

/// A line for each key, with a name or a kind first; `None` if TOML has no such value.
pub(crate) fn lines(keys: &Table) -> Option<String> {
    let mut keys: Vec<(&String, &Value)> = keys.iter().collect();
    keys.sort_by_key(|(key, _)| !["kind", "name"].contains(&key.as_str()));
    let line = |(key, value): (&String, &Value)| {
        let value = toml::Value::try_from(value).ok()?;
        Some(format!("{key} = {value}\n"))
    };
    keys.into_iter().map(line).collect()
}

/// Reads keys that stand in no file as those of a file are read.
pub(crate) fn read<T>(
    keys: &Table,
    read: impl FnOnce(Written) -> Result<T, PlanError>,
) -> Result<T, PlanError> {
    let text = lines(keys);
    let text = text.ok_or_else(|| PlanError::new("a number is too large"))?;
    let table = DeTable::parse(&text)?;
    let value = Written::new(table.span(), DeValue::Table(table.into_inner()));
    read(value)
}

/// The tables `[[workload]]` that a command line means.
pub(crate) fn workloads(line: &CommandLine) -> Result<Vec<Table>, PlanError> {
    let mut tables = Vec::new();
    for text in &line.workloads {
        add(&mut tables, workload(text));
    }
    if let Some(server) = &line.server {
        set_server(&mut tables, role("server", server)?)?;
    }
    if !line.command.is_empty() {
        tables.push(command(&line.command, &line.prepare, &line.metrics)?);
    } else if !line.metrics.is_empty() {
        return Err(PlanError::new("`--metric` without a command").with_help(
            "the command follows two dashes: --metric 'ops=/ops: (?<v>.+)/ higher' -- ./bench",
        ));
    }
    if let Some(duration) = &line.duration {
        let in_turns = line.in_place.as_deref() == Some("always");
        set_duration(&mut tables, duration, in_turns)?;
    }
    set_turns(&mut tables, line)?;
    if !line.beside.is_empty() {
        let beside: Result<Vec<Table>, _> = line.beside.iter().map(|b| role("beside", b)).collect();
        let beside = Value::from(beside?);
        for table in &mut tables {
            table.insert("antagonist".to_owned(), beside.clone());
        }
    }
    Ok(tables)
}

/// Adds a workload. Loads of a kind that is there already are further loads of that one, since
/// `-w wakeup:1 -w wakeup:2` can only mean `-w wakeup:1,2`.
fn add(tables: &mut Vec<Table>, mut workload: Table) {
    let known = tables.iter_mut().find(|t| t["kind"] == workload["kind"]);
    let loads = known.and_then(|known| known.get_mut("loads")?.as_array_mut());
    match (loads, workload.get_mut("loads")) {
        (Some(loads), Some(Value::Array(more))) => loads.append(more),
        _ => tables.push(workload),
    }
}

/// `KIND` or `KIND:LOAD,LOAD`.
pub(crate) fn workload(text: &str) -> Table {
    let (kind, loads) = match text.split_once(':') {
        Some((kind, loads)) => (kind, Some(loads)),
        None => (text, None),
    };
    let mut table = of_kind(kind);
    if let Some(loads) = loads {
        let loads: Vec<Value> = loads.split(',').map(load).collect();
        table.insert("loads".to_owned(), loads.into());
    }
    table
}

/// A count is a number in a file.
fn load(text: &str) -> Value {
    text.parse::<i64>()
        .map_or_else(|_| text.into(), Value::from)
}

fn of_kind(kind: &str) -> Table {
    Table::from_iter([("kind".to_owned(), kind.into())])
}

/// Any command, with one that runs before each trial, and metrics of its own.
fn command(argv: &[String], prepare: &[String], metrics: &[String]) -> Result<Table, PlanError> {
    let mut table = of_kind("command");
    table.insert("command".to_owned(), argv.into());
    if !prepare.is_empty() {
        table.insert("prepare".to_owned(), prepare.into());
    }
    if !metrics.is_empty() {
        let metrics: Result<Vec<_>, _> = metrics.iter().map(|text| metric::keys(text)).collect();
        table.insert("metric".to_owned(), metrics?.into());
    }
    Ok(table)
}

/// The kind of workload that a table names, where there is one of that name.
fn kind_of(table: &Table) -> Option<&'static KindDef> {
    load::kind::find(table.get("kind")?.as_str()?)
}

/// The length is for the workloads that have a window; a program that runs to its end has none,
/// unless it is to run until arms have taken their turns.
fn set_duration(tables: &mut [Table], duration: &str, in_turns: bool) -> Result<(), PlanError> {
    let is_whole = |table: &Table| {
        let ends = kind_of(table).is_some_and(|def| def.window == Window::Whole);
        ends && !in_turns
    };
    let mut windows = tables
        .iter_mut()
        .filter(|table| !is_whole(table))
        .peekable();
    if windows.peek().is_none() {
        let error = PlanError::new("`--duration` without a workload that has a window");
        return Err(error.with_help("a program that runs to its end takes as long as it takes"));
    }
    windows.for_each(|table| {
        table.insert("duration".to_owned(), duration.into());
    });
    Ok(())
}

/// Turns are for the workloads that record window by window.
fn set_turns(tables: &mut [Table], line: &CommandLine) -> Result<(), PlanError> {
    let keys = [
        ("in-place", &line.in_place),
        ("turn", &line.turn),
        ("washout", &line.washout),
    ];
    for (key, value) in keys
        .into_iter()
        .filter_map(|(key, v)| Some((key, v.as_ref()?)))
    {
        // Others are measured in whole trials then, and the run says so.
        let takes_all = value == "auto" || value == "never";
        let able = |table: &Table| takes_all || kind_of(table).is_none_or(|def| def.turns);
        let mut able = tables.iter_mut().filter(|table| able(table)).peekable();
        if able.peek().is_none() {
            let with = crate::workload::kinds(|def| def.turns).join("`, `");
            return Err(PlanError::new(format!(
                "`--{key}` without a workload that records window by window"
            ))
            .with_help(format!("`{with}` can")));
        }
        able.for_each(|table| {
            table.insert(key.to_owned(), value.as_str().into());
        });
    }
    Ok(())
}

/// The server is for the workloads that send requests.
fn set_server(tables: &mut [Table], server: Table) -> Result<(), PlanError> {
    let asks = |table: &Table| kind_of(table).is_none_or(|def| def.client);
    let mut asking = tables.iter_mut().filter(|table| asks(table)).peekable();
    if asking.peek().is_none() {
        let with = crate::workload::kinds(|def| def.client).join("`, `");
        return Err(
            PlanError::new("`--server` without a workload that asks a server")
                .with_help(format!("-w http --server nginx; `{with}` ask one")),
        );
    }
    asking.for_each(|table| {
        table.insert("server".to_owned(), server.clone().into());
    });
    Ok(())
}

/// The table of a server or of an antagonist: `KIND`, or `'KIND ARGUMENTS'` as a shell would cut
/// them. Workers that burn and wait are `burnwait:COUNT`, with their events behind it.
fn role(option: &str, text: &str) -> Result<Table, PlanError> {
    let wrong = |what: String| {
        PlanError::new(what).with_help("--server nginx --beside 'stress-ng --cpu 2'")
    };
    let words = shlex::split(text);
    let words = words.ok_or_else(|| wrong(format!("`{text}` has an open quotation mark")))?;
    let [kind, args @ ..] = &words[..] else {
        return Err(wrong(format!("`--{option}` without a kind")));
    };
    match kind.split_once(':') {
        Some((BURNWAIT, count)) => Ok(workers(Some(count), args)),
        None if kind == BURNWAIT => Ok(workers(None, args)),
        _ => {
            let mut table = of_kind(kind);
            if !args.is_empty() {
                let key = if kind == "command" { "command" } else { "args" };
                table.insert(key.to_owned(), args.into());
            }
            Ok(table)
        }
    }
}

const BURNWAIT: &str = burnwait::ANTAGONIST.name;

/// `burnwait:4 70 200us, 8x10 5ms`.
fn workers(count: Option<&str>, words: &[String]) -> Table {
    let mut table = of_kind(BURNWAIT);
    if let Some(count) = count {
        table.insert("count".to_owned(), load(count));
    }
    if !words.is_empty() {
        let text = words.join(" ");
        let events: Vec<Value> = text.split(',').map(|event| event.trim().into()).collect();
        table.insert("events".to_owned(), events.into());
    }
    table
}
