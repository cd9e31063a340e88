//! A capsule: a whole results directory in one file, with the hash of every part.
//!
//! ```text
//! NAME.tar.gz
//!   NAME/capsule.json         format, and which schedlab packed it
//!   NAME/…                    the results directory, without what can be made again
//!   NAME/report/report.json   what the packing schedlab makes of it, also as
//!                             report.html and report.txt for people
//!   NAME/SHA256SUMS           of all of the above, as sha256sum(1) writes and checks it
//!   NAME/SHA256SUMS.sig       a signature of that list by ssh-keygen(1), if it was asked for
//! ```
//! Packing the same directory twice gives the same bytes: entries are sorted and
//! carry no time, owner or mode of this machine.
//!
//! Capsules come from strangers. What a capsule can be is therefore narrow, and whoever
//! unpacks one with tar(1) sees exactly the files that were checked here.

mod contents;
mod header;
mod pack;
mod sums;
mod unpack;

pub(crate) use contents::Found;
pub use pack::{Packed, Packer, Sign};
pub use sums::{Tampering, check_sums};
pub use unpack::{Limits, is_capsules, read_head, unpack_capsule};

use crate::Format;
use doors::read::copy_within;
use model::Build;
use model::printable::write_hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// The format that this version packs. A reader takes any minor of its major.
pub const CAPSULE_FORMAT: Format = Format { major: 1, minor: 0 };
/// Name of the list of hashes, in the top directory of a capsule.
pub const SUMS: &str = "SHA256SUMS";
/// The signature of [`SUMS`], the one file that cannot be in it.
pub const SIGNATURE: &str = "SHA256SUMS.sig";
/// Path of the report that the packing schedlab makes of the results.
pub const REPORT: &str = "report/report.json";
/// Paths of the same report for people.
pub const PAGES: [&str; 2] = ["report/report.html", "report/report.txt"];
const CAPSULE: &str = "capsule.json";

/// `capsule.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capsule {
    /// Format of the capsule, not that of the results in it.
    pub format: Format,
    /// Version of the schedlab that packed it and made its report; the one that measured is in
    /// the manifest.
    pub packed_by_version: String,
    /// Commit of that schedlab's source, empty if it is not known.
    pub packed_by_commit: String,
}

impl Capsule {
    /// The schedlab that packed it.
    pub fn packed_by(&self) -> Build {
        Build {
            version: self.packed_by_version.clone(),
            commit: self.packed_by_commit.clone(),
        }
    }
}

/// In hexadecimal, as sha256sum(1) writes it.
pub fn sha256(bytes: &[u8]) -> String {
    write_hexadecimal(&Sha256::digest(bytes))
}

/// Hash of all that a reader gives, without keeping it.
fn sha256_of(reader: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    copy_within(reader, &mut hash, u64::MAX)?;
    Ok(write_hexadecimal(&hash.finalize()))
}
