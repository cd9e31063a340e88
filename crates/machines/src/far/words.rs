//! Words of a command that go through a shell on the far side.

/// The words as one text, which any shell takes apart into the same words.
pub(crate) fn quote_words(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// Single quotes mean the same to every shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn words_reach_the_far_side_as_they_are() {
        let said = ["a b", "it's", "", "$HOME", "plain-1.2/x"].map(str::to_owned);
        let script = format!("printf '%s|' {}", quote_words(&said));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text, "a b|it's||$HOME|plain-1.2/x|");
    }
}
