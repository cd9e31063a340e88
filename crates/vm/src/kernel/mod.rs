//! Which kernel a guest boots, and what is known of it before it does.
//!
//! A kernel is named by `debian:SUITE`, `debian:PACKAGE`, the path of a bzImage or
//! of a built kernel tree, `file:` with packages of any distribution, or `host`. Everything that is fetched lies in the cache,
//! by version, and is whole or absent.

pub mod apt;
mod apt_config;
pub mod build;
pub(crate) mod config;
pub mod image;
pub mod list;
pub(crate) mod packages;
pub(crate) mod sources;
pub mod vmlinux;

use crate::VmError;
use crate::architecture::Architecture;
use crate::failure::{io, unmet_error};
use crate::name;
use apt::{Package, Suite};
use config::Config;
use doors::written::{self, Part};
use model::printable::write_hexadecimal;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Suites in which an exact package is looked for, newest first.
pub(crate) const SUITES: [&str; 4] = ["sid", "trixie", "bookworm-backports", "bookworm"];

/// A kernel that a guest can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Architecture of its image.
    pub(crate) architecture: &'static Architecture,
    /// Name in the experiment.
    pub(crate) name: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`, where the image says it.
    pub version: Option<String>,
    pub(crate) vmlinuz: PathBuf,
    /// Directory with `modules.order` and `kernel/`.
    pub(crate) modules_dir: Option<PathBuf>,
    pub(crate) config_file: Option<PathBuf>,
    /// Empty where there is no file.
    pub(crate) config: Config,
    /// Package and version, or path.
    pub(crate) origin: String,
}

impl Kernel {
    /// `None` where the configuration is not known.
    pub(crate) fn sched_ext(&self) -> Option<bool> {
        self.known("SCHED_CLASS_EXT")
    }

    /// `None` where the configuration is not known.
    pub(crate) fn btf(&self) -> Option<bool> {
        self.known("DEBUG_INFO_BTF")
    }

    /// Names what is made from this image in the cache.
    pub(crate) fn key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.vmlinuz.as_os_str().as_encoded_bytes());
        if let Ok(modified) = fs::metadata(&self.vmlinuz).and_then(|m| m.modified()) {
            hash.update(format!("{modified:?}"));
        }
        let hex = write_hexadecimal(&hash.finalize()[..4]);
        format!("{}-{hex}", name::file_name_part(&self.release))
    }

    fn known(&self, option: &str) -> Option<bool> {
        self.config_file
            .is_some()
            .then(|| self.config.built_in(option))
    }

    fn new(name: &str, vmlinuz: PathBuf, origin: String) -> Result<Self, VmError> {
        let (architecture, uts) = image::uts(&vmlinuz).map_err(|what| {
            unmet_error(
                &format!("kernel {}", vmlinuz.display()),
                &what,
                "name an x86-64 bzImage or an arm64 Image, such as arch/x86/boot/bzImage of a built tree",
            )
        })?;
        Ok(Kernel {
            architecture,
            name: name.to_owned(),
            release: uts.release,
            version: uts.version,
            vmlinuz,
            modules_dir: None,
            config_file: None,
            config: Config::default(),
            origin,
        })
    }

    /// Take the first of the candidates that exist.
    fn with(mut self, modules: &[PathBuf], configs: &[PathBuf]) -> Result<Self, VmError> {
        self.modules_dir = modules
            .iter()
            .find(|p| p.join("modules.order").exists())
            .cloned();
        if let Some(path) = configs.iter().find(|p| p.is_file()) {
            let text = doors::read::small_file_text(path).map_err(io("read", path))?;
            self.config = Config::parse(&text);
            self.config_file = Some(path.clone());
        }
        Ok(self)
    }
}

/// Meaning of a kernel's name, before anything is read.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    Suite(&'a str),
    Package(&'a str),
    Host,
    Packages(&'a str),
    Path(&'a Path),
}

fn source(name: &str) -> Source<'_> {
    if let Some(paths) = name.strip_prefix("file:") {
        return match paths.contains(',') || packages::is_package(paths) {
            true => Source::Packages(paths),
            false => Source::Path(Path::new(paths)),
        };
    }
    match name.strip_prefix("debian:") {
        Some(package) if package.starts_with("linux-") => Source::Package(package),
        Some(suite) => Source::Suite(suite),
        None if name == "host" => Source::Host,
        None => Source::Path(Path::new(name)),
    }
}

/// Find the kernel for a guest of this architecture, and fetch it when it is not in the cache.
pub(crate) fn resolve(
    name: &str,
    of: &'static Architecture,
    cache: &Path,
) -> Result<Kernel, VmError> {
    let kernel = match source(name) {
        Source::Suite(suite) => from_suite(name, suite, of, cache),
        Source::Package(package) => from_package(name, package, of, cache),
        Source::Host => from_host(name),
        Source::Packages(paths) => packages::resolve(name, paths, cache),
        Source::Path(path) if path.is_dir() => from_tree(name, path, of),
        Source::Path(path) => from_image(name, path),
    }?;
    if kernel.architecture == of {
        return Ok(kernel);
    }
    let is = kernel.architecture.name;
    Err(unmet_error(
        &format!("kernel {name}"),
        &format!("it is a kernel for {is}, and the guest is {}", of.name),
        &format!("name another kernel, or write architecture = \"{is}\""),
    ))
}

fn from_suite(
    name: &str,
    suite: &str,
    of: &'static Architecture,
    cache: &Path,
) -> Result<Kernel, VmError> {
    let suite = Suite::new(cache, suite, of)?;
    suite.refresh()?;
    if let Some(dir) = suite.found_kernel(&list::kernels_directory(cache)) {
        return unpacked(name, &dir);
    }
    let package = suite.show_package(of.kernel_package)?.ok_or_else(|| {
        unmet_error(
            &format!("kernel {name}"),
            &format!("the suite has no {}", of.kernel_package),
            "name another suite, such as debian:sid",
        )
    })?;
    let dir = from_archive(&suite, &package, cache)?;
    suite.remember_kernel(&dir_name(&dir));
    unpacked(name, &dir)
}

fn from_package(
    name: &str,
    package: &str,
    of: &'static Architecture,
    cache: &Path,
) -> Result<Kernel, VmError> {
    if !name::is_package(package) {
        return Err(unmet_error(
            &format!("kernel {name}"),
            "it names no Debian package",
            "see `schedlab kernel list` for what there is",
        ));
    }
    if let Some(kernel) = cached_package(name, package, cache)? {
        return Ok(kernel);
    }
    for suite in SUITES {
        let suite = Suite::new(cache, suite, of)?;
        suite.refresh()?;
        if let Some(found) = suite.show_package(package)? {
            return unpacked(name, &from_archive(&suite, &found, cache)?);
        }
    }
    Err(unmet_error(
        &format!("kernel {name}"),
        &format!("no such package in {}", SUITES.join(", ")),
        "see `schedlab kernel list` for what there is",
    ))
}

/// An exact package needs no list when it is in the cache.
fn cached_package(name: &str, package: &str, cache: &Path) -> Result<Option<Kernel>, VmError> {
    let prefix = format!("{package}_");
    let found = list::cached_directories(cache).into_iter().rfind(|dir| {
        dir.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(&prefix))
    });
    found.map(|dir| unpacked(name, &dir)).transpose()
}

/// Path of the kernel that `package` leads to, fetched when it was not there.
fn from_archive(suite: &Suite, package: &Package, cache: &Path) -> Result<PathBuf, VmError> {
    let packages = suite.kernel_packages(package)?;
    let image = packages
        .iter()
        .find(|p| {
            p.name.starts_with("linux-image-") && p.name != suite.architecture().kernel_package
        })
        .unwrap_or(package);
    let dir = list::kernels_directory(cache).join(format!("{}_{}", image.name, image.version));
    if !dir.exists() {
        fetch(suite, &packages, &dir)?;
    }
    Ok(dir)
}

/// Unpacked beside its place, then renamed.
pub(crate) fn fetch(suite: &Suite, packages: &[Package], dir: &Path) -> Result<(), VmError> {
    let parent = dir.parent().unwrap_or(dir);
    let part = Part::create_in(parent).map_err(io("create", parent))?;
    written::make_new_directory(&part.path()).map_err(io("create", &part.path()))?;
    tracing::info!("downloading {} of Debian {}", dir_name(dir), suite.name());
    suite.unpack(packages, &part.path())?;
    match part.put_at(dir) {
        // Another process was faster.
        Err(_) if dir.exists() => Ok(()),
        result => result.map_err(io("put in place", dir)),
    }
}

/// A kernel as its packages lay it out, before and after 7.0.
fn unpacked(name: &str, dir: &Path) -> Result<Kernel, VmError> {
    let lib = ["usr/lib/modules", "lib/modules"].map(|d| first_in(&dir.join(d), ""));
    let modules = lib.into_iter().flatten().next().unwrap_or_default();
    let vmlinuz = [
        Some(modules.join("vmlinuz")),
        first_in(&dir.join("boot"), "vmlinuz-"),
    ]
    .into_iter()
    .flatten()
    .find(|p| p.is_file())
    .ok_or_else(|| {
        unmet_error(
            &format!("kernel {name}"),
            &format!("{} has no vmlinuz", dir.display()),
            "remove that directory and try again, or name a linux-image package",
        )
    })?;
    let kernel = Kernel::new(name, vmlinuz, dir_name(dir))?;
    let configs = [
        modules.join("config"),
        dir.join("boot").join(format!("config-{}", kernel.release)),
    ];
    kernel.with(&[modules], &configs)
}

fn from_host(name: &str) -> Result<Kernel, VmError> {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let vmlinuz = [
        PathBuf::from(format!("/boot/vmlinuz-{release}")),
        PathBuf::from(format!("/lib/modules/{release}/vmlinuz")),
    ]
    .into_iter()
    .find(|p| doors::read::open_file(p).is_ok())
    .ok_or_else(|| {
        unmet_error(
            "kernel host",
            &format!("/boot/vmlinuz-{release} is not there or not readable"),
            "make it readable for you, or name another kernel, such as debian:sid",
        )
    })?;
    let origin = vmlinuz.display().to_string();
    Kernel::new(name, vmlinuz, origin)?.with(
        &[PathBuf::from(format!("/lib/modules/{release}"))],
        &[
            PathBuf::from(format!("/boot/config-{release}")),
            PathBuf::from(format!("/lib/modules/{release}/config")),
        ],
    )
}

/// A built tree: `modules.order` and the modules lie in the tree itself.
fn from_tree(name: &str, tree: &Path, of: &Architecture) -> Result<Kernel, VmError> {
    let tree = absolute(tree)?;
    let vmlinuz = tree.join(of.built_image);
    if !vmlinuz.exists() {
        return Err(unmet_error(
            &format!("kernel tree {}", tree.display()),
            &format!("{} is not there", of.built_image),
            "build it (`make bzImage`, `make Image`, or `schedlab kernel build`)",
        ));
    }
    let origin = tree.display().to_string();
    let config = tree.join(".config");
    Kernel::new(name, vmlinuz, origin)?.with(&[tree], &[config])
}

/// Modules and configuration are taken where they lie beside the image.
fn from_image(name: &str, path: &Path) -> Result<Kernel, VmError> {
    if !path.exists() {
        return Err(unmet_error(
            &format!("kernel {name}"),
            "no such file",
            "write debian:SUITE, the path of a bzImage or of a built tree, host, or of another \
             distribution file: with the packages of its kernel, such as \
             file:linux-image-….deb,linux-modules-….deb, file:kernel-core-….rpm or file:linux-….pkg.tar.zst",
        ));
    }
    let path = absolute(path)?;
    let dir = path.parent().unwrap_or(&path).to_owned();
    let kernel = Kernel::new(name, path.clone(), path.display().to_string())?;
    // The image says it of itself, and may say anything.
    let release = name::file_name_part(&kernel.release);
    let modules = [
        dir.join("modules"),
        dir.join("lib/modules").join(&release),
        dir.clone(),
        PathBuf::from(format!("/lib/modules/{release}")),
    ];
    let configs = [
        dir.join(format!("config-{release}")),
        dir.join("config"),
        dir.join(".config"),
        PathBuf::from(format!("/boot/config-{release}")),
    ];
    kernel.with(&modules, &configs)
}

fn absolute(path: &Path) -> Result<PathBuf, VmError> {
    fs::canonicalize(path).map_err(io("find", path))
}

fn first_in(dir: &Path, prefix: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| dir_name(p).starts_with(prefix))
        .collect();
    found.sort();
    found.into_iter().next()
}

pub(crate) fn dir_name(path: &Path) -> String {
    path.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::image::tests::bzimage;
    use super::*;
    use crate::architecture::{AARCH64, X86_64};

    fn write(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn names_are_told_apart() {
        assert_eq!(source("debian:sid"), Source::Suite("sid"));
        assert_eq!(
            source("debian:linux-image-6.1.0-50-amd64"),
            Source::Package("linux-image-6.1.0-50-amd64")
        );
        assert_eq!(source("host"), Source::Host);
        assert_eq!(source("./bzImage"), Source::Path(Path::new("./bzImage")));
        assert_eq!(source("file:bzImage"), Source::Path(Path::new("bzImage")));
        assert_eq!(source("file:a.rpm"), Source::Packages("a.rpm"));
    }

    #[test]
    fn an_unpacked_package_of_either_layout_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new/usr/lib/modules/7.2.13-amd64");
        write(&new.join("vmlinuz"), &bzimage("7.2.13-amd64"));
        write(&new.join("modules.order"), b"");
        write(
            &new.join("config"),
            b"CONFIG_SCHED_CLASS_EXT=y\nCONFIG_DEBUG_INFO_BTF=y\n",
        );
        let kernel = unpacked("debian:sid", &dir.path().join("new")).unwrap();
        assert_eq!(kernel.release, "7.2.13-amd64");
        assert_eq!((kernel.sched_ext(), kernel.btf()), (Some(true), Some(true)));
        assert_eq!(kernel.modules_dir, Some(new));

        let old = dir.path().join("old");
        write(
            &old.join("boot/vmlinuz-6.1.0-50-amd64"),
            &bzimage("6.1.0-50-amd64"),
        );
        write(&old.join("boot/config-6.1.0-50-amd64"), b"CONFIG_9P_FS=m\n");
        write(&old.join("lib/modules/6.1.0-50-amd64/modules.order"), b"");
        let kernel = unpacked("debian:bookworm", &old).unwrap();
        assert_eq!(kernel.release, "6.1.0-50-amd64");
        assert_eq!(kernel.sched_ext(), Some(false));
    }

    #[test]
    fn a_built_tree_brings_its_own_configuration() {
        let tree = tempfile::tempdir().unwrap();
        write(
            &tree.path().join("arch/x86/boot/bzImage"),
            &bzimage("7.3.0-rc1"),
        );
        write(&tree.path().join(".config"), b"CONFIG_SCHED_CLASS_EXT=y\n");
        let kernel = resolve(
            &tree.path().display().to_string(),
            &X86_64,
            Path::new("/nowhere"),
        )
        .unwrap();
        assert_eq!(kernel.release, "7.3.0-rc1");
        assert_eq!(kernel.sched_ext(), Some(true));
        assert_eq!(kernel.modules_dir, None);
    }

    #[test]
    fn an_image_alone_leaves_the_configuration_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bzImage");
        write(&path, &bzimage("9.9.9-none"));
        let kernel = resolve(&path.display().to_string(), &X86_64, Path::new("/nowhere")).unwrap();
        assert_eq!(kernel.sched_ext(), None);
    }

    #[test]
    fn an_image_that_calls_itself_a_path_stays_in_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bzImage");
        write(&path, &bzimage("../../x"));
        fs::create_dir(dir.path().join("config-..")).unwrap();
        write(&dir.path().join("x"), b"no configuration");
        let kernel = resolve(&path.display().to_string(), &X86_64, Path::new("/nowhere")).unwrap();
        assert!(!kernel.key().contains('/'), "{}", kernel.key());
        assert_eq!(kernel.config_file, None);
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinux");
        write(&path, b"\x7fELF");
        for (name, what) in [
            (path.display().to_string(), "ELF file"),
            (dir.path().display().to_string(), "bzImage is not there"),
            ("/no/such/file".to_owned(), "no such file"),
            ("debian:".to_owned(), "no suite of Debian"),
            ("debian:/x".to_owned(), "no suite of Debian"),
            ("debian:../x".to_owned(), "no suite of Debian"),
            ("debian:a/../../x".to_owned(), "no suite of Debian"),
            ("debian:linux-/../x".to_owned(), "no Debian package"),
        ] {
            let error = resolve(&name, &X86_64, Path::new("/nowhere"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_kernel_of_another_architecture_is_refused_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Image");
        write(&path, &super::image::tests::arm64_image("7.2.13-arm64"));
        let name = path.display().to_string();
        let of = |architecture| resolve(&name, architecture, Path::new("/nowhere"));
        assert_eq!(of(&AARCH64).unwrap().release, "7.2.13-arm64");
        let refused = of(&X86_64).unwrap_err().to_string();
        assert!(refused.contains("a kernel for aarch64"), "{refused}");
    }
}
