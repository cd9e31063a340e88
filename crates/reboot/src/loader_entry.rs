//! An entry of the Boot Loader Specification: lines of a key and its value.

use crate::ARGUMENTS;

/// The same entry for one boot, if it is of this kernel.
pub(crate) fn one_time_entry(text: &str, name: &str, release: &str) -> Option<String> {
    let value = |line: &str, key: &str| {
        let (found, value) = line.trim().split_once(char::is_whitespace)?;
        (found == key).then(|| value.trim().to_owned())
    };
    let has = |key: &str, fits: &dyn Fn(&str) -> bool| {
        text.lines()
            .filter_map(|line| value(line, key))
            .any(|text| fits(&text))
    };
    let of_release = has("version", &|version| version == release)
        || has("linux", &|path| {
            path.split('/')
                .any(|part| part == release || part == format!("vmlinuz-{release}"))
        });
    if !of_release {
        return None;
    }
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        // Without what entries are sorted by, it comes last, and is never the default.
        let sorted = ["sort-key", "machine-id", "version"];
        match value(line, "title") {
            Some(_) => lines.push(format!("title {name}")),
            None if sorted.iter().any(|key| value(line, key).is_some()) => {}
            None => lines.push(line.to_owned()),
        }
    }
    // A key may be there again: its values are put together.
    lines.push(format!("options {ARGUMENTS}"));
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_kernel_is_taken_with_our_arguments() {
        let text = "title Debian\nsort-key debian\nversion 6.1.0-50-amd64\noptions root=UUID=ab ro\n\
                    linux /m/6.1.0-50-amd64/linux\ninitrd /m/6.1.0-50-amd64/initrd.img\n";
        let entry = one_time_entry(text, "once", "6.1.0-50-amd64").unwrap_or_default();
        assert!(entry.starts_with("title once\noptions root"), "{entry}");
        assert!(
            !entry.contains("sort-key") && entry.ends_with(&format!("options {ARGUMENTS}\n")),
            "{entry}"
        );
        assert_eq!(one_time_entry(text, "once", "6.1.0-5-amd64"), None);
    }
}
