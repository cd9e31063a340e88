//! Names that become directories, files and arguments of apt: of suites, packages,
//! versions and kernels. Most of them come from a file that a stranger may have
//! written, so each has a grammar that no path and no option fits.

/// A name of a file in the cache is no longer than this; NAME_MAX is 255.
const LONGEST_PART: usize = 64;

/// A suite of Debian's archive: `sid`, `bookworm-backports`, `bookworm/updates`.
pub fn is_suite(text: &str) -> bool {
    let part = |part: &str| {
        starts_plainly(part) && part.bytes().all(|b| is_lower(b) || b == b'.' || b == b'-')
    };
    text.len() <= LONGEST_PART && text.split('/').count() <= 2 && text.split('/').all(part)
}

/// The name of a package (Debian policy 5.6.1).
pub fn is_package(text: &str) -> bool {
    text.len() >= 2
        && starts_plainly(text)
        && text.bytes().all(|b| is_lower(b) || b"+-.".contains(&b))
}

/// The version of a package (Debian policy 5.6.12).
pub fn is_version(text: &str) -> bool {
    let known = |b: u8| b.is_ascii_alphanumeric() || b".+-:~".contains(&b);
    text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(known)
}

/// A part of a file's name, from text that may be anything: a kernel image says itself
/// which release it is.
pub fn file_name_part(text: &str) -> String {
    let known = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    let part = text.chars().take(LONGEST_PART);
    let part: String = part.map(|c| if known(c) { c } else { '_' }).collect();
    match part.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => part,
    }
}

fn starts_plainly(text: &str) -> bool {
    text.bytes().next().is_some_and(is_lower)
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_words_with_at_most_one_slash() {
        for name in [
            "sid",
            "trixie",
            "bookworm-backports",
            "bookworm/updates",
            "trixie/snapshots-13.1",
        ] {
            assert!(is_suite(name), "{name}");
        }
        for name in [
            "",
            "/x",
            "/var/lib/dpkg",
            "../x",
            "a/../../x",
            "a/..",
            "..",
            ".",
            "a/.",
            "a//b",
            "a/b/c",
            "a/",
            "-o",
            "a/-o",
            "Sid",
            "a b",
            "a\n",
            "a_b",
            ".x",
        ] {
            assert!(!is_suite(name), "{name:?}");
        }
    }

    #[test]
    fn packages_and_versions_are_those_of_debian_policy() {
        assert!(is_package("linux-image-7.2.13+deb14-amd64"));
        assert!(is_version("1:7.2+dfsg-7+deb12u18~bpo1"));
        for name in [
            "",
            "a",
            "linux-/../x",
            "linux-image/..",
            "-x",
            "linux_image",
            "Linux",
        ] {
            assert!(!is_package(name), "{name:?}");
        }
        for version in ["", "/1", "1/../2", "v1", "1 2"] {
            assert!(!is_version(version), "{version:?}");
        }
    }

    #[test]
    fn what_an_image_says_of_itself_stays_one_name() {
        assert_eq!(file_name_part("7.2.13+deb14-amd64"), "7.2.13+deb14-amd64");
        assert_eq!(file_name_part("../../etc/x"), "_._.._etc_x");
        assert_eq!(file_name_part("."), "_");
        assert_eq!(file_name_part(&"x".repeat(1000)).len(), LONGEST_PART);
    }
}
