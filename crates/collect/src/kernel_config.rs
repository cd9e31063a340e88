//! Configuration that the running kernel was built with: `/boot/config-$(uname -r)`,
//! `/lib/modules/…/config`, or the kernel's own `/proc/config.gz`.

use crate::machine::kernel_release;
use doors::read::{KERNEL_BYTES, file_text, open_kernel_file, stream_text};
use flate2::read::GzDecoder;
use std::path::Path;

/// Options that decide what can be compared, or that move figures.
pub const OPTIONS: &[&str] = &[
    "CONFIG_HZ",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_SCHED_AUTOGROUP",
    "CONFIG_SCHED_CLASS_EXT",
];

/// The value of an option (`y`, `1000`); `n` where the file says that it is not
/// set; `None` where there is no file.
pub fn read(root: &Path, option: &str) -> Option<String> {
    let text = plain(root).or_else(|| packed(root))?;
    Some(value(&text, option).unwrap_or("n").to_owned())
}

fn plain(root: &Path) -> Option<String> {
    let release = kernel_release();
    let candidates = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("usr/lib/modules/{release}/config"),
    ];
    let mut texts = candidates
        .iter()
        .filter_map(|path| file_text(root.join(path), KERNEL_BYTES).ok());
    texts.next()
}

fn packed(root: &Path) -> Option<String> {
    let file = open_kernel_file(root.join("proc/config.gz")).ok()?;
    stream_text(GzDecoder::new(file), KERNEL_BYTES).ok()
}

fn value<'a>(text: &'a str, option: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
        .map(|value| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
    use std::fs::File;

    #[test]
    fn an_option_is_found_by_its_whole_name() {
        let text = "CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_SCHED_CLASS_EXT is not set\n";
        assert_eq!(value(text, "CONFIG_HZ"), Some("250"));
        assert_eq!(value(text, "CONFIG_SCHED_CLASS_EXT"), None);
    }

    #[test]
    fn an_option_that_is_not_set_is_told_from_a_missing_file() {
        let path = format!("boot/config-{}", kernel_release());
        let root = tree(&[(path.as_str(), "CONFIG_HZ=250\n")]);
        assert_eq!(read(root.path(), "CONFIG_HZ").as_deref(), Some("250"));
        assert_eq!(
            read(root.path(), "CONFIG_SCHED_CLASS_EXT").as_deref(),
            Some("n")
        );
        assert_eq!(read(tree(&[]).path(), "CONFIG_HZ"), None);
    }

    #[test]
    fn the_kernels_own_packed_copy_is_read_where_there_is_no_other() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let root = tree(&[("proc/version", "")]);
        let file = File::create(root.path().join("proc/config.gz")).unwrap();
        let mut packer = GzEncoder::new(file, Compression::fast());
        packer.write_all(b"CONFIG_HZ=1000\n").unwrap();
        packer.finish().unwrap();
        assert_eq!(read(root.path(), "CONFIG_HZ").as_deref(), Some("1000"));
    }
}
