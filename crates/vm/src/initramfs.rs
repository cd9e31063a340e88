//! The first file system of a guest: this program as `/init`, the modules that it
//! loads, and the kernel's configuration, in the cpio "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst). Cached by what
//! goes in.

use super::architecture::Architecture;
use super::cache;
use super::elf;
use super::failure::{io, unmet_error};
use super::init::CONFIG;
use super::kernel::Kernel;
use super::modules::{self, Group};
use super::name;
use crate::VmError;
use cpio::NewcBuilder;
use cpio::newc::trailer;
use doors::written;
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub(crate) const DIRECTORY: u32 = 0o040_755;
pub(crate) const PROGRAM: u32 = 0o100_755;
pub(crate) const FILE: u32 = 0o100_644;
/// Mount points of init.
const DIRECTORIES: [&str; 8] = [
    "dev", "proc", "sys", "modules", "host", "image", "upper", "root",
];

/// The initramfs of `kernel` with `program` as init: from the cache, or built now.
pub fn prepare(kernel: &Kernel, program: &Path, cache: &Path) -> Result<PathBuf, VmError> {
    let init = read_program(program, kernel.architecture)?;
    let config = match &kernel.config_file {
        Some(path) => doors::read::small_file_bytes(path).map_err(io("read", path))?,
        None => Vec::new(),
    };
    let dir = cache.join("initramfs");
    written::make_directory(&dir).map_err(io("create", &dir))?;
    // The kernel by where it comes from and when it was built, the rest by content.
    let path = dir.join(format!(
        "{}-{}.cpio",
        kernel.key(),
        fingerprint(&init, &config)
    ));
    if cache::is_for_all(&path) {
        // It was needed now. One that another user has made stays as old as it is.
        let file = fs::File::open(&path);
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    } else {
        let modules = modules::boot_modules(kernel)?;
        remove_older(&dir, &name::file_name_part(&kernel.release));
        cache::write_whole(
            &path,
            &archive(&init, &config, &modules).map_err(io("build", &path))?,
        )?;
    }
    Ok(path)
}

fn read_program(program: &Path, of: &Architecture) -> Result<Vec<u8>, VmError> {
    let bytes = doors::read::large_file_bytes(program).map_err(io("read", program))?;
    let fits = elf::machine(&bytes) == Some(of.machine);
    let program_for_it = fits.then(|| elf::without_debug(&bytes)).flatten();
    program_for_it.ok_or_else(|| {
        unmet_error(
            &program.display().to_string(),
            &format!(
                "it is not a program for {}, so it cannot be the guest's init",
                of.name
            ),
            "use a static build of schedlab for it",
        )
    })
}

fn fingerprint(init: &[u8], config: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [init, config] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    write_hexadecimal(&hash.finalize()[..8])
}

/// A new build of this program makes the older files useless; they are large. Files of kernels that
/// have the same release, as builds of one tree have it, may all be needed by one run.
fn remove_older(dir: &Path, release: &str) {
    const KEPT: usize = 3;
    const USELESS: Duration = Duration::from_secs(24 * 3600);
    let mut older: Vec<_> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(&format!("{release}-"))
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    older.sort();
    let excess = older.len().saturating_sub(KEPT);
    let is_useless = |used: &SystemTime| used.elapsed().is_ok_and(|time| time > USELESS);
    let excess = older.into_iter().take(excess);
    for (_, path) in excess.filter(|(used, _)| is_useless(used)) {
        // A guest that boots from it right now has it open already.
        let _ = written::remove_file(&path);
    }
}

fn archive(init: &[u8], config: &[u8], modules: &[Group]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for directory in DIRECTORIES {
        add_entry(&mut out, directory, DIRECTORY, b"")?;
    }
    add_entry(&mut out, "init", PROGRAM, init)?;
    add_entry(&mut out, CONFIG, FILE, config)?;
    for group in modules {
        let names: String = group
            .modules
            .iter()
            .map(|m| format!("{}\n", m.name))
            .collect();
        add_entry(
            &mut out,
            &format!("modules/{}", group.name),
            FILE,
            names.as_bytes(),
        )?;
        for module in &group.modules {
            add_entry(
                &mut out,
                &format!("modules/{}.ko", module.name),
                FILE,
                &module.bytes,
            )?;
        }
    }
    trailer(&mut out)?;
    Ok(out)
}

pub(crate) fn add_entry(
    out: &mut Vec<u8>,
    name: &str,
    mode: u32,
    bytes: &[u8],
) -> std::io::Result<()> {
    let size = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    let mut writer = NewcBuilder::new(name).mode(mode).nlink(1).write(out, size);
    writer.write_all(bytes)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::Module;

    fn module(name: &str) -> Module {
        Module {
            name: name.to_owned(),
            bytes: name.as_bytes().to_vec(),
        }
    }

    #[test]
    fn only_files_that_nobody_needed_for_a_day_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let days = |count: u64| now - Duration::from_secs(count * 24 * 3600);
        for (name, used) in [
            ("6.12-a", days(3)),
            ("6.12-b", days(2)),
            ("6.12-c", now),
            ("6.12-d", now),
            ("6.12-e", now),
            ("6.12-f", now),
            ("6.1-a", days(9)),
        ] {
            let file = fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(used).unwrap();
        }
        remove_older(dir.path(), "6.12");
        let names = fs::read_dir(dir.path()).unwrap().flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["6.1-a", "6.12-c", "6.12-d", "6.12-e", "6.12-f"]);
    }

    #[test]
    fn the_archive_holds_init_the_modules_in_order_and_the_configuration() {
        let group = Group {
            name: "always",
            modules: vec![module("9pnet"), module("9p")],
        };
        let bytes = archive(b"program", b"CONFIG_X=y\n", &[group]).unwrap();
        let mut files = std::collections::BTreeMap::new();
        let mut rest = &bytes[..];
        loop {
            let mut reader = cpio::NewcReader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let name = reader.entry().name().to_owned();
            let mode = reader.entry().mode();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut content).unwrap();
            files.insert(name, (mode, content));
            rest = reader.finish().unwrap();
        }
        assert_eq!(files["init"], (PROGRAM, b"program".to_vec()));
        assert_eq!(files["modules/always"].1, b"9pnet\n9p\n");
        assert_eq!(files["modules/9p.ko"].1, b"9p");
        assert_eq!(files[CONFIG].1, b"CONFIG_X=y\n");
        assert_eq!(files["proc"].0, DIRECTORY);
    }
}
