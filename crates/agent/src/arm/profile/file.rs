//! Files of profiles: lines `NAME=VALUE`, as shell scripts (`SCHED_LATENCY_NS=24000000`),
//! sysctl.d(5) (`kernel.sched_latency_ns = 24000000`) and TOML (`latency = "24ms"`) have them.

use super::super::tunables::{TABLE, own_name};
use model::Tunables;
use std::path::Path;

/// The tunables of a file; an error names the line.
pub fn read(path: &Path) -> Result<Tunables, String> {
    let text = doors::read::small_file_text(path)
        .map_err(|e| format!("read the profile {}: {e}", path.display()))?;
    let tunables = parse(&text).map_err(|what| format!("{}: {what}", path.display()))?;
    match tunables.is_empty() {
        true => Err(format!(
            "{}: there are no tunables in it; a line is NAME=VALUE, such as \
             SCHED_MIGRATION_COST_NS=500000 or base_slice = \"3ms\"",
            path.display()
        )),
        false => Ok(tunables),
    }
}

fn parse(text: &str) -> Result<Tunables, String> {
    let mut tunables = Tunables::new();
    for (index, line) in text.lines().enumerate() {
        let at = |what: String| format!("line {}: {what}", index + 1);
        let line = line.split('#').next().unwrap_or_default().trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.is_empty() || line.starts_with([';', '[']) {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            return Err(at(format!("`{line}` is no NAME=VALUE")));
        };
        let Some(own) = name_of(name.trim()).map_err(at)? else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        if value.is_empty() {
            return Err(at(format!("`{}` has no value", name.trim())));
        }
        if tunables.insert(own.clone(), value.to_owned()).is_some() {
            return Err(at(format!("`{own}` is there twice")));
        }
    }
    Ok(tunables)
}

/// The tunables of a table, by the names of schedlab.
pub fn named(pairs: impl Iterator<Item = (String, String)>) -> Result<Tunables, String> {
    let mut tunables = Tunables::new();
    for (name, value) in pairs {
        let own = known(&name).ok_or_else(|| unknown(&name))?;
        if tunables.insert(own.clone(), value).is_some() {
            return Err(format!("`{own}` is there twice"));
        }
    }
    match tunables.is_empty() {
        true => Err("the profile has no tunables".to_owned()),
        false => Ok(tunables),
    }
}

/// The name of schedlab; `None` for a variable of a shell script that is about something else.
fn name_of(name: &str) -> Result<Option<String>, String> {
    if let Some(own) = known(name) {
        return Ok(Some(own));
    }
    let is_other = !name.contains(|c: char| c.is_ascii_lowercase()) && !name.starts_with("SCHED_");
    match is_other {
        true => Ok(None),
        false => Err(unknown(name)),
    }
}

fn known(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("sched_").unwrap_or(&lower);
    // EEVDF's names have no `sched_` in the kernel, and get one in scripts.
    [lower.as_str(), bare]
        .into_iter()
        .map(own_name)
        .find(|own| TABLE.iter().any(|tunable| tunable.name == own.as_str()))
}

fn unknown(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let bare = lower
        .trim_start_matches("kernel.")
        .trim_start_matches("sched_");
    let near = model::nearest(bare, TABLE.iter().map(|tunable| tunable.name));
    let hint = near.map(|near| format!("; did you mean `{near}`?"));
    format!("`{name}` is no tunable{}", hint.unwrap_or_default())
}
