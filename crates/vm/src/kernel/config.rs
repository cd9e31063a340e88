//! A kernel's build configuration (`/boot/config-*`, `.config`): which options
//! are built in, modules, or off.

use std::collections::BTreeMap;

/// The options that are set, without their `CONFIG_` prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    options: BTreeMap<String, String>,
}

impl Config {
    pub fn parse(text: &str) -> Self {
        let options = text
            .lines()
            .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Config { options }
    }

    pub fn built_in(&self, option: &str) -> bool {
        self.get(option) == Some("y")
    }

    /// Built in or a module.
    pub fn available(&self, option: &str) -> bool {
        matches!(self.get(option), Some("y" | "m"))
    }

    fn get(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_built_in_modules_or_off() {
        let config = Config::parse(
            "# Automatically generated\nCONFIG_SCHED_CLASS_EXT=y\nCONFIG_9P_FS=m\n\
             # CONFIG_DEBUG_INFO_BTF is not set\nCONFIG_HZ=1000\n",
        );
        assert!(config.built_in("SCHED_CLASS_EXT"));
        assert!(config.available("9P_FS") && !config.built_in("9P_FS"));
        assert!(!config.available("DEBUG_INFO_BTF"));
        assert!(!config.available("HZ"));
    }
}
