//! GRUB: an entry of its own in `custom.cfg`, and `next_entry` of its environment, which the
//! configuration that grub-mkconfig(8) writes takes for one boot and forgets before it
//! (grub-reboot(8), "Boot once").

use crate::program::{installed, run};
use crate::{NAME, image, read_if_there, replace, with_ours};
use std::path::{Path, PathBuf};

const DIRECTORIES: [&str; 2] = ["boot/grub", "boot/grub2"];
const BEGIN: &str = "# schedlab: one boot, begin";
const END: &str = "# schedlab: one boot, end";
/// Forms of a disk that GRUB reads and never writes: it could not forget the one boot.
const NOT_WRITTEN: [&str; 2] = ["btrfs", "zfs"];

/// Commands that load a kernel, and those that load it or its first file system.
const LINUX: [&str; 3] = ["linux", "linuxefi", "linux16"];
const LOADING: [&str; 6] = [
    "linux",
    "linuxefi",
    "linux16",
    "initrd",
    "initrdefi",
    "initrd16",
];

/// A kernel that GRUB has an entry for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grub {
    directory: PathBuf,
    entry: String,
}

impl Grub {
    pub fn find(root: &Path, release: &str) -> Result<Self, String> {
        image(root, release)?;
        let directory = directory(root).ok_or("there is no /boot/grub/grub.cfg")?;
        let path = directory.join("grub.cfg");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("read {path:?}: {e}"))?;
        for needed in ["next_entry", "custom.cfg"] {
            if !text.contains(needed) {
                return Err(format!("grub.cfg has no {needed}: run update-grub"));
            }
        }
        let remedy = match text.contains("blscfg") {
            true => "its entries are files of their own, so use kexec",
            false => "run update-grub",
        };
        let lines = entry(&text, release)
            .ok_or_else(|| format!("grub.cfg has no entry for {release}: {remedy}"))?;
        if !directory.join("grubenv").is_file() {
            return Err("GRUB has no environment: run grub-editenv - create".to_owned());
        }
        is_written_by_grub(&directory)?;
        Ok(Grub {
            directory,
            entry: lines,
        })
    }

    pub fn prepare(&self) -> Result<(), String> {
        let path = self.directory.join("custom.cfg");
        let others = without_ours(&read_if_there(&path)?);
        let text = format!(
            "{others}{BEGIN}\nmenuentry '{NAME}' --unrestricted --id {NAME} {{\n{}}}\n{END}\n",
            self.entry
        );
        replace(&path, &text)?;
        let set = format!("next_entry={NAME}");
        environment(&self.directory, &["set", &set])
    }
}

fn directory(root: &Path) -> Option<PathBuf> {
    let mut all = DIRECTORIES.iter().map(|path| root.join(path));
    all.find(|path| path.join("grub.cfg").is_file())
}

fn environment(directory: &Path, words: &[&str]) -> Result<(), String> {
    let program = installed(&["grub-editenv", "grub2-editenv"]);
    let program = program.ok_or("grub-editenv is not installed (Debian: grub2-common)")?;
    let file = directory.join("grubenv").display().to_string();
    run(&program, &[&[file.as_str()], words].concat()).map(drop)
}

fn is_written_by_grub(directory: &Path) -> Result<(), String> {
    let program = installed(&["grub-probe", "grub2-probe"]);
    let program = program.ok_or("grub-probe is not installed (Debian: grub-common)")?;
    let directory = directory.display().to_string();
    let found = |what: &str| run(&program, &[&format!("--target={what}"), &directory]);
    let (below, system) = (found("abstraction")?, found("fs")?);
    match (below.trim(), system.trim()) {
        ("", system) if !NOT_WRITTEN.contains(&system) => Ok(()),
        (below, system) => Err(format!(
            "/boot is on {below} {system}, which GRUB does not write: it could not forget the one boot"
        )),
    }
}

/// The lines of the first entry that boots the kernel, with our arguments.
fn entry(text: &str, release: &str) -> Option<String> {
    let image = format!("/vmlinuz-{release}");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("menuentry ") {
            continue;
        }
        let body: Vec<&str> = lines
            .by_ref()
            .take_while(|line| line.trim() != "}")
            .collect();
        let is_linux = |line: &&&str| {
            let mut words = line.split_whitespace();
            words.next().is_some_and(|word| LINUX.contains(&word))
                && words.next().is_some_and(|path| path.ends_with(&image))
        };
        let Some(linux) = body.iter().find(is_linux) else {
            continue;
        };
        if linux
            .split_whitespace()
            .any(|word| ["single", "recovery"].contains(&word))
        {
            continue;
        }
        let ours = |line: &&str| {
            let first = line.split_whitespace().next().unwrap_or_default();
            let line = if line == linux {
                with_ours(line)
            } else {
                (*line).to_owned()
            };
            // GRUB would wait in its menu for somebody: a restart boots the machine's own kernel.
            match LOADING.contains(&first) {
                true => format!("if {}; then true; else reboot; fi\n", line.trim()),
                false => format!("{line}\n"),
            }
        };
        return Some(body.iter().map(ours).collect());
    }
    None
}

/// The file of a person's own entries without the one of ours.
fn without_ours(text: &str) -> String {
    let mut inside = false;
    let is_theirs = |line: &&str| {
        let ours = inside || *line == BEGIN;
        inside = ours && *line != END;
        !ours
    };
    text.lines()
        .filter(is_theirs)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Removes the entry, and the wish for it.
pub(crate) fn clear(root: &Path) -> Result<(), String> {
    let Some(directory) = directory(root) else {
        return Ok(());
    };
    let path = directory.join("custom.cfg");
    let text = read_if_there(&path)?;
    if !text.contains(BEGIN) {
        return Ok(());
    }
    environment(&directory, &["unset", "next_entry"])?;
    match without_ours(&text) {
        others if others.is_empty() => {
            std::fs::remove_file(&path).map_err(|e| format!("remove {}: {e}", path.display()))
        }
        others => replace(&path, &others),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ARGUMENTS;

    /// As 10_linux of Debian 12 writes it, shortened.
    const CONFIGURATION: &str = "\
if [ \"${next_entry}\" ] ; then
   set default=\"${next_entry}\"
   set next_entry=
   save_env next_entry
fi
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-ab' {
\tload_video
\tlinux\t/boot/vmlinuz-6.12.9-amd64 root=UUID=ab ro  quiet
\tinitrd\t/boot/initrd.img-6.12.9-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-ab' {
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-50-amd64 (recovery mode)' --class debian {
\t\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=ab ro single
\t}
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-50-amd64' --class debian {
\t\tif [ x$feature_platform_search_hint = xy ]; then
\t\t  search --no-floppy --fs-uuid --set=root ab
\t\tfi
\t\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=ab ro
\t\tinitrd\t/boot/initrd.img-6.1.0-50-amd64
\t}
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
";

    #[test]
    fn the_entry_of_a_kernel_is_taken_whole_with_our_arguments() {
        let entry = entry(CONFIGURATION, "6.1.0-50-amd64").unwrap();
        let lines: Vec<&str> = entry.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 5, "{entry}");
        assert_eq!(
            lines[3],
            format!(
                "if linux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=ab ro {ARGUMENTS}; then true; else \
                 reboot; fi"
            )
        );
        assert!(lines[4].starts_with("if initrd\t/boot/initrd.img-6.1.0-50-amd64; then"));
        assert_eq!(super::entry(CONFIGURATION, "6.1.0-5-amd64"), None);
        assert_eq!(super::entry(CONFIGURATION, "1.0-50-amd64"), None);
    }

    #[test]
    fn entries_of_a_person_stay_as_they_are() {
        let own = "menuentry 'mine' {\n\techo hi\n}\n";
        let both = format!("{own}{BEGIN}\nmenuentry 'x' {{\n}}\n{END}\n");
        assert_eq!(without_ours(&both), own);
        assert_eq!(without_ours(own), own);
    }
}
