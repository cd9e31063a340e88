//! Things that a container hides: namespaces other than the machine's own, and knobs that it shows but does not
//! let anybody turn.

use super::{Machine, Rule, Seen};
use std::path::Path;

/// Namespaces that the kernel makes at boot, with their numbers (`include/linux/proc_ns.h`).
const OF_MACHINE: [(&str, &str); 3] = [
    ("pid", "pid:[4026531836]"),
    ("cgroup", "cgroup:[4026531835]"),
    ("user", "user:[4026531837]"),
];

pub const NAMESPACES: Rule = Rule {
    name: "namespaces",
    effect: "In a container the agent sees only processes and cgroups of the container: work of others on \
             the machine is not counted, and no arm reaches a daemon outside. With users of its own, root \
             in there is an ordinary user of the machine.",
    remedy: "measure on the machine itself, or share its namespaces with the container, as by \
             podman run --privileged --pid=host --cgroupns=host",
    look: namespaces,
};

fn namespaces(machine: &Machine) -> Seen {
    let directory = machine.root.join("proc/self/ns");
    let read = |name: &str| std::fs::read_link(directory.join(name)).ok();
    if read("pid").is_none() {
        return Seen::Unknown("the kernel does not tell");
    }
    let is_own = |(name, of_machine): &&(&str, &str)| {
        read(name).is_some_and(|found| found != Path::new(of_machine))
    };
    let own: Vec<&str> = OF_MACHINE
        .iter()
        .filter(is_own)
        .map(|(name, _)| *name)
        .collect();
    match own.is_empty() {
        true => Seen::Ok("those of the machine".to_owned()),
        false => Seen::Caution(format!("its own: {}", own.join(", ")), Vec::new()),
    }
}

pub const KNOBS: Rule = Rule {
    name: "knobs",
    effect: "The machine's knobs are out of reach here: no arm with a tunable can be put in force.",
    remedy: "measure on the machine itself, or in a privileged container (podman run --privileged), which \
             turns the knobs of the whole machine",
    look: knobs,
};

fn knobs(machine: &Machine) -> Seen {
    let Some(mounts) = machine.read("proc/self/mounts") else {
        return Seen::Unknown("the mounts cannot be read");
    };
    let hidden: Vec<&str> = ["/proc/sys", "/sys"]
        .into_iter()
        .filter(|directory| is_read_only(&mounts, directory))
        .collect();
    match hidden.is_empty() {
        true => Seen::Ok("those of the machine".to_owned()),
        false => Seen::Caution(format!("read-only: {}", hidden.join(", ")), Vec::new()),
    }
}

/// True where the mount that has this directory lets nobody write. A later mount of a place hides the one
/// before it.
fn is_read_only(mounts: &str, directory: &str) -> bool {
    let has = |place: &str| {
        let rest = directory.strip_prefix(place.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of_place = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, options) = (words.next()?, words.nth(1)?);
        has(place).then_some((place.len(), options))
    });
    let nearest = of_place.max_by_key(|(length, _)| *length);
    nearest.is_some_and(|(_, options)| options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_caution, is_unknown, seen};
    use super::*;
    use ::tests::tree;
    use std::os::unix::fs::symlink;

    fn with_namespaces(of_pid: &str) -> tempfile::TempDir {
        let root = tree(&[("proc/self/ns/none", "")]);
        for (name, of_machine) in OF_MACHINE {
            let found = if name == "pid" { of_pid } else { of_machine };
            symlink(found, root.path().join("proc/self/ns").join(name)).unwrap();
        }
        root
    }

    #[test]
    fn a_container_is_told_by_the_namespaces_that_it_has_of_its_own() {
        let machine = with_namespaces("pid:[4026531836]");
        assert!(!is_caution(&seen(&NAMESPACES, machine.path())));
        let container = with_namespaces("pid:[4026532771]");
        let finding = seen(&NAMESPACES, container.path());
        assert!(is_caution(&finding));
        assert_eq!(finding.check.value, "its own: pid");
        assert!(is_unknown(&seen(&NAMESPACES, tree(&[]).path())));
    }

    #[test]
    fn knobs_that_nobody_may_turn_are_told_by_the_nearest_mount() {
        let look = |mounts: &str| seen(&KNOBS, tree(&[("proc/self/mounts", mounts)]).path());
        let usual = "proc /proc proc rw 0 0\nsysfs /sys sysfs rw,nosuid 0 0\n";
        assert!(!is_caution(&look(usual)));
        let of_podman = "overlay / overlay ro 0 0\nproc /proc proc rw 0 0\n\
                         proc /proc/sys proc ro,nosuid 0 0\nsysfs /sys sysfs ro 0 0\n\
                         proc /proc/sysrq-trigger proc ro 0 0\n";
        assert_eq!(look(of_podman).check.value, "read-only: /proc/sys, /sys");
        let opened = format!("{of_podman}proc /proc/sys proc rw 0 0\n");
        assert_eq!(look(&opened).check.value, "read-only: /sys");
        assert!(is_unknown(&seen(&KNOBS, tree(&[]).path())));
    }
}
