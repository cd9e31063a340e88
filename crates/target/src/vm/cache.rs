//! Where fetched and built things are kept: kernels, initramfs files, images.

use super::failure::unmet;
use crate::TargetError;
use std::env;
use std::path::PathBuf;

/// `$SCHEDLAB_CACHE_DIR`, else `$XDG_CACHE_HOME/schedlab`, else `~/.cache/schedlab`.
pub fn directory() -> Result<PathBuf, TargetError> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("SCHEDLAB_CACHE_DIR")
        .or_else(|| {
            Some(
                set("XDG_CACHE_HOME")
                    .filter(|p| p.is_absolute())?
                    .join("schedlab"),
            )
        })
        .or_else(|| Some(set("HOME")?.join(".cache/schedlab")))
        .ok_or_else(|| {
            unmet(
                "the cache directory",
                "HOME is not set, so there is no place for it",
                "set SCHEDLAB_CACHE_DIR",
            )
        })
}
