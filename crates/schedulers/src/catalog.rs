//! The schedulers that schedlab knows by name. All but our own are crates of the
//! scx repository (github.com/sched-ext/scx), published on crates.io; the sentences
//! follow their own descriptions.

/// A scheduler that can be installed by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Name of the crate and of the program.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Place in which it decides what runs next.
    pub decides_in: Place,
    /// Place of its source.
    pub source: Source,
    /// The version that is installed where none is named: the newest that was tried.
    /// `None`: the one in the source tree.
    pub version: Option<&'static str>,
}

/// The half of a scheduler that makes its decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The BPF half; user space balances, tunes or only reports.
    Kernel,
    UserSpace,
}

/// From where a scheduler is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    CratesIo,
    /// `sched/` of schedlab's own source tree.
    Tree,
}

/// In order of name.
pub const CATALOG: [Known; 12] = [
    Known {
        name: "scx_beerland",
        about: "a deadline queue per CPU, tasks move only when all are busy; for cache-intensive work, many CPUs",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_bpfland",
        about: "vruntime with priority for interactive tasks; for desktops under load",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_chaos",
        about: "adds random delays and degradation on purpose, to find races; not for speed",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_cosmos",
        about: "tasks stay on their CPU while there is room, deadlines when there is none; general",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.7"),
    },
    Known {
        name: "scx_flash",
        about: "earliest deadline first, in favour of tasks that leave the CPU early; for audio and video",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_lavd",
        about: "deadlines from how latency-critical a task is, core compaction; for games and desktops",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_layered",
        about: "tasks sorted into layers by rules, each with its own CPUs and policy; for known services",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_microquanta",
        about: "chosen tasks go first, for a bounded share of each CPU; for services beside batch work",
        decides_in: Place::Kernel,
        source: Source::Tree,
        version: None,
    },
    Known {
        name: "scx_p2dq",
        about: "several queues a cache domain, load balanced by picking two; general",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_rustland",
        about: "all decisions in a user-space program; for study and experiments",
        decides_in: Place::UserSpace,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_rusty",
        about: "a queue per cache domain in BPF, load balancing between them in user space; general",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
    Known {
        name: "scx_tickless",
        about: "a few CPUs handle all events, the others run without ticks; for virtual machines and batch work",
        decides_in: Place::Kernel,
        source: Source::CratesIo,
        version: Some("1.1.4"),
    },
];

/// No scheduler, but built and installed like one: what `collect = ["runqueue"]` runs.
pub const RUN_QUEUE: Known = Known {
    name: "schedlab_runqueue",
    about: "no scheduler: collects run-queue latency with BPF, for collect = [\"runqueue\"]",
    decides_in: Place::Kernel,
    source: Source::Tree,
    version: None,
};

/// The entry of this name.
pub fn find_known(name: &str) -> Option<&'static Known> {
    CATALOG.iter().chain([&RUN_QUEUE]).find(|k| k.name == name)
}

/// The newest version of a scheduler that was tried, as an arm names it; `None` where `version` is it, and
/// for one that is not known.
pub fn other_version(name: &str, version: Option<&str>) -> Option<String> {
    let newest = find_known(name)?.version?;
    (version != Some(newest)).then(|| format!("{name}@{newest}"))
}

/// The known name that is closest to a wrong one, which may lack its `scx_`.
pub fn find_nearest(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("scx_").unwrap_or(name);
    let known = || CATALOG.iter().map(|known| known.name);
    let near = model::find_nearest(rest, known().filter_map(|name| name.strip_prefix("scx_")))?;
    known().find(|name| name.strip_prefix("scx_") == Some(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_was_tried_is_another_than_one_that_was_not_loaded() {
        let newest = find_known("scx_lavd").and_then(|k| k.version);
        let written = newest.map(|version| format!("scx_lavd@{version}"));
        assert_eq!(other_version("scx_lavd", Some("1.0.19")), written);
        assert_eq!(other_version("scx_lavd", newest), None);
        assert_eq!(other_version("scx_mine", None), None);
    }

    #[test]
    fn the_catalog_is_in_order_and_names_each_scheduler_once() {
        assert!(CATALOG.windows(2).all(|w| w[0].name < w[1].name));
    }

    #[test]
    fn what_comes_from_a_registry_has_a_version_that_was_tried() {
        for known in CATALOG {
            let version = known.version.map(str::parse::<crate::Version>);
            let is_tree = known.source == Source::Tree;
            assert_eq!(version.is_none(), is_tree, "{}", known.name);
            assert!(version.is_none_or(|v| v.is_ok()), "{}", known.name);
        }
    }

    #[test]
    fn descriptions_fit_on_a_line_beside_the_name() {
        for known in CATALOG {
            assert!(known.about.len() <= 100, "{} is too long", known.name);
        }
    }

    #[test]
    fn a_mistyped_name_has_a_nearest_one() {
        assert_eq!(find_nearest("scx_bfpland"), Some("scx_bpfland"));
        assert_eq!(find_nearest("rusty"), Some("scx_rusty"));
        assert_eq!(find_nearest("libc"), None);
    }
}
