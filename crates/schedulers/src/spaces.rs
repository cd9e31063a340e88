//! Ready spaces: the options of known schedulers that are worth varying, which are data (`spaces.toml`).

use std::sync::LazyLock;

const DATA: &str = include_str!("spaces.toml");

/// Options of a scheduler to vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadySpace {
    /// Name of the scheduler and of the space.
    pub scheduler: String,
    /// Version whose `--help` it was made from.
    pub version: String,
    /// Options with their values: `--slice-us=250..8000 log`.
    pub options: Vec<String>,
}

impl ReadySpace {
    /// The options as `--vary` has them, behind the name of the scheduler.
    pub fn list_vary(&self) -> Vec<String> {
        let options = self.options.iter();
        options
            .map(|option| format!("{} {option}", self.scheduler))
            .collect()
    }
}

/// All ready spaces, in order of name.
pub static SPACES: LazyLock<Vec<ReadySpace>> = LazyLock::new(read_spaces);

/// The ready space of this name.
pub fn find_space(name: &str) -> Option<&'static ReadySpace> {
    SPACES.iter().find(|space| space.scheduler == name)
}

fn read_spaces() -> Vec<ReadySpace> {
    let table: toml::Table = DATA.parse().unwrap_or_default();
    let space = |(name, value): (String, toml::Value)| {
        let options = value.get("vary")?.as_array()?.iter();
        Some(ReadySpace {
            scheduler: name,
            version: value.get("version")?.as_str()?.to_owned(),
            options: options
                .map(|option| option.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()?,
        })
    };
    table.into_iter().filter_map(space).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_space_is_of_a_scheduler_that_is_known() {
        let names: Vec<&str> = SPACES
            .iter()
            .map(|space| space.scheduler.as_str())
            .collect();
        assert_eq!(names, ["scx_bpfland", "scx_flash", "scx_lavd", "scx_rusty"]);
        for space in SPACES.iter() {
            assert!(crate::catalog::find_known(&space.scheduler).is_some());
            assert!(space.version.parse::<crate::Version>().is_ok());
            assert!(space.options.iter().all(|option| option.starts_with('-')));
        }
    }
}
