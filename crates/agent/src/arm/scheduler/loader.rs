//! Modes of scx_loader (github.com/sched-ext/scx, `tools/scx_loader`), which distributions start
//! schedulers with: a name for the options of each scheduler. The configuration of this machine
//! counts first, and what scx_loader has without one after it.

use model::{Invalid, Scheduler};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Word before a mode.
pub const PREFIX: &str = "loader:";
/// Where scx_loader looks, in this order.
const PLACES: [&str; 4] = [
    "etc/scx_loader/config.toml",
    "etc/scx_loader.toml",
    "usr/share/scx_loader/config.toml",
    "usr/share/scx_loader.toml",
];
const MODES: [&str; 5] = ["auto", "gaming", "lowlatency", "powersave", "server"];

/// Options of a scheduler in each of the [`MODES`], where no configuration has others.
type Usual = (&'static str, [&'static str; 5]);

/// `configuration.md` of scx_loader, in the order in which it lists them.
const USUAL: [Usual; 10] = [
    (
        "scx_bpfland",
        [
            "",
            "",
            "-m performance -w",
            "-s 20000 -m powersave -I 100 -t 100",
            "-s 20000",
        ],
    ),
    ("scx_rusty", [""; 5]),
    (
        "scx_lavd",
        ["", "--performance", "--performance", "--powersave", ""],
    ),
    (
        "scx_flash",
        [
            "",
            "-m all",
            "-m performance -w -C 0",
            "-m powersave -I 10000 -t 10000 -s 10000 -S 1000",
            "-m all -s 20000 -S 1000 -I -1 -D -L",
        ],
    ),
    (
        "scx_p2dq",
        [
            "",
            "--task-slice true -f --sched-mode performance",
            "-y -f --task-slice true",
            "--sched-mode efficiency",
            "--keep-running",
        ],
    ),
    (
        "scx_tickless",
        [
            "",
            "-f 5000 -s 5000",
            "-f 5000 -s 1000",
            "-f 50 -p",
            "-f 100",
        ],
    ),
    ("scx_rustland", [""; 5]),
    (
        "scx_cosmos",
        [
            "-d",
            "-c 0 -p 0",
            "-m performance -c 0 -p 0 -w",
            "-m powersave -d -p 5000",
            "-a -s 20000",
        ],
    ),
    ("scx_beerland", [""; 5]),
    (
        "scx_chaos",
        [
            "",
            "--task-slice true -f --sched-mode performance",
            "-y -f --task-slice true",
            "--sched-mode efficiency",
            "--keep-running",
        ],
    ),
];

/// The configuration of scx_loader, as far as modes are concerned.
#[derive(Debug, Default, Deserialize)]
struct Config {
    default_sched: Option<String>,
    #[serde(default)]
    scheds: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Config {
    /// The first that is there; the empty one where there is none.
    fn of_machine(root: &Path) -> Result<Self, Invalid> {
        let mut places = PLACES.iter().map(|place| root.join(place));
        let Some(path) = places.find(|path| path.exists()) else {
            return Ok(Config::default());
        };
        let read = doors::read::small_file_text(&path).map_err(|e| e.to_string());
        let config = read.and_then(|text| toml::from_str(&text).map_err(|e| e.to_string()));
        config.map_err(|why| {
            let why = why.trim_end();
            wrong(
                format!("{}: {why}", path.display()),
                "correct it, or write the options out",
            )
        })
    }
}

/// The scheduler of `loader:MODE`, or of `loader:scx_NAME/MODE`, with its options.
pub fn scheduler(root: &Path, words: &str) -> Result<Scheduler, Invalid> {
    let (name, mode) = match words.split_once('/') {
        Some((name, mode)) => (Some(name), mode),
        None => (None, words),
    };
    let Some(index) = MODES.iter().position(|known| *known == mode) else {
        let what = format!("`{mode}` is no mode of scx_loader");
        return Err(wrong(what, &MODES.join(", ")));
    };
    let config = Config::of_machine(root)?;
    let usual = config
        .default_sched
        .as_deref()
        .filter(|name| !name.is_empty());
    let Some(name) = name.or(usual) else {
        let what = "no configuration of scx_loader on this machine says which scheduler it starts";
        let remedy = format!("name one: {PREFIX}scx_lavd/{mode}");
        return Err(wrong(what.to_owned(), &remedy));
    };
    let of_config = config
        .scheds
        .get(name)
        .and_then(|modes| modes.get(&format!("{mode}_mode")));
    let args = match of_config.filter(|args| !args.is_empty()) {
        Some(args) => args.clone(),
        None => usual_args(name, index)?,
    };
    Ok(Scheduler {
        program: name.to_owned(),
        args,
        attach_limit_ns: None,
        built_from: None,
    })
}

fn usual_args(name: &str, mode: usize) -> Result<Vec<String>, Invalid> {
    let Some((_, modes)) = USUAL.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = USUAL.iter().map(|(name, _)| *name).collect();
        let what = format!("scx_loader has no modes of `{name}`");
        return Err(wrong(what, &names.join(", ")));
    };
    let words = modes[mode].split_whitespace();
    Ok(words.map(str::to_owned).collect())
}

fn wrong(what: String, remedy: &str) -> Invalid {
    Invalid::new("scheduler", what).with_remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn line(files: &[(&str, &str)], words: &str) -> String {
        let root = tree(files);
        let scheduler = scheduler(root.path(), words);
        scheduler.map_or_else(|e| e.what, |scheduler| scheduler.command_line())
    }

    const CONFIG: &str = "default_sched = \"scx_bpfland\"\ndefault_mode = \"Auto\"\n\
        [scheds.scx_bpfland]\ngaming_mode = [\"-m\", \"performance\", \"-k\"]\nserver_mode = []\n\
        [scheds.scx_own]\nauto_mode = [\"--own\"]\n";

    #[test]
    fn a_mode_is_that_of_the_configuration_and_else_the_usual_one() {
        let own = [("etc/scx_loader.toml", CONFIG)];
        assert_eq!(line(&own, "gaming"), "scx_bpfland -m performance -k");
        // An empty list is the same as none, as scx_loader has it.
        assert_eq!(line(&own, "server"), "scx_bpfland -s 20000");
        assert_eq!(line(&own, "scx_lavd/gaming"), "scx_lavd --performance");
        assert_eq!(line(&own, "scx_own/auto"), "scx_own --own");
        assert_eq!(line(&[], "scx_cosmos/auto"), "scx_cosmos -d");
    }

    #[test]
    fn the_first_place_of_the_configuration_counts() {
        let both = [
            ("etc/scx_loader/config.toml", "default_sched = \"scx_lavd\""),
            ("usr/share/scx_loader.toml", CONFIG),
        ];
        assert_eq!(line(&both, "powersave"), "scx_lavd --powersave");
    }

    #[test]
    fn what_no_loader_has_is_refused_with_what_there_is() {
        let empty = [("etc/scx_loader.toml", "default_sched = \"\"")];
        assert!(line(&[], "gaming").contains("says which scheduler"));
        assert!(line(&empty, "gaming").contains("says which scheduler"));
        assert!(line(&[], "scx_lavd/fast").contains("`fast` is no mode"));
        assert!(line(&[], "scx_mine/auto").contains("no modes of `scx_mine`"));
        let broken = [("etc/scx_loader.toml", "default_sched = ")];
        assert!(line(&broken, "gaming").contains("etc/scx_loader.toml"));
    }
}
