//! Which tasks are micro-quanta tasks: rules by cgroup, process and thread.

use crate::bpf_intf;
use anyhow::{Context, Result, ensure};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub const MAX_RULES: usize = bpf_intf::consts_MAX_RULES as usize;

/// With the terminating 0, as in the kernel.
pub const NAME_LEN: usize = bpf_intf::consts_NAME_LEN as usize;

const CGROUP_MOUNT: &str = "/sys/fs/cgroup";

/// One way to be a micro-quanta task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// In the cgroup with this id or below it.
    Cgroup(u64),
    Process(Name),
    Thread(Name),
}

/// The name of a task, or how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// Filled up with zeros.
    pub bytes: [u8; NAME_LEN],
    /// How many of them are compared.
    pub len: usize,
}

impl Name {
    /// `memcached`, or `nginx*` for all that begins so. The kernel keeps 15
    /// bytes of a name, so a longer one is compared by its beginning.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        ensure!(
            !name.is_empty(),
            "`{text}` names every task; name some of them"
        );
        ensure!(!name.contains('\0'), "a task's name has no zero byte");
        let kept = &name.as_bytes()[..name.len().min(NAME_LEN - 1)];
        let mut bytes = [0; NAME_LEN];
        bytes[..kept.len()].copy_from_slice(kept);
        let len = kept.len() + usize::from(!is_prefix);
        Ok(Name { bytes, len })
    }
}

/// The rules of the command line.
pub fn rules(cgroups: &[PathBuf], processes: &[String], threads: &[String]) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for path in cgroups {
        rules.push(Rule::Cgroup(cgroup_id(Path::new(CGROUP_MOUNT), path)?));
    }
    for name in processes {
        rules.push(Rule::Process(Name::parse(name)?));
    }
    for name in threads {
        rules.push(Rule::Thread(Name::parse(name)?));
    }
    ensure!(
        rules.len() <= MAX_RULES,
        "{} rules are given, {MAX_RULES} are possible; use a cgroup, or names that end in *",
        rules.len()
    );
    Ok(rules)
}

/// A cgroup's id is the inode number of its directory. `path` is one below the
/// mount point of cgroup v2, or the full one.
fn cgroup_id(mount: &Path, path: &Path) -> Result<u64> {
    let full = match path.starts_with(mount) {
        true => path.to_owned(),
        false => mount.join(path.strip_prefix("/").unwrap_or(path)),
    };
    let metadata = std::fs::metadata(full.join("cgroup.procs")).and(std::fs::metadata(&full));
    let metadata = metadata.with_context(|| {
        format!(
            "{} is not a cgroup of version 2; make it before the scheduler starts",
            full.display()
        )
    })?;
    Ok(metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a good name")
    }

    #[test]
    fn a_whole_name_is_compared_with_its_end() {
        assert_eq!(name("nginx").len, 6);
        assert_eq!(&name("nginx").bytes[..6], b"nginx\0");
    }

    #[test]
    fn a_star_compares_the_beginning_only() {
        assert_eq!(name("nginx*").len, 5);
    }

    #[test]
    fn a_name_is_cut_as_the_kernel_cuts_it() {
        let long = name("a-very-long-process-name");
        assert_eq!(&long.bytes, b"a-very-long-pro\0");
        assert_eq!(long.len, NAME_LEN);
    }

    #[test]
    fn a_rule_for_every_task_is_refused() {
        assert!(Name::parse("").is_err());
        assert!(Name::parse("*").is_err());
    }

    #[test]
    fn more_rules_than_the_kernel_half_holds_are_refused() {
        let names = vec!["x".to_owned(); MAX_RULES + 1];
        assert!(rules(&[], &names, &[]).is_err());
        assert_eq!(
            rules(&[], &names[1..], &[]).expect("as many").len(),
            MAX_RULES
        );
    }

    #[test]
    fn a_cgroup_is_found_by_its_path_below_the_mount_point() {
        let mount = tempfile::tempdir().expect("a directory");
        let dir = mount.path().join("service");
        std::fs::create_dir(&dir).expect("a directory");
        std::fs::write(dir.join("cgroup.procs"), "").expect("a file");
        let id = std::fs::metadata(&dir).expect("its metadata").ino();
        for path in [Path::new("service"), Path::new("/service"), &*dir] {
            assert_eq!(cgroup_id(mount.path(), path).expect("found"), id);
        }
        assert!(cgroup_id(mount.path(), Path::new("none")).is_err());
    }
}
