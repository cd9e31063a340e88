//! Files of profiles: lines `NAME=VALUE`, as shell scripts (`SCHED_LATENCY_NS=24000000`),
//! sysctl.d(5) (`kernel.sched_latency_ns = 24000000`) and TOML (`latency = "24ms"`) have them, and
//! profiles of TuneD.
//!
//! Such files are of a whole machine. What schedlab does not set stays in the profile under the
//! name that the file has, so that each trial can say so; a slip in a name of its own is an error.

use super::super::tunables::{TABLE, is_settable, own_name};
use super::tuned;
use model::Tunables;
use std::path::Path;

/// The tunables of a file; an error names the line.
pub fn read(path: &Path) -> Result<Tunables, String> {
    let text = doors::read::small_file_text(path)
        .map_err(|e| format!("read the profile {}: {e}", path.display()))?;
    let tunables = match tuned::is_profile(path, &text) {
        true => tuned::read(path, &text)?,
        false => parse(&text).map_err(|what| format!("{}: {what}", path.display()))?,
    };
    match tunables.keys().any(|name| is_settable(name)) {
        false => Err(format!(
            "{}: there are no tunables in it; a line is NAME=VALUE, such as \
             SCHED_MIGRATION_COST_NS=500000 or base_slice = \"3ms\"",
            path.display()
        )),
        true => Ok(tunables),
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
            match line.starts_with('-') {
                // sysctl.d(5): a name that patterns of the file leave out.
                true => continue,
                // Its text may be a secret: whoever names a file need not be allowed to see it.
                false => return Err(at("it is no NAME=VALUE".to_owned())),
            }
        };
        let own = name_of(name.trim()).map_err(at)?;
        let value = value.trim().trim_matches(['"', '\'']);
        let is_ours = is_settable(&own);
        if is_ours && value.is_empty() {
            return Err(at(format!("`{}` has no value", name.trim())));
        }
        // What schedlab does not set is only listed.
        let earlier = tunables.insert(own.clone(), value.to_owned());
        if is_ours && earlier.is_some() {
            return Err(at(format!("`{own}` is there twice")));
        }
    }
    Ok(tunables)
}

/// The tunables of a table, by the names of schedlab.
pub fn from_pairs(pairs: impl Iterator<Item = (String, String)>) -> Result<Tunables, String> {
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

/// The name of schedlab, or that of the file for what schedlab does not set.
pub fn name_of(written: &str) -> Result<String, String> {
    // sysctl.d(5): a failure to set what has a minus in front is to be ignored.
    let name = written.strip_prefix('-').unwrap_or(written);
    match known(name) {
        Some(own) => Ok(own),
        None if slip(name).is_some() => Err(unknown(name)),
        None => Ok(name.to_owned()),
    }
}

fn known(name: &str) -> Option<String> {
    // sysctl.d(5): `a/b` is `a.b`, where a dot is not part of a name.
    let dotted = match name.contains('.') {
        true => name.to_owned(),
        false => name.replace('/', "."),
    };
    let lower = dotted.to_ascii_lowercase();
    let bare = lower.strip_prefix("sched_").unwrap_or(&lower);
    // EEVDF's names have no `sched_` in the kernel, and get one in scripts.
    let own = [lower.as_str(), bare]
        .into_iter()
        .map(own_name)
        .find(|own| TABLE.iter().any(|tunable| tunable.name == own.as_str()));
    own.or_else(|| is_settable(&dotted).then_some(dotted))
}

/// The tunable of which a name is a slip, where it is not the full name of a sysctl.
fn slip(name: &str) -> Option<&'static str> {
    let bare = bare(name);
    let without_unit = ["_ns", "_us", "_ms"]
        .iter()
        .find_map(|unit| bare.strip_suffix(unit))
        .unwrap_or(&bare);
    model::slip_of(without_unit, TABLE.iter().map(|tunable| tunable.name))
}

fn bare(name: &str) -> String {
    name.to_ascii_lowercase()
        .trim_start_matches("kernel.")
        .trim_start_matches("sched_")
        .to_owned()
}

fn unknown(name: &str) -> String {
    let names = || TABLE.iter().map(|tunable| tunable.name);
    let near = slip(name).or_else(|| model::find_nearest(&bare(name), names()));
    let hint = near.map(|near| format!("; did you mean `{near}`?"));
    format!("`{name}` is no tunable{}", hint.unwrap_or_default())
}
