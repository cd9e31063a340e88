//! GRUB: an entry of its own in `custom.cfg`, and `next_entry` of its environment, which the
//! configuration that grub-mkconfig(8) writes takes for one boot and forgets before it
//! (grub-reboot(8), "Boot once").

use crate::program::{find_installed, run_program};
use crate::{NAME, image, read_if_there, remove_partials, replace, with_ours};
use std::path::{Path, PathBuf};

const DIRECTORIES: [&str; 2] = ["boot/grub", "boot/grub2"];
const BEGIN: &str = "# schedlab: one boot, begin";
const END: &str = "# schedlab: one boot, end";
/// Beginning of the line that keeps what the owner wanted to boot next.
const BEFORE: &str = "# schedlab: next_entry was ";
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
        let text =
            doors::read::small_file_text(&path).map_err(|e| format!("read {path:?}: {e}"))?;
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
        prepare_in(
            &self.directory,
            &self.entry,
            &Environment::of(&self.directory)?,
        )
    }
}

fn prepare_in(directory: &Path, entry: &str, environment: &Environment) -> Result<(), String> {
    let path = directory.join("custom.cfg");
    let Split { others, before } = split(&path)?;
    // What an earlier preparation kept is the owner's still.
    let before = environment.owners_entry()?.or(before);
    let kept = before.map_or_else(String::new, |entry| format!("{BEFORE}{entry}\n"));
    let text = format!(
        "{others}{BEGIN}\n{kept}menuentry '{NAME}' --unrestricted --id {NAME} {{\n{entry}}}\n{END}\n"
    );
    replace(&path, &text)?;
    environment.set(NAME)
}

fn directory(root: &Path) -> Option<PathBuf> {
    let mut all = DIRECTORIES.iter().map(|path| root.join(path));
    all.find(|path| path.join("grub.cfg").is_file())
}

/// The environment of GRUB, of which one variable is the entry of the next boot.
struct Environment {
    program: String,
    file: PathBuf,
}

impl Environment {
    fn of(directory: &Path) -> Result<Self, String> {
        let program = find_installed(&["grub-editenv", "grub2-editenv"]);
        let program = program.ok_or("grub-editenv is not installed (Debian: grub2-common)")?;
        let file = directory.join("grubenv");
        Ok(Environment { program, file })
    }

    fn edit(&self, words: &[&str]) -> Result<String, String> {
        let file = self.file.display().to_string();
        run_program(&self.program, &[&[file.as_str()], words].concat())
    }

    fn next_entry(&self) -> Result<Option<String>, String> {
        let list = self.edit(&["list"])?;
        let mut values = list
            .lines()
            .filter_map(|line| line.strip_prefix("next_entry="));
        Ok(values
            .next()
            .filter(|value| !value.is_empty())
            .map(str::to_owned))
    }

    /// The entry of the next boot where somebody else wanted it.
    fn owners_entry(&self) -> Result<Option<String>, String> {
        Ok(self.next_entry()?.filter(|entry| entry != NAME))
    }

    fn set(&self, entry: &str) -> Result<(), String> {
        self.edit(&["set", &format!("next_entry={entry}")])
            .map(drop)
    }

    /// Gives the owner's wish back. One that came since is left, and nothing is unset that is not
    /// ours.
    fn put_back(&self, before: Option<&str>) -> Result<(), String> {
        let now = self.next_entry()?;
        match (now.as_deref(), before) {
            (Some(NAME) | None, Some(before)) => self.set(before),
            (Some(NAME), None) => self.edit(&["unset", "next_entry"]).map(drop),
            _ => Ok(()),
        }
    }
}

fn is_written_by_grub(directory: &Path) -> Result<(), String> {
    let program = find_installed(&["grub-probe", "grub2-probe"]);
    let program = program.ok_or("grub-probe is not installed (Debian: grub-common)")?;
    let directory = directory.display().to_string();
    let found = |what: &str| run_program(&program, &[&format!("--target={what}"), &directory]);
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

/// The file of a person's own entries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Split {
    /// Without ours.
    others: String,
    /// Entry that the owner wanted to boot next, where ours keeps that.
    before: Option<String>,
}

fn split(path: &Path) -> Result<Split, String> {
    split_text(&read_if_there(path)?).map_err(|what| format!("{}: {what}", path.display()))
}

/// Takes out blocks that have both marks. Where one is missing nobody can say what is ours.
fn split_text(text: &str) -> Result<Split, String> {
    let mut split = Split::default();
    let mut inside = false;
    for line in text.lines() {
        match (line, inside) {
            (BEGIN, false) => inside = true,
            (END, true) => inside = false,
            (BEGIN, true) | (END, false) => return Err(half_a_block()),
            (line, true) => {
                let before = line.strip_prefix(BEFORE).map(str::to_owned);
                split.before = before.or(split.before);
            }
            (line, false) => split.others.extend([line, "\n"]),
        }
    }
    match inside {
        true => Err(half_a_block()),
        false => Ok(split),
    }
}

fn half_a_block() -> String {
    format!(
        "the marks of the entry {NAME} are not both there, so nothing was removed; remove the entry \
         and its marks (`{BEGIN}`, `{END}`) by hand"
    )
}

/// Removes the entry, and the wish for it.
pub(crate) fn remove_entry(root: &Path) -> Result<(), String> {
    let Some(directory) = directory(root) else {
        return Ok(());
    };
    remove_partials(&directory)?;
    let text = read_if_there(&directory.join("custom.cfg"))?;
    if ![BEGIN, END]
        .iter()
        .any(|mark| text.lines().any(|line| line == *mark))
    {
        return Ok(());
    }
    clear_in(&directory, Environment::of(&directory))
}

/// Does what can be done, and says what stays.
fn clear_in(directory: &Path, environment: Result<Environment, String>) -> Result<(), String> {
    let path = directory.join("custom.cfg");
    let (split, torn) = match split(&path) {
        Ok(split) => (Some(split), None),
        Err(what) => (None, Some(what)),
    };
    let before = split.as_ref().and_then(|split| split.before.as_deref());
    let put_back = environment.and_then(|environment| environment.put_back(before));
    // Without the entry, GRUB boots the machine's own kernel whatever its environment says.
    let removed = match &split {
        Some(Split { others, .. }) if others.is_empty() => doors::written::remove_file(&path)
            .map(drop)
            .map_err(|e| format!("the entry {NAME} stays: remove {}: {e}", path.display())),
        Some(Split { others, .. }) => {
            replace(&path, others).map_err(|what| format!("the entry {NAME} stays: {what}"))
        }
        None => Ok(()),
    };
    let before = before.map_or_else(String::new, |entry| format!(", where it was {entry}"));
    let put_back = put_back.map_err(|what| {
        let file = directory.join("grubenv");
        format!(
            "next_entry stays as it is in {}{before}: {what}",
            file.display()
        )
    });
    let failed = [torn, put_back.err(), removed.err()];
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(failed.join("; ")),
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

    const OWN: &str = "menuentry 'mine' {\n\techo hi\n}\n";

    /// A directory of GRUB, with a grub-editenv that fails while there is a file `broken`.
    struct Boot(tempfile::TempDir);

    impl Boot {
        fn new(custom: &str, environment: &str) -> Self {
            let boot = Boot(tempfile::tempdir().unwrap());
            boot.write("custom.cfg", custom);
            boot.write("grubenv", environment);
            let script = "#!/bin/sh\nset -e\nfile=$1\n[ ! -e \"${file%/*}/broken\" ]\n\
                case $2 in\n\
                list) cat \"$file\" ;;\n\
                set) sed -i /^next_entry=/d \"$file\"; echo \"$3\" >> \"$file\" ;;\n\
                unset) sed -i \"/^$3=/d\" \"$file\" ;;\nesac\n";
            ::tests::write_program(&boot.0.path().join("grub-editenv"), script);
            boot
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.path().join(name), text).unwrap();
        }

        fn read(&self, name: &str) -> String {
            std::fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
        }

        fn environment(&self) -> Environment {
            Environment {
                program: self.0.path().join("grub-editenv").display().to_string(),
                file: self.0.path().join("grubenv"),
            }
        }

        fn prepare(&self) -> Result<(), String> {
            prepare_in(self.0.path(), "\tlinux /vmlinuz\n", &self.environment())
        }

        fn clear(&self) -> Result<(), String> {
            clear_in(self.0.path(), Ok(self.environment()))
        }
    }

    #[test]
    fn entries_of_a_person_stay_as_they_are() {
        let boot = Boot::new(OWN, "timeout=3\n");
        for _ in 0..2 {
            boot.prepare().unwrap();
            assert!(boot.read("custom.cfg").starts_with(OWN));
            assert_eq!(boot.read("custom.cfg").matches(BEGIN).count(), 1);
            assert_eq!(
                boot.read("grubenv"),
                format!("timeout=3\nnext_entry={NAME}\n")
            );
        }
        boot.clear().unwrap();
        assert_eq!(boot.read("custom.cfg"), OWN);
        assert_eq!(boot.read("grubenv"), "timeout=3\n");
    }

    #[test]
    fn nothing_is_removed_where_a_mark_is_lost() {
        for mark in [BEGIN, END] {
            let boot = Boot::new(OWN, "");
            boot.prepare().unwrap();
            let torn = boot.read("custom.cfg").replace(&format!("{mark}\n"), "") + OWN;
            boot.write("custom.cfg", &torn);
            let said = boot.clear().unwrap_err();
            assert!(said.contains("by hand"), "{said}");
            assert_eq!(boot.read("custom.cfg"), torn);
            // The wish for it is gone all the same, and no second entry is written.
            assert_eq!(boot.read("grubenv"), "");
            assert!(boot.prepare().is_err());
            assert_eq!(boot.read("custom.cfg"), torn);
        }
    }

    #[test]
    fn the_next_entry_of_the_owner_is_there_again() {
        let boot = Boot::new("", "next_entry=Other systems>0\n");
        boot.prepare().unwrap();
        boot.prepare().unwrap();
        boot.clear().unwrap();
        assert_eq!(boot.read("grubenv"), "next_entry=Other systems>0\n");
        // GRUB forgets ours before it boots it.
        boot.prepare().unwrap();
        boot.write("grubenv", "");
        boot.clear().unwrap();
        assert_eq!(boot.read("grubenv"), "next_entry=Other systems>0\n");
        assert!(!boot.0.path().join("custom.cfg").exists());
    }

    #[test]
    fn what_a_kill_left_half_written_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let grub = root.path().join("boot/grub");
        std::fs::create_dir_all(&grub).unwrap();
        for (name, text) in [
            ("grub.cfg", ""),
            ("custom.cfg", OWN),
            (".schedlab-partial-x", ""),
        ] {
            std::fs::write(grub.join(name), text).unwrap();
        }
        super::remove_entry(root.path()).unwrap();
        let names = std::fs::read_dir(&grub).unwrap().flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["custom.cfg", "grub.cfg"]);
    }

    #[test]
    fn what_the_owner_wished_since_is_left() {
        let boot = Boot::new(OWN, "next_entry=first\n");
        boot.prepare().unwrap();
        boot.write("grubenv", "next_entry=second\n");
        boot.clear().unwrap();
        assert_eq!(boot.read("grubenv"), "next_entry=second\n");
        assert_eq!(boot.read("custom.cfg"), OWN);
    }

    #[test]
    fn a_clearing_that_fails_removes_the_entry_and_says_what_stays() {
        let boot = Boot::new(OWN, "next_entry=first\n");
        boot.prepare().unwrap();
        boot.write("broken", "");
        let said = boot.clear().unwrap_err();
        assert!(said.contains("next_entry stays as it is in"), "{said}");
        assert!(said.contains("where it was first"), "{said}");
        assert_eq!(boot.read("custom.cfg"), OWN);
    }
}
