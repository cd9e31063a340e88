//! Commands of roles: what a file must say, and the names in braces that they have.

use crate::error::PlanError;

/// A key that its kind does not have.
pub(crate) fn unused(present: bool, key: &str, what: &str) -> Result<(), PlanError> {
    if !present {
        return Ok(());
    }
    Err(PlanError::new(format!("{what} has no `{key}`"))
        .with_help("leave it out")
        .about(key))
}

pub(crate) fn argv(
    command: Option<Vec<String>>,
    role: &str,
    example: &str,
) -> Result<Vec<String>, PlanError> {
    match command {
        Some(argv) if !argv.is_empty() => Ok(argv),
        _ => Err(
            PlanError::new(format!("the {role} `command` needs its command"))
                .with_help(format!("command = {example}"))
                .about("command"),
        ),
    }
}

/// Names in braces. A word with spaces is a script, whose braces are its own; so are
/// those after a dollar sign.
pub(crate) fn placeholders(word: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)
    };
    if word.contains(char::is_whitespace) {
        return Vec::new();
    }
    let mut opened = word.split('{');
    let mut before = opened.next().unwrap_or_default();
    let mut names = Vec::new();
    for rest in opened {
        let name = rest.split_once('}').map(|(name, _)| name);
        names.extend(name.filter(is_name).filter(|_| !before.ends_with('$')));
        before = rest;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_lower_case_names_in_braces_outside_of_scripts() {
        assert_eq!(placeholders("--listen=:{port}"), ["port"]);
        assert_eq!(placeholders("{prot}{port}"), ["prot", "port"]);
        for word in [
            "${HOME}",
            "${home}",
            "awk '{print}'",
            "{}",
            "{\"a\":1}",
            "{a",
            "port",
        ] {
            assert_eq!(placeholders(word), [""; 0], "{word}");
        }
    }
}
