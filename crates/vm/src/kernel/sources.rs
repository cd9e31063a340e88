//! The host's apt sources (`/etc/apt/sources.list`, `sources.list.d`; see
//! sources.list(5)): which mirror does this host take Debian from?

use std::fs;
use std::path::{Path, PathBuf};

/// Used where the host names no Debian mirror.
pub const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// The URI of the first Debian main archive below `etc_apt`.
pub fn debian_mirror(etc_apt: &Path) -> String {
    source_files(etc_apt)
        .iter()
        .filter_map(|path| Some((path, doors::read::small_file_text(path).ok()?)))
        .find_map(|(path, text)| match path.extension() {
            Some(e) if e == "sources" => mirror_in_deb822(&text),
            _ => mirror_in_lines(&text),
        })
        .unwrap_or_else(|| DEFAULT_MIRROR.to_owned())
}

fn source_files(etc_apt: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(etc_apt.join("sources.list.d"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e == "list" || e == "sources")
        })
        .collect();
    files.sort();
    files.insert(0, etc_apt.join("sources.list"));
    files
}

/// One-line style: `deb [options] URI SUITE COMPONENT…`.
fn mirror_in_lines(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut rest = line.trim().strip_prefix("deb ")?.trim_start();
        if rest.starts_with('[') {
            rest = rest.split_once(']')?.1;
        }
        let mut words = rest.split_whitespace();
        let (uri, _suite) = (words.next()?, words.next()?);
        (is_main_archive(uri) && words.any(|c| c == "main")).then(|| uri.to_owned())
    })
}

/// deb822 style: stanzas of `Field: value`.
fn mirror_in_deb822(text: &str) -> Option<String> {
    text.split("\n\n").find_map(|stanza| {
        let words = |name: &str| field(stanza, name).unwrap_or_default();
        let wanted = words("Types").contains(&"deb")
            && words("Components").contains(&"main")
            && !words("Enabled").contains(&"no");
        let uri = words("URIs").into_iter().find(|uri| is_main_archive(uri))?;
        wanted.then(|| uri.to_owned())
    })
}

fn field<'a>(stanza: &'a str, name: &str) -> Option<Vec<&'a str>> {
    stanza
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(|value| value.split_whitespace().collect())
}

fn is_main_archive(uri: &str) -> bool {
    uri.trim_end_matches('/').ends_with("/debian") && !uri.starts_with("cdrom:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror_of(files: &[(&str, &str)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sources.list.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        debian_mirror(dir.path())
    }

    #[test]
    fn the_mirror_comes_from_a_one_line_source() {
        let text = "# comment\ndeb http://security.example/debian-security bookworm-security main\n\
                    deb [arch=amd64] http://mirror.example/debian/ bookworm main contrib\n";
        assert_eq!(
            mirror_of(&[("sources.list", text)]),
            "http://mirror.example/debian/"
        );
    }

    #[test]
    fn the_mirror_comes_from_a_deb822_source() {
        let text = "Types: deb\n# snapshot\nURIs: https://mirror.example/debian\nSuites: bookworm\n\
                    Components: main\n\nTypes: deb\nURIs: https://other.example/debian-security\n";
        assert_eq!(
            mirror_of(&[("sources.list.d/debian.sources", text)]),
            "https://mirror.example/debian"
        );
    }

    #[test]
    fn disabled_and_foreign_sources_are_passed_over() {
        let other = "Types: deb\nEnabled: no\nURIs: http://off.example/debian\nComponents: main\n";
        let foreign = "deb https://packages.example/apt stable main\n";
        assert_eq!(
            mirror_of(&[
                ("sources.list.d/a.sources", other),
                ("sources.list.d/b.list", foreign)
            ]),
            DEFAULT_MIRROR
        );
    }
}
