//! Xen for a guest: its image and its toolstack, from Debian's packages or from a directory
//! that is laid out as those are. Nothing is installed on the host.

use crate::VmError;
use crate::architecture::X86_64;
use crate::cache;
use crate::failure::{io, unmet_error};
use crate::kernel::apt::{Package, Suite};
use crate::kernel::{self, Kernel};
use crate::{name, unpack};
use doors::written;
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::fs::{self};
use std::path::{Path, PathBuf};

/// Depends on the hypervisor and the toolstack that belong together.
const METAPACKAGE: &str = "xen-system-amd64";
/// Reads the keys of the store; the toolstack does without.
const STORE_TOOLS: &str = "xenstore-utils";
/// Below the cache.
const DIRECTORY: &str = "xen";
/// Xen 4.17 has 3 MiB.
const LARGEST: u64 = 64 << 20;

/// First bytes of what a multiboot loader takes.
const ELF: &[u8] = b"\x7fELF";

/// A hypervisor that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hypervisor {
    /// The image, unpacked: QEMU loads it as a multiboot kernel.
    pub image: PathBuf,
    /// Directory of the toolstack, a root of its own.
    pub tools: PathBuf,
    /// Package and version, or path.
    pub origin: String,
}

/// Find the hypervisor, and fetch it when it is not in the cache.
pub(crate) fn resolve(name: &str, cache: &Path) -> Result<Hypervisor, VmError> {
    match name.strip_prefix("debian:") {
        Some(suite) => {
            let dir = from_suite(name, suite, cache)?;
            let origin = kernel::dir_name(&dir);
            laid_out(name, &dir, origin, cache)
        }
        None => {
            let dir = fs::canonicalize(name).map_err(|e| {
                let what = format!("there is no such directory: {e}");
                absent(name, &what)
            })?;
            let origin = dir.display().to_string();
            laid_out(name, &dir, origin, cache)
        }
    }
}

fn absent(name: &str, what: &str) -> VmError {
    unmet_error(
        &format!("xen {name}"),
        what,
        "write xen = \"debian:bookworm\", or a directory with boot/xen-VERSION.gz and \
         usr/lib/xen-VERSION/bin as Debian's packages have them",
    )
}

fn from_suite(name: &str, suite: &str, cache: &Path) -> Result<PathBuf, VmError> {
    let suite = Suite::new(cache, suite, &X86_64)?;
    suite.refresh()?;
    let kept = cache.join(DIRECTORY);
    if let Some(dir) = suite.find_remembered(DIRECTORY, &kept) {
        return Ok(dir);
    }
    let packages = packages(name, &suite)?;
    let [hypervisor, ..] = &packages[..] else {
        return Err(absent(name, "the suite has no Xen"));
    };
    let directory = format!("{}_{}", hypervisor.name, hypervisor.version);
    let dir = kept.join(&directory);
    if !dir.exists() {
        kernel::fetch(&suite, &packages, &dir)?;
    }
    suite.remember(DIRECTORY, &directory);
    Ok(dir)
}

/// The hypervisor first, then its toolstack with all libraries.
fn packages(name: &str, suite: &Suite) -> Result<Vec<Package>, VmError> {
    let system = suite.show_package(METAPACKAGE)?;
    let system = system.ok_or_else(|| absent(name, &format!("the suite has no {METAPACKAGE}")))?;
    let versioned = |prefix: &str| {
        let is_it = |name: &&String| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        system.depends.iter().find(is_it).cloned()
    };
    let mut roots = Vec::new();
    for wanted in [
        versioned("xen-hypervisor-"),
        versioned("xen-utils-"),
        Some(STORE_TOOLS.to_owned()),
    ] {
        let package = wanted
            .map(|package| suite.show_package(&package))
            .transpose()?;
        let what = format!("the packages of {METAPACKAGE} are not in the suite");
        roots.push(package.flatten().ok_or_else(|| absent(name, &what))?);
    }
    suite.with_libraries(roots)
}

fn laid_out(name: &str, dir: &Path, origin: String, cache: &Path) -> Result<Hypervisor, VmError> {
    let is_image = |file: &str| file.starts_with("xen-") && file.ends_with(".gz");
    let packed = first_in(&dir.join("boot"), is_image)
        .ok_or_else(|| absent(name, "it has no boot/xen-VERSION.gz"))?;
    if toolstack(dir).is_none() {
        return Err(absent(name, "it has no usr/lib/xen-VERSION/bin/xl"));
    }
    Ok(Hypervisor {
        image: unpacked(name, &packed, cache)?,
        tools: dir.to_owned(),
        origin,
    })
}

/// The directory of programs in an unpacked toolstack.
pub(crate) fn toolstack(dir: &Path) -> Option<PathBuf> {
    let versions = first_in(&dir.join("usr/lib"), |file| file.starts_with("xen-"));
    let programs = versions?.join("bin");
    programs.join("xl").is_file().then_some(programs)
}

/// The first by name of the files in a directory.
pub(crate) fn first_in(dir: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?.flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(|path| is_it(&kernel::dir_name(path))).min()
}

/// QEMU unpacks no image.
fn unpacked(name: &str, packed: &Path, cache: &Path) -> Result<PathBuf, VmError> {
    let bytes = doors::read::large_file_bytes(packed).map_err(io("read", packed))?;
    let hash = write_hexadecimal(&Sha256::digest(&bytes)[..8]);
    let stem = name::file_name_part(&kernel::dir_name(packed));
    let dir = cache.join(DIRECTORY).join("images");
    let image = dir.join(format!("{stem}-{hash}.elf"));
    if cache::is_for_all(&image) {
        return Ok(image);
    }
    let file = doors::read::open_file(packed).map_err(io("read", packed))?;
    let whole = unpack::output_of("gzip", file.into(), LARGEST);
    let whole = whole.map_err(io("unpack", packed))?;
    match whole {
        (bytes, status) if status.success() && bytes.starts_with(ELF) => {
            written::make_directory(&dir).map_err(io("create", &dir))?;
            cache::write_whole(&image, &bytes)?;
            Ok(image)
        }
        _ => Err(absent(
            name,
            &format!("{} is no packed image", packed.display()),
        )),
    }
}

/// A kernel without Xen's parts dies before its first line.
pub(crate) fn check_dom0(kernel: &Kernel) -> Result<(), VmError> {
    const NEEDED: [&str; 2] = ["XEN_DOM0", "XEN_PV"];
    if kernel.config_file.is_none() {
        return Ok(());
    }
    let lacking = NEEDED.iter().find(|option| !kernel.config.built_in(option));
    lacking.map_or(Ok(()), |option| {
        Err(unmet_error(
            &format!("kernel {}", kernel.name),
            &format!(
                "{} has no CONFIG_{option}, so it cannot be dom0",
                kernel.release
            ),
            "take one of Debian's, such as debian:bookworm",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_directory_as_the_packages_have_it_is_a_hypervisor() {
        let dir = tempfile::tempdir().unwrap();
        let cache = tempfile::tempdir().unwrap();
        let name = dir.path().display().to_string();
        let found = || resolve(&name, cache.path());
        let error = found().unwrap_err().to_string();
        assert!(error.contains("no boot/xen-VERSION.gz"), "{error}");
        fs::create_dir(dir.path().join("boot")).unwrap();
        let plain = dir.path().join("boot/xen-4.17-amd64");
        fs::write(&plain, b"\x7fELF and more").unwrap();
        Command::new("gzip").arg(&plain).status().unwrap();
        let error = found().unwrap_err().to_string();
        assert!(error.contains("bin/xl"), "{error}");
        let programs = dir.path().join("usr/lib/xen-4.17/bin");
        fs::create_dir_all(&programs).unwrap();
        fs::write(programs.join("xl"), b"").unwrap();
        let xen = found().unwrap();
        assert_eq!(fs::read(&xen.image).unwrap(), b"\x7fELF and more");
        assert_eq!(found().unwrap(), xen);
    }

    #[test]
    fn what_is_no_hypervisor_is_refused_with_a_remedy() {
        let nowhere = Path::new("/nowhere");
        let error = resolve("/no/such/xen", nowhere).unwrap_err().to_string();
        assert!(error.contains("xen = \"debian:bookworm\""), "{error}");
    }
}
