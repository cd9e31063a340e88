//! systemd-boot: an entry of its own, and the EFI variable LoaderEntryOneShot, which the boot
//! loader removes before it boots (bootctl(1), systemd-boot(7)).

use crate::program::{find_installed, run_program};
use crate::{NAME, loader_entry, remove_partials, replace};
use doors::written;
use std::path::{Path, PathBuf};

/// The variable in which systemd-boot says its name to the system that it booted.
const BOOTED_BY: &str = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41c6-b6c7-440b29bb8c4f";
/// Places of the EFI system partition and of an extended boot loader partition.
const PARTITIONS: [&str; 3] = ["boot", "efi", "boot/efi"];

/// A kernel that systemd-boot has an entry for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemdBoot {
    directory: PathBuf,
    entry: String,
}

impl SystemdBoot {
    pub fn find(root: &Path, release: &str) -> Result<Self, String> {
        if !root.join(BOOTED_BY).exists() {
            return Err("systemd-boot did not boot this machine".to_owned());
        }
        for directory in directories(root) {
            let files = std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten();
            let texts = files.filter(|file| file.file_name() != file_name().as_str());
            let mut texts = texts.filter_map(|file| doors::read::small_file_text(file.path()).ok());
            if let Some(entry) =
                texts.find_map(|text| loader_entry::one_time_entry(&text, NAME, release))
            {
                return Ok(SystemdBoot { directory, entry });
            }
        }
        Err(format!("systemd-boot has no entry for {release}"))
    }

    pub fn prepare(&self) -> Result<(), String> {
        replace(&self.directory.join(file_name()), &self.entry)?;
        one_shot(&file_name())
    }
}

fn directories(root: &Path) -> Vec<PathBuf> {
    let all = PARTITIONS.map(|path| root.join(path).join("loader/entries"));
    all.into_iter().filter(|path| path.is_dir()).collect()
}

/// Entries that are not sorted otherwise come by their names, the last one first.
fn file_name() -> String {
    format!("a-{NAME}.conf")
}

fn one_shot(entry: &str) -> Result<(), String> {
    let program = find_installed(&["bootctl"]);
    let program = program.ok_or("bootctl is not installed (Debian: systemd-boot)")?;
    run_program(&program, &["set-oneshot", entry]).map(drop)
}

/// Removes the entry, and the wish for it.
pub(crate) fn remove_entry(root: &Path) -> Result<(), String> {
    for directory in directories(root) {
        remove_partials(&directory)?;
        let path = directory.join(file_name());
        if path.exists() {
            written::remove_file(&path).map_err(|e| format!("remove {}: {e}", path.display()))?;
            one_shot("")?;
        }
    }
    Ok(())
}
