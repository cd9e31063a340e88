//! The tree of cgroups: where units of systemd and containers are in it. In version 1 there is a tree
//! for each controller, and a group may be in some of them only.

use super::NoDaemon;
use crate::cgroup;
use crate::tasks::Pid;
use doors::read::{Asked, output_within};
use doors::started::tool_command;
use model::Daemon;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Groups below groups that are looked at.
const DEEPEST: usize = 16;
/// Digits of the ID of a container.
const ID_DIGITS: usize = 64;
/// Digits of it that people write at least, as `docker ps` shows them.
const LEAST_DIGITS: usize = 12;
/// Commands that know the IDs of containers by their names.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];
/// Time for a question to an engine.
const ENGINE_LIMIT: Duration = Duration::from_secs(10);

/// The path of a daemon's group below the root of all.
pub fn find(root: &Path, daemon: &Daemon) -> Result<PathBuf, NoDaemon> {
    match daemon {
        Daemon::Unit(name) => {
            let name = with_suffix(name);
            only(daemon, search(root, |found| found == name))?.ok_or_else(|| absent(daemon))
        }
        Daemon::Container(name) => {
            if let Some(found) = only(daemon, search(root, |found| is_container(found, name)))? {
                return Ok(found);
            }
            let id = id_of(name)?;
            let found = only(daemon, search(root, |found| is_container(found, &id)))?;
            found.ok_or_else(|| absent(daemon))
        }
        other => {
            let (_, path) = other.key_and_text();
            let below = below_root(&path);
            let is_there = trees(root).iter().any(|tree| tree.join(&below).is_dir());
            is_there.then_some(below).ok_or_else(|| absent(daemon))
        }
    }
}

/// Processes of the group and of all below it, wherever the group is.
pub fn members(root: &Path, below: &Path) -> Vec<Pid> {
    let trees = trees(root).into_iter();
    trees
        .flat_map(|tree| cgroup::members(&tree.join(below)))
        .collect()
}

/// The path without the place where the tree is mounted and without a slash in front.
fn below_root(path: &str) -> PathBuf {
    let path = path.strip_prefix("/sys/fs/cgroup").unwrap_or(path);
    let parts = Path::new(path).components();
    parts
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect()
}

/// A unit without a suffix is a service, as for systemctl.
fn with_suffix(name: &str) -> String {
    const KINDS: [&str; 3] = [".service", ".scope", ".slice"];
    match KINDS.iter().any(|kind| name.ends_with(kind)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    }
}

/// Is a group with this name that of the container with this ID? Engines call it `ID`, `docker-ID.scope`,
/// `libpod-ID`, `cri-containerd-ID.scope`; conmon, which watches a container, is none.
fn is_container(group: &str, id: &str) -> bool {
    let group = group.strip_suffix(".scope").unwrap_or(group);
    let (engine, found) = group.rsplit_once('-').unwrap_or(("", group));
    is_id(id)
        && found.len() == ID_DIGITS
        && found.bytes().all(|byte| byte.is_ascii_hexdigit())
        && found.starts_with(id)
        && !engine.ends_with("conmon")
}

fn is_id(text: &str) -> bool {
    (LEAST_DIGITS..=ID_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The roots of the trees: the one of version 2, or those of the controllers.
fn trees(root: &Path) -> Vec<PathBuf> {
    let mount = root.join("sys/fs/cgroup");
    if mount.join("cgroup.controllers").exists() {
        return vec![mount];
    }
    let folders = fs::read_dir(&mount).into_iter().flatten().flatten();
    // `cpu` is a link to `cpu,cpuacct`.
    let places = folders.filter_map(|folder| folder.path().canonicalize().ok());
    let trees: BTreeSet<PathBuf> = places
        .filter(|place| place.join("cgroup.procs").exists())
        .collect();
    trees.into_iter().collect()
}

/// Paths of the groups with such a name, below the roots.
fn search(root: &Path, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for tree in trees(root) {
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            for name in folders_of(&tree.join(&below)) {
                let group = below.join(&name);
                if is_wanted(&name) {
                    found.insert(group);
                } else if group.components().count() < DEEPEST {
                    left.push(group);
                }
            }
        }
    }
    found
}

fn folders_of(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .filter_map(|folder| folder.file_name().into_string().ok())
        .collect()
}

/// The one that was found; an error where there are several.
fn only(daemon: &Daemon, found: BTreeSet<PathBuf>) -> Result<Option<PathBuf>, NoDaemon> {
    let paths: Vec<String> = found
        .iter()
        .map(|path| format!("/{}", path.display()))
        .collect();
    match paths.len() {
        0 | 1 => Ok(found.into_iter().next()),
        _ => Err(NoDaemon::new(
            format!(
                "{daemon} is the name of several cgroups: {}",
                paths.join(", ")
            ),
            "name one of them: to = { cgroup = … }",
        )),
    }
}

fn absent(daemon: &Daemon) -> NoDaemon {
    let remedy = match daemon {
        Daemon::Unit(_) => "start it first; `systemctl list-units` has the names",
        Daemon::Container(_) => {
            "start it first; the list of its engine, such as `docker ps`, has the names"
        }
        _ => "write the path as in /proc/PID/cgroup of one of its processes",
    };
    NoDaemon::new(format!("{daemon} has no cgroup on this machine"), remedy)
}

/// The ID that an engine of this machine knows for the name of a container.
fn id_of(name: &str) -> Result<String, NoDaemon> {
    let mut said = Vec::new();
    for engine in ENGINES {
        if which::which(engine).is_err() {
            continue;
        }
        match ask(engine, name) {
            Ok(id) => return Ok(id),
            Err(why) => said.push(format!("{engine} says: {why}")),
        }
    }
    Err(match said.is_empty() {
        true => NoDaemon::new(
            format!(
                "container {name}: nobody knows its ID, since neither {} is on PATH of the agent",
                ENGINES.join(" nor ")
            ),
            "write its ID with at least 12 digits, or its cgroup: to = { cgroup = … }",
        ),
        false => NoDaemon::new(
            format!("container {name}: {}", said.join("; ")),
            "start it first, or write its ID",
        ),
    })
}

fn ask(engine: &'static str, name: &str) -> Result<String, String> {
    let mut command = tool_command(engine);
    command.args(["container", "inspect", "--format", "{{.Id}}", name]);
    let asked = Asked {
        time: ENGINE_LIMIT,
        ..Asked::default()
    };
    let output = output_within(&mut command, asked).map_err(|e| e.to_string())?;
    let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && is_id(&id) {
        true => Ok(id),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(model::printable::last_lines(&errors, 1, " "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4e5d6c7b8a3f4e5d6c7b8a3f4e5d6c7b8a3f4e5d6c7b8a3f4e5d6c7b8a0123";

    fn unit(name: &str) -> Daemon {
        Daemon::Unit(name.to_owned())
    }

    fn container(name: &str) -> Daemon {
        Daemon::Container(name.to_owned())
    }

    /// A tree of version 2 or that of a controller of version 1, with these groups.
    fn machine(place: &str, groups: &[&str]) -> tempfile::TempDir {
        let procs = groups
            .iter()
            .map(|group| (format!("{place}/{group}/cgroup.procs"), ""));
        let mut files: Vec<(String, &str)> = procs.collect();
        files.push((format!("{place}/cgroup.procs"), ""));
        if place == "sys/fs/cgroup" {
            files.push((format!("{place}/cgroup.controllers"), "cpu\n"));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        ::tests::tree(&files)
    }

    #[test]
    fn units_and_containers_are_found_where_their_engines_put_them_in_both_versions() {
        for (group, daemon) in [
            ("system.slice/mysqld.service", unit("mysqld")),
            ("user.slice/user-7.slice/a@1.scope", unit("a@1.scope")),
            (
                &*format!("system.slice/docker-{ID}.scope"),
                container(&ID[..12]),
            ),
            (&*format!("docker/{ID}"), container(ID)),
            (
                &*format!("machine.slice/libpod-{ID}.scope"),
                container(&ID[..20]),
            ),
            (&*format!("libpod_parent/libpod-{ID}"), container(ID)),
            (
                &*format!("kubepods.slice/pod-1.slice/cri-containerd-{ID}.scope"),
                container(ID),
            ),
            ("own/group", Daemon::Cgroup("/own/group".to_owned())),
            (
                "own/group",
                Daemon::Cgroup("/sys/fs/cgroup/own/group/".to_owned()),
            ),
        ] {
            for place in [
                "sys/fs/cgroup",
                "sys/fs/cgroup/cpu,cpuacct",
                "sys/fs/cgroup/systemd",
            ] {
                let conmon = format!("machine.slice/libpod-conmon-{ID}.scope");
                let root = machine(place, &[group, "init.scope", &conmon]);
                let found = find(root.path(), &daemon);
                assert_eq!(found, Ok(PathBuf::from(group)), "{daemon} in {place}");
            }
        }
    }

    #[test]
    fn what_is_not_there_or_there_twice_is_refused_with_what_to_do() {
        let root = machine(
            "sys/fs/cgroup",
            &["a.slice/db.service", "b.slice/db.service"],
        );
        let why = |daemon: &Daemon| find(root.path(), daemon).unwrap_err();
        let twice = why(&unit("db"));
        assert!(
            twice
                .what
                .contains("/a.slice/db.service, /b.slice/db.service"),
            "{twice}"
        );
        assert!(why(&unit("web")).remedy.contains("systemctl"));
        assert!(
            why(&Daemon::Cgroup("/c".to_owned()))
                .remedy
                .contains("/proc/PID/cgroup")
        );
        let unknown = why(&container("of-nobody"));
        assert!(unknown.remedy.contains("ID"), "{unknown}");
    }

    #[test]
    fn a_path_leads_to_nothing_outside_the_tree() {
        assert_eq!(below_root("/../../etc"), PathBuf::from("etc"));
        assert_eq!(below_root("/"), PathBuf::new());
    }
}
