//! Short hashes by which runs, series, alarms and experiments are called.

use results::capsule::sha256;
use serde::Serialize;

/// Characters of a hash: half of SHA-256.
const LENGTH: usize = 32;

/// Hash of a value that can be written as JSON.
pub fn hash_value(value: &impl Serialize) -> String {
    // The words of the model and of this crate can be written.
    let text = serde_json::to_string(value).unwrap_or_default();
    sha256(text.as_bytes()).chars().take(LENGTH).collect()
}
