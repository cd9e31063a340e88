//! The order of kernel releases, as `uname -r` prints them on any distribution.

use std::cmp::Ordering;

/// A part of a release, in the order in which parts at the same place come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// `rc` and `~`: of what is not released yet.
    Before,
    End,
    Word(&'a str),
    Number(u64),
}

/// The order of two releases: older ones come first, and the candidates of a release before it.
pub fn compare_releases(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other)).then_with(|| one.cmp(other))
}

fn parts(release: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = release;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let same = |c: char| c.is_ascii_digit() == is_digit && c.is_alphanumeric();
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end.max(first.len_utf8()));
        rest = behind;
        match part {
            "rc" | "~" => parts.push(Part::Before),
            _ if is_digit => parts.push(Part::Number(part.parse().unwrap_or(u64::MAX))),
            _ if first.is_alphabetic() => parts.push(Part::Word(part)),
            _ => {}
        }
    }
    parts.push(Part::End);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_every_distribution_are_in_the_order_in_which_they_came() {
        for releases in [
            // Debian
            &[
                "6.1.0-9-amd64",
                "6.1.0-10-amd64",
                "6.12.9+deb13-amd64",
                "7.0~rc3-amd64",
                "7.0-amd64",
                "7.2.13+deb14-amd64",
            ][..],
            // Ubuntu
            &[
                "5.15.0-101-generic",
                "6.8.0-9-generic",
                "6.8.0-45-generic",
                "6.8.0-45-lowlatency",
                "6.8.0-101-generic",
            ],
            // Fedora
            &[
                "6.11.4-301.fc40.x86_64",
                "6.11.4-301.fc41.x86_64",
                "6.11.10-300.fc41.x86_64",
                "6.13.0-0.rc2.22.fc42.x86_64",
            ],
            // Arch and CachyOS
            &[
                "6.9.10-arch1-1",
                "6.12.1-arch1-1",
                "6.12.1-arch1-2",
                "6.12.10-arch1-1",
            ],
            &[
                "6.9.1-2-cachyos",
                "6.12.1-2-cachyos",
                "6.12.1-10-cachyos",
                "6.13.0-rc3-1-cachyos-rc",
                "6.13.0-2-cachyos",
            ],
            // As kernel.org has them
            &["6.9", "6.10-rc1", "6.10-rc10", "6.10", "6.10.1"],
        ] {
            let mut sorted: Vec<&str> = releases.iter().rev().copied().collect();
            sorted.sort_by(|one, other| compare_releases(one, other));
            assert_eq!(sorted, releases);
        }
        assert_eq!(
            compare_releases("6.1.0-9-amd64", "6.1.0-9-amd64"),
            Ordering::Equal
        );
    }
}
