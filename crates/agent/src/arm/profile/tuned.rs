//! Profiles of TuneD (tuned.conf(5)): sections of which `[sysctl]` and `[scheduler]` have tunables, and
//! `[main]` names the profiles that this one builds on. What TuneD does beside them (governors, disks,
//! boot options) stays in the profile under the name of its section, so that each trial says that it was
//! not set.

use super::file::name_of;
use crate::arm::tunables::is_settable;
use model::Tunables;
use std::path::{Path, PathBuf};

/// Folders of profiles, after the one in which the profile itself is.
const FOLDERS: [&str; 4] = [
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
];
/// Name of the file in the folder of a profile.
const FILE: &str = "tuned.conf";
/// Profiles that are read for one: TuneD's own have four at most, and one that builds on itself has no end.
const MOST_PROFILES: usize = 32;

/// A line of a profile.
#[derive(Debug, PartialEq)]
struct Entry<'a> {
    section: &'a str,
    /// Plugin of the section: its name, unless it has a `type`.
    plugin: &'a str,
    key: &'a str,
    value: &'a str,
}

/// True for a file of TuneD.
pub fn is_profile(path: &Path, text: &str) -> bool {
    path.file_name().is_some_and(|name| name == FILE)
        || text.lines().any(|line| line.trim() == "[main]")
}

/// The tunables of a profile with those of the profiles that it builds on; an error names the file.
pub fn read(path: &Path, text: &str) -> Result<Tunables, String> {
    let mut tunables = Tunables::new();
    let mut left = MOST_PROFILES;
    add(path, text, &mut left, &mut tunables)?;
    Ok(tunables)
}

fn add(path: &Path, text: &str, left: &mut usize, into: &mut Tunables) -> Result<(), String> {
    let entries = entries(text);
    let is_include = |entry: &&Entry| (entry.section, entry.key) == ("main", "include");
    let names = entries
        .iter()
        .filter(is_include)
        .flat_map(|entry| entry.value.split([',', ';']));
    for name in names.map(str::trim).filter(|name| !name.is_empty()) {
        let at = |what: String| format!("{}: include={name}: {what}", path.display());
        *left = left.checked_sub(1).ok_or_else(|| {
            at(format!(
                "it builds on more than {MOST_PROFILES} profiles, or on itself"
            ))
        })?;
        let (place, text) = included(path, name).map_err(at)?;
        add(&place, &text, left, into)?;
    }
    for entry in entries.iter().filter(|entry| entry.section != "main") {
        let (name, value) = taken(entry).map_err(|what| format!("{}: {what}", path.display()))?;
        into.insert(name, value);
    }
    Ok(())
}

/// The profile of this name, beside the one that names it or where TuneD has profiles.
fn included(path: &Path, name: &str) -> Result<(PathBuf, String), String> {
    // Names of profiles only: a path would lead to any file.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(plain) || name.starts_with('.') {
        return Err("only the name of a profile is taken".to_owned());
    }
    let beside = path.parent().and_then(Path::parent).map(Path::to_owned);
    let folders = beside.into_iter().chain(FOLDERS.map(PathBuf::from));
    let mut places = folders.map(|folder| folder.join(name).join(FILE));
    let place = places.find(|place| place.is_file());
    let place = place.ok_or("this machine has no such profile, so what it sets is not known")?;
    let text =
        doors::read::small_file_text(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    Ok((place, text))
}

/// The name under which a line stays in the profile, and its value.
fn taken(entry: &Entry) -> Result<(String, String), String> {
    let value = entry.value.trim_matches(['"', '\'']);
    let elsewhere = || {
        (
            format!("[{}] {}", entry.section, entry.key),
            value.to_owned(),
        )
    };
    // `>10` is the larger of both, and `${isolated_cores}` a variable: TuneD alone knows the value.
    let is_known = !value.is_empty() && !value.starts_with(['>', '<']) && !value.contains("${");
    if !is_known || !["sysctl", "scheduler"].contains(&entry.plugin) {
        return Ok(elsewhere());
    }
    let name = name_of(entry.key)?;
    Ok(match is_settable(&name) {
        true => (name, value.to_owned()),
        false => elsewhere(),
    })
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.trim();
            continue;
        }
        if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim(), value.trim());
            entries.push(Entry {
                section,
                plugin: section,
                key,
                value,
            });
        }
    }
    let types = entries.iter().filter(|entry| entry.key == "type");
    let types: Vec<(&str, &str)> = types.map(|entry| (entry.section, entry.value)).collect();
    for entry in &mut entries {
        let named = types.iter().find(|(section, _)| *section == entry.section);
        entry.plugin = named.map_or(entry.section, |(_, plugin)| *plugin);
    }
    entries.retain(|entry| entry.key != "type");
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    const BASE: &str = "# tuned configuration\n[main]\nsummary=For throughput\n\n[cpu]\ngovernor=performance\n\
        [disk]\nreadahead=>4096\n[vm]\ndirty_bytes = 40%\n[sysctl]\nvm.swappiness=10\n\
        kernel.sched_min_granularity_ns=10000000\n";
    const OWN: &str = "[main]\nsummary=For a guest\ninclude=base\n[scheduler]\n\
        sched_migration_cost_ns = 500000\n[more]\ntype=sysctl\nvm.swappiness = 30\n\
        net.core.somaxconn = >2048\nvm.nr_hugepages = ${pages}\n";

    fn profiles(own: &str) -> Result<Tunables, String> {
        let root = tree(&[("base/tuned.conf", BASE), ("own/tuned.conf", own)]);
        let path = root.path().join("own/tuned.conf");
        assert!(is_profile(&path, own));
        read(&path, own)
    }

    #[test]
    fn a_profile_has_what_it_builds_on_and_its_own_values_after_it() {
        let tunables = profiles(OWN).unwrap();
        let value = |name: &str| tunables.get(name).map(String::as_str);
        assert_eq!(value("min_granularity"), Some("10000000"));
        assert_eq!(value("migration_cost"), Some("500000"));
        assert_eq!(value("vm.swappiness"), Some("30"));
    }

    #[test]
    fn what_only_tuned_sets_stays_under_its_section() {
        let tunables = profiles(OWN).unwrap();
        for name in [
            "[cpu] governor",
            "[disk] readahead",
            "[vm] dirty_bytes",
            "[more] net.core.somaxconn",
            "[more] vm.nr_hugepages",
        ] {
            assert!(tunables.contains_key(name), "{name}: {tunables:?}");
            assert!(!is_settable(name), "{name}");
        }
        assert_eq!(tunables.len(), 8, "{tunables:?}");
    }

    #[test]
    fn a_profile_that_is_not_there_or_builds_on_itself_is_refused() {
        let refused = |include: &str| profiles(&OWN.replace("include=base", include)).unwrap_err();
        assert!(refused("include=nowhere-at-all").contains("no such profile"));
        assert!(refused("include=own").contains("or on itself"));
        let many = format!("include={}", ["base"; 40].join(","));
        assert!(refused(&many).contains("more than 32 profiles"));
        assert!(refused("include=../base").contains("only the name"));
        let slip = OWN.replace("sched_migration_cost_ns", "sched_migation_cost_ns");
        assert!(profiles(&slip).unwrap_err().contains("did you mean"));
    }
}
