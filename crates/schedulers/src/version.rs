//! Version numbers of crates.

use semver::BuildMetadata;

pub use semver::Version;

/// A full version, without its build metadata: two builds of one version are the same one.
/// No version names a path outside the cache.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let mut version = Version::parse(text).ok()?;
    version.build = BuildMetadata::EMPTY;
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_full_version_is_refused() {
        for text in ["", "1", "1.1", "1.1.x", "1.1.4.5", "1.1.4-../x", "../1.1.4"] {
            assert_eq!(parse(text), None, "{text} was taken");
        }
    }

    #[test]
    fn pre_releases_are_ordered_by_number_and_come_before_their_release() {
        let [ninth, tenth, release] =
            ["1.2.0-rc.9", "1.2.0-rc.10", "1.2.0"].map(|text| parse(text).unwrap());
        assert!(ninth < tenth && tenth < release);
    }

    #[test]
    fn a_version_prints_as_it_was_written_without_build_metadata() {
        let printed = |text| parse(text).unwrap().to_string();
        assert_eq!(printed("1.7.0+v1.7.0"), "1.7.0");
        assert_eq!(printed("1.2.0-rc.1"), "1.2.0-rc.1");
    }
}
