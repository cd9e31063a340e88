//! The modules that a guest needs before it sees the host's files. They are found
//! through `modules.order` (or `modules.dep`) and each module's own `depends=`
//! (the `.modinfo` section), so that no depmod is needed, and are unpacked on the
//! host, so that the guest's kernel need not.

use super::elf;
use super::failure::{io, unmet_error};
use super::init;
use super::kernel::Kernel;
use super::unpack;
use crate::VmError;
use doors::read::{file_bytes, file_text, open_file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Loaded in this order where they are modules.
const ALWAYS: [(&str, &str); 5] = [
    ("virtio_pci", "VIRTIO_PCI"),
    ("virtio_console", "VIRTIO_CONSOLE"),
    ("9p", "9P_FS"),
    ("9pnet_virtio", "NET_9P_VIRTIO"),
    ("overlay", "OVERLAY_FS"),
];
/// The largest module of Debian's kernel, amdgpu, has 24 MB.
const LARGEST: u64 = 256 << 20;
/// Modules that show the host's files.
const FOR_HOST_ROOT: [&str; 2] = ["9p", "9pnet_virtio"];
/// Loaded when the root is a disk image.
const FOR_IMAGE: [&str; 4] = ["virtio_blk", "ext4", "squashfs", "erofs"];
/// Loaded when a port is forwarded.
const FOR_NETWORK: [&str; 1] = ["virtio_net"];
/// Loaded in dom0, for the toolstack.
const FOR_XEN: [&str; 5] = [
    "xen_privcmd",
    "xen_evtchn",
    "xen_gntdev",
    "xen_gntalloc",
    "xenfs",
];

/// One module, unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Modules that are loaded together, dependencies first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: &'static str,
    pub modules: Vec<Module>,
}

/// Modules that the guest may load before it sees the host's files.
pub(crate) fn boot_modules(kernel: &Kernel) -> Result<Vec<Group>, VmError> {
    let index = index_of(kernel)?;
    let always = index.load_known(&ALWAYS.map(|(name, _)| name), &[])?;
    let groups = [
        (init::FOR_IMAGE, index.load_known(&FOR_IMAGE, &always)?),
        (init::FOR_NETWORK, index.load_known(&FOR_NETWORK, &always)?),
        (init::FOR_XEN, index.load_known(&FOR_XEN, &always)?),
        (init::ALWAYS, always),
    ];
    Ok(groups.map(|(name, modules)| Group { name, modules }).into())
}

/// Check that everything a guest cannot do without is built in or beside the kernel.
pub(crate) fn check(kernel: &Kernel, host_root: bool) -> Result<(), VmError> {
    let index = index_of(kernel)?;
    let lacking = ALWAYS.iter().find(|(name, option)| {
        let there = index.paths.contains_key(*name) || kernel.config.built_in(option);
        !there && (host_root || !FOR_HOST_ROOT.contains(name))
    });
    match lacking {
        Some((name, option)) if kernel.config_file.is_some() => Err(missing(kernel, name, option)),
        // Without a configuration nothing is known; the boot will tell.
        _ => Ok(()),
    }
}

fn index_of(kernel: &Kernel) -> Result<Index, VmError> {
    match &kernel.modules_dir {
        Some(dir) => Index::read(dir),
        None => Ok(Index::default()),
    }
}

fn missing(kernel: &Kernel, name: &str, option: &str) -> VmError {
    let remedy = if kernel.config.available(option) {
        "its modules are not beside it: name the package or the built tree instead of the image"
    } else {
        "take a kernel of the full flavour (not cloud), or build one with guest/kernel.config"
    };
    unmet_error(
        &format!("kernel {}", kernel.name),
        &format!(
            "{} has no {name} (CONFIG_{option}), which the guest needs before it sees its root",
            kernel.release
        ),
        remedy,
    )
}

/// Work that is left while a module and all that it needs are loaded.
enum Step {
    Read(String),
    /// All that it depends on is loaded.
    Take(Module),
}

/// The most that is read of a list of modules, of which a distribution has thousands.
const MOST_OF_A_LIST: u64 = 64 << 20;

/// Module name to file.
#[derive(Debug, Default)]
struct Index {
    paths: BTreeMap<String, PathBuf>,
}

impl Index {
    fn read(dir: &Path) -> Result<Self, VmError> {
        let order = dir.join("modules.order");
        let text = match file_text(&order, MOST_OF_A_LIST) {
            Ok(text) => text,
            Err(_) => {
                file_text(dir.join("modules.dep"), MOST_OF_A_LIST).map_err(io("read", &order))?
            }
        };
        let wanted = parse_index(&text);
        let paths = wanted
            .into_iter()
            .filter_map(|(name, path)| Some((name, on_disk(dir, &path)?)))
            .collect();
        Ok(Index { paths })
    }

    /// Those that there are, without what is loaded before them anyway.
    fn load_known(&self, names: &[&str], before: &[Module]) -> Result<Vec<Module>, VmError> {
        let mut loaded = before.to_vec();
        for name in names {
            self.load(name, &mut loaded)?;
        }
        Ok(loaded.split_off(before.len()))
    }

    /// Dependencies first. Modules may name each other, in a file that is a stranger's.
    fn load(&self, name: &str, loaded: &mut Vec<Module>) -> Result<(), VmError> {
        let mut begun: BTreeSet<String> = loaded.iter().map(|m| m.name.clone()).collect();
        let mut steps = vec![Step::Read(name.to_owned())];
        while let Some(step) = steps.pop() {
            let name = match step {
                Step::Read(name) => name,
                Step::Take(module) => {
                    loaded.push(module);
                    continue;
                }
            };
            // What is not in the index is built in.
            let Some(path) = self.paths.get(&name).filter(|_| !begun.contains(&name)) else {
                continue;
            };
            begun.insert(name.clone());
            let bytes = read(path)?;
            let depends = elf::module_depends(&bytes);
            steps.push(Step::Take(Module { name, bytes }));
            steps.extend(depends.into_iter().rev().map(Step::Read));
        }
        Ok(())
    }
}

/// Lines of `modules.order` (`kernel/fs/9p/9p.ko`, in a tree `fs/9p/9p.o`) or of
/// `modules.dep` (`kernel/fs/9p/9p.ko.xz: …`), for the modules a guest may load.
pub fn parse_index(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(|line| line.split(':').next().unwrap_or(line).trim())
        .filter_map(|path| {
            let file = path.rsplit('/').next()?;
            let name = file.split('.').next()?.replace('-', "_");
            (!name.is_empty()).then(|| (name, path.to_owned()))
        })
        .collect()
}

fn on_disk(dir: &Path, path: &str) -> Option<PathBuf> {
    let stem = path
        .split_once(".ko")
        .map_or_else(|| path.trim_end_matches(".o"), |(stem, _)| stem);
    ["ko", "ko.xz", "ko.zst", "ko.gz"]
        .iter()
        .map(|extension| dir.join(format!("{stem}.{extension}")))
        .find(|path| path.exists())
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    let (program, package) = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => return file_bytes(path, LARGEST).map_err(io("read", path)),
    };
    let packed = open_file(path).map_err(io("read", path))?;
    let unpacked = unpack::output_of(program, packed.into(), LARGEST);
    let whole = unpacked.and_then(|(bytes, status)| match status.success() {
        true => Ok(bytes),
        false => Err(std::io::Error::other(format!(
            "{program} ended with {status}"
        ))),
    });
    whole.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => unmet_error(
            program,
            "it is not installed, and the kernel's modules are packed with it",
            &format!("install the package {package}"),
        ),
        _ => unmet_error(
            &path.display().to_string(),
            &format!("it cannot be unpacked: {e}"),
            "remove the kernel from the cache, so that it is fetched again",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(text: &str) -> Vec<String> {
        parse_index(text)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn modules_order_and_modules_dep_name_the_same_modules() {
        assert_eq!(
            names("kernel/fs/9p/9p.ko\nkernel/drivers/char/hw_random/virtio-rng.ko\n"),
            ["9p", "virtio_rng"]
        );
        assert_eq!(names("fs/9p/9p.o\n"), ["9p"]);
        assert_eq!(
            names("kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz\n"),
            ["9p"]
        );
    }

    #[test]
    fn a_module_is_found_packed_or_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.ko.zst"), b"").unwrap();
        fs::write(dir.path().join("b.ko"), b"").unwrap();
        assert_eq!(
            on_disk(dir.path(), "a.ko"),
            Some(dir.path().join("a.ko.zst"))
        );
        assert_eq!(on_disk(dir.path(), "b.o"), Some(dir.path().join("b.ko")));
        assert_eq!(on_disk(dir.path(), "c.ko"), None);
    }

    #[test]
    fn dependencies_are_loaded_first_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let order = "9p.ko\n9pnet.ko\nnetfs.ko\n9pnet_virtio.ko\noverlay.ko\n";
        fs::write(dir.path().join("modules.order"), order).unwrap();
        for (name, depends) in [
            ("9p", "9pnet,netfs"),
            ("9pnet", ""),
            ("netfs", ""),
            ("9pnet_virtio", "9pnet"),
            ("overlay", ""),
        ] {
            let module = elf::tests::module(depends);
            fs::write(dir.path().join(format!("{name}.ko")), module).unwrap();
        }
        let kernel = Kernel {
            modules_dir: Some(dir.path().to_owned()),
            ..nameless()
        };
        let groups = boot_modules(&kernel).unwrap();
        let always = groups.iter().find(|g| g.name == init::ALWAYS).unwrap();
        let names: Vec<&str> = always.modules.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["9pnet", "netfs", "9p", "9pnet_virtio", "overlay"]);
    }

    #[test]
    fn modules_that_need_each_other_and_long_chains_come_to_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, depends: &str| {
            let module = elf::tests::module(depends);
            fs::write(dir.path().join(format!("{name}.ko")), module).unwrap();
        };
        write("9p", "netfs");
        write("netfs", "9p,m0");
        const LENGTH: usize = 20_000;
        let mut order = "9p.ko\nnetfs.ko\n".to_owned();
        for i in 0..LENGTH {
            write(&format!("m{i}"), &format!("m{}", i + 1));
            order += &format!("m{i}.ko\n");
        }
        fs::write(dir.path().join("modules.order"), order).unwrap();
        let index = Index::read(dir.path()).unwrap();
        let loaded = index.load_known(&["9p"], &[]).unwrap();
        assert_eq!(loaded.len(), LENGTH + 2);
        assert_eq!(loaded.last().unwrap().name, "9p");
    }

    #[test]
    fn a_kernel_without_9p_is_refused_with_a_remedy() {
        let kernel = Kernel {
            config_file: Some("config".into()),
            config: crate::kernel::config::Config::parse(
                "CONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_CONSOLE=y\n",
            ),
            ..nameless()
        };
        assert!(
            check(&kernel, false)
                .unwrap_err()
                .to_string()
                .contains("no overlay")
        );
        let error = check(&kernel, true).unwrap_err().to_string();
        assert!(
            error.contains("no 9p") && error.contains("full flavour"),
            "{error}"
        );
    }

    fn nameless() -> Kernel {
        Kernel {
            architecture: &crate::architecture::X86_64,
            name: "test".to_owned(),
            release: "1.2.3".to_owned(),
            version: None,
            vmlinuz: PathBuf::new(),
            modules_dir: None,
            config_file: None,
            config: Default::default(),
            origin: String::new(),
        }
    }
}
