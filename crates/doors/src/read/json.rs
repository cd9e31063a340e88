//! JSON of strangers. A value of two bytes takes thirty and more in memory, so values are limited
//! as well as bytes.

use serde::de::{DeserializeOwned, Error as _};

/// Limits of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostJson {
    /// The most bytes that are read.
    pub bytes: u64,
    /// The most values, keys not counted.
    pub values: usize,
}

/// The value that a JSON text says, which has at most so many values.
pub fn parse_json<T: DeserializeOwned>(text: &[u8], most_values: usize) -> serde_json::Result<T> {
    if has_more_values(text, most_values) {
        let what = format!("it has more than {most_values} values, the most that are read");
        return Err(serde_json::Error::custom(what));
    }
    serde_json::from_slice(text)
}

/// Each value but the first of a list or an object follows a comma, and the first a bracket.
fn has_more_values(text: &[u8], most: usize) -> bool {
    let (mut values, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values > most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_not_what_is_in_strings() {
        let text = br#"{"a\"[,": [1, 2, "3,[\\"], "b": {}}"#;
        assert!(has_more_values(text, 5));
        assert!(!has_more_values(text, 6));
        let error = parse_json::<serde_json::Value>(text, 5)
            .unwrap_err()
            .to_string();
        assert!(error.contains("more than 5 values"), "{error}");
        assert!(parse_json::<serde_json::Value>(text, 6).is_ok());
    }
}
