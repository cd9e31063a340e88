//! `/sys/kernel/sched_ext`: which BPF scheduler is in force (kernel/sched/ext.c).
//!
//! `state` says only whether there is one; `root/ops` says which, and is there only
//! while one is attached.

use crate::{read_number, read_trimmed};
use model::SchedExt;
use std::collections::BTreeMap;
use std::path::Path;

const DIRECTORY: &str = "sys/kernel/sched_ext";

/// `None` on a kernel without `CONFIG_SCHED_CLASS_EXT`.
pub fn read(root: &Path) -> Option<SchedExt> {
    let directory = root.join(DIRECTORY);
    let state = read_trimmed(&directory.join("state"))?;
    Some(SchedExt {
        state,
        ops: read_trimmed(&directory.join("root/ops")).unwrap_or_default(),
        enable_seq: read_number(&directory.join("enable_seq")).unwrap_or(0),
        nr_rejected: read_number(&directory.join("nr_rejected")).unwrap_or(0),
        switch_all: read_number::<u32>(&directory.join("switch_all")).map(|all| all != 0),
    })
}

/// Events that the kernel has counted for the scheduler in force (`root/events`, since Linux 6.15), by
/// name; nothing without one.
pub fn read_events(root: &Path) -> BTreeMap<String, u64> {
    let text = read_trimmed(&root.join(DIRECTORY).join("root/events")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let counts = lines.filter_map(|(name, count)| {
        let name = name.strip_prefix("SCX_EV_").unwrap_or(name);
        Some((name.to_owned(), count.trim().parse().ok()?))
    });
    counts.collect()
}

/// Does the kernel have the class at all?
pub fn is_supported(root: &Path) -> bool {
    root.join(DIRECTORY).join("state").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn an_attached_scheduler_is_read_with_its_name_and_counters() {
        let root = tree(&[
            ("sys/kernel/sched_ext/state", "enabled\n"),
            ("sys/kernel/sched_ext/root/ops", "rusty_1.1.4_x86_64\n"),
            ("sys/kernel/sched_ext/enable_seq", "3\n"),
            ("sys/kernel/sched_ext/nr_rejected", "1\n"),
            ("sys/kernel/sched_ext/switch_all", "1\n"),
        ]);
        let expected = SchedExt {
            state: "enabled".into(),
            ops: "rusty_1.1.4_x86_64".into(),
            enable_seq: 3,
            nr_rejected: 1,
            switch_all: Some(true),
        };
        assert_eq!(read(root.path()), Some(expected));
    }

    #[test]
    fn events_are_read_by_name_where_a_scheduler_has_them() {
        let root = tree(&[(
            "sys/kernel/sched_ext/root/events",
            "SCX_EV_SELECT_CPU_FALLBACK 7\nSCX_EV_BYPASS_DURATION 90\nodd\n",
        )]);
        let events = read_events(root.path());
        assert_eq!(events["SELECT_CPU_FALLBACK"], 7);
        assert_eq!(events["BYPASS_DURATION"], 90);
        assert_eq!(events.len(), 2);
        assert!(read_events(tree(&[]).path()).is_empty());
    }

    #[test]
    fn without_a_scheduler_the_name_is_empty() {
        let root = tree(&[("sys/kernel/sched_ext/state", "disabled\n")]);
        let state = read(root.path()).unwrap();
        assert_eq!((state.state.as_str(), state.ops.as_str()), ("disabled", ""));
    }

    #[test]
    fn a_kernel_without_the_class_reads_as_none() {
        let root = tree(&[]);
        assert_eq!(read(root.path()), None);
        assert!(!is_supported(root.path()));
    }
}
