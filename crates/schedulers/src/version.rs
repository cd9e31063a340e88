//! Version numbers of crates, as far as putting them in order needs.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// `1.1.4` or `1.2.0-rc.1`. Ordered by the numbers; a pre-release comes before
/// its release. Two pre-releases of one release are ordered as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    numbers: [u64; 3],
    pre: String,
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.split('+').next().unwrap_or(text);
        let (release, pre) = text.split_once('-').unwrap_or((text, ""));
        let mut parts = release.split('.').map(str::parse::<u64>);
        let mut next = || parts.next().and_then(Result::ok).ok_or(());
        let numbers = [next()?, next()?, next()?];
        let whole = parts.next().is_none() && pre.bytes().all(is_identifier);
        whole
            .then(|| Version {
                numbers,
                pre: pre.to_owned(),
            })
            .ok_or(())
    }
}

/// Also what keeps a version from naming a path outside the cache.
fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-'
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let released = |v: &Version| v.pre.is_empty();
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| released(self).cmp(&released(other)))
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_ordered_by_number_and_not_as_text() {
        assert!(version("1.1.10") > version("1.1.9"));
        assert!(version("2.0.0") > version("1.99.99"));
    }

    #[test]
    fn a_pre_release_comes_before_its_release() {
        assert!(version("1.2.0-rc.1") < version("1.2.0"));
        assert!(version("1.2.0-rc.1") > version("1.1.9"));
    }

    #[test]
    fn what_is_not_a_full_version_is_refused() {
        for text in ["", "1", "1.1", "1.1.x", "1.1.4.5", "1.1.4-../x", "../1.1.4"] {
            assert!(text.parse::<Version>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn a_version_prints_as_it_was_written_without_build_metadata() {
        assert_eq!(version("1.7.0+v1.7.0").to_string(), "1.7.0");
        assert_eq!(version("1.2.0-rc.1").to_string(), "1.2.0-rc.1");
    }
}
