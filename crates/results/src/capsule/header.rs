//! Headers of the entries of a capsule: `pack` writes one form of them, and another is refused,
//! since tar(1) would make of it what nobody checked, a setuid file for one.

use tar::Header;

/// Mode of every entry.
const MODE: u32 = 0o644;

/// A header as `pack` writes it, but for the name.
pub fn make_header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(MODE);
    header.set_mtime(0);
    header
}

/// Property of a header that `pack` would not write; `None` for one as it writes them, for a file or
/// for a long name.
pub fn unlike_packed(header: &Header) -> Option<String> {
    if header.as_gnu().is_none() {
        return Some("whose header is not of the form of GNU's tar".to_owned());
    }
    let Ok(size) = header.entry_size() else {
        return Some("whose size is no number".to_owned());
    };
    let mut ours = make_header(size);
    let (found, wanted) = (header.as_old(), ours.as_old_mut());
    if found.mode != wanted.mode {
        return Some(match header.mode() {
            Ok(mode) => format!("whose mode is {mode:o} and not {MODE:o}"),
            Err(_) => "whose mode is no number".to_owned(),
        });
    }
    if !is_nobodys(&found.uid) || !is_nobodys(&found.gid) {
        return Some("which has an owner".to_owned());
    }
    if found.mtime != wanted.mtime {
        return Some("which has a time".to_owned());
    }
    if !ends_with_zeros(&found.name) {
        return Some("with bytes behind its name".to_owned());
    }
    // The sum was compared as the header was read, and the kind is looked at by itself.
    wanted.name = found.name;
    wanted.uid = found.uid;
    wanted.gid = found.gid;
    wanted.cksum = found.cksum;
    wanted.linkflag = found.linkflag;
    match ours.as_bytes() == header.as_bytes() {
        true => None,
        false => Some("with more in its header than name and size".to_owned()),
    }
}

/// Files have no owner, and entries of long names have the number zero.
fn is_nobodys(id: &[u8; 8]) -> bool {
    *id == [0; 8] || id == b"0000000\0"
}

fn ends_with_zeros(name: &[u8]) -> bool {
    let mut rest = name.iter().skip_while(|byte| **byte != 0);
    rest.all(|byte| *byte == 0)
}
