//! Kernels from Debian's archive through apt with a state of its own below the
//! cache: no root, signatures checked, the host's own apt untouched and its
//! configuration not in force (apt.conf(5): `Dir::Etc::sourcelist`, `Dir::State::Lists`,
//! `Dir::Cache`, and `apt_config`).

use super::{apt_config, sources};
use crate::VmError;
use crate::architecture::{Architecture, X86_64};
use crate::cache;
use crate::failure::{io, unmet_error};
use crate::name;
use doors::started::tool_command;
use doors::written::{self, Part};
use model::printable::last_lines;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// In the directory of a suite, before apt is run there.
const CONFIG: &str = "apt.conf";
const LISTS_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// A package as the suite's lists describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Version of Debian; empty where the text gives none.
    pub version: String,
    /// Names of the packages that it depends on, the first of each group of alternatives.
    pub depends: Vec<String>,
    /// First line of the description.
    pub summary: String,
}

/// One suite with its own lists.
#[derive(Debug)]
pub(crate) struct Suite {
    architecture: &'static Architecture,
    name: String,
    dir: PathBuf,
}

impl Suite {
    /// Nothing is fetched yet.
    pub fn new(
        cache: &Path,
        name: &str,
        architecture: &'static Architecture,
    ) -> Result<Self, VmError> {
        if !name::is_suite(name) {
            return Err(unmet_error(
                &format!("kernel debian:{name}"),
                &format!("{name:?} is no suite of Debian"),
                "write debian:sid, debian:trixie or debian:linux-image-…",
            ));
        }
        let mut dir = cache.join("apt");
        // No suite has the name of an architecture.
        if *architecture != X86_64 {
            dir.push(architecture.debian);
        }
        Ok(Suite {
            architecture,
            name: name.to_owned(),
            dir: dir.join(name.replace('/', "_")),
        })
    }

    pub fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_fetched(&self) -> bool {
        self.stamp().exists() && self.dir.join(CONFIG).exists()
    }

    /// Lists that are a day old are fetched again; old ones serve when there is
    /// no network.
    pub fn refresh(&self) -> Result<(), VmError> {
        if self.is_fetched() && age(&self.stamp()).is_some_and(|age| age < LISTS_MAX_AGE) {
            return Ok(());
        }
        match self.update() {
            Err(e) if self.is_fetched() => {
                tracing::warn!("the package lists of {} are old: {e}", self.name);
                Ok(())
            }
            result => result,
        }
    }

    /// Fetch the lists now.
    pub fn update(&self) -> Result<(), VmError> {
        self.prepare()?;
        let _lock = lock(&self.dir.join("lock"))?;
        tracing::info!("fetching the package lists of Debian {}", self.name);
        let mut output = self.apt_update(&[])?;
        if is_expired(&output) && apt_config::host_accepts_old_lists() {
            output = self.apt_update(&["-o", "Acquire::Check-Valid-Until=false"])?;
            tracing::warn!(
                "the mirror's lists of Debian {} are past their end; they are taken because this \
                 host's apt is told not to mind (Acquire::Check-Valid-Until)",
                self.name
            );
        }
        if !output.status.success() {
            return Err(unmet_error(
                &format!("Debian suite {}", self.name),
                &format!(
                    "its package lists cannot be fetched: {}",
                    last_words(&output)
                ),
                "check the suite's name and the network, or name a kernel image by its path",
            ));
        }
        let stamp = self.stamp();
        written::write_file(&stamp, "").map_err(io("write", &stamp))?;
        Ok(())
    }

    /// Without Error-Mode a suite that is missing or unreachable is a mere warning.
    fn apt_update(&self, more: &[&str]) -> Result<Output, VmError> {
        let mut command = self.apt("apt-get");
        command.args(["-q", "-o", "APT::Update::Error-Mode=any"]);
        command.args(more).arg("update");
        run(command)
    }

    /// The directory below `kernels` that these lists led to last time: asking apt
    /// takes longer than a guest's boot.
    pub fn found_kernel(&self, kernels: &Path) -> Option<PathBuf> {
        self.find_remembered("kernel", kernels)
    }

    /// The directory below `kept` that these lists led to, when this was asked last time.
    pub fn find_remembered(&self, what: &str, kept: &Path) -> Option<PathBuf> {
        let answer = self.dir.join(what);
        if age(&answer)? > age(&self.stamp())? {
            return None; // of older lists
        }
        let name = doors::read::small_file_text(answer).ok()?;
        let (package, version) = name.split_once('_')?;
        (name::is_package(package) && name::is_version(version))
            .then(|| kept.join(&name))
            .filter(|dir| dir.is_dir())
    }

    /// Without it the next one asks apt again.
    pub fn remember_kernel(&self, name: &str) {
        self.remember("kernel", name);
    }

    /// Keeps the name of the directory that these lists led to.
    pub fn remember(&self, what: &str, name: &str) {
        let answer = self.dir.join(what);
        if let Err(e) = written::write_file(&answer, name) {
            tracing::debug!("{} cannot be written: {e}", answer.display());
        }
    }

    pub fn show_package(&self, package: &str) -> Result<Option<Package>, VmError> {
        let mut command = self.apt("apt-cache");
        command.args(["show", "--no-all-versions", package]);
        let output = run(command)?;
        Ok(parse_stanza(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Those of these packages that the suite has.
    fn show_all(&self, packages: &[String]) -> Result<Vec<Package>, VmError> {
        let mut command = self.apt("apt-cache");
        command.args(["show", "--no-all-versions"]).args(packages);
        let output = run(command)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.split("\n\n").filter_map(parse_stanza).collect())
    }

    /// The packages with all libraries that they need. Everything else that they depend on is
    /// left out: scripts, and what configures a system.
    pub fn with_libraries(&self, mut found: Vec<Package>) -> Result<Vec<Package>, VmError> {
        let mut seen: BTreeSet<String> = found.iter().map(|p| p.name.clone()).collect();
        let mut next = found.clone();
        while !next.is_empty() {
            let depends = next.iter().flat_map(|p| p.depends.iter().cloned());
            let new: BTreeSet<String> = depends.filter(|name| is_library(name)).collect();
            let new: Vec<String> = new.difference(&seen).cloned().collect();
            next = match new.is_empty() {
                true => Vec::new(),
                false => self.show_all(&new)?,
            };
            seen.extend(new);
            found.extend(next.iter().cloned());
        }
        Ok(found)
    }

    /// All kernel packages of the suite, as `apt-cache search` prints them.
    pub fn kernels(&self) -> Result<Vec<Package>, VmError> {
        let mut command = self.apt("apt-cache");
        let all = format!("^linux-image-[0-9].*{}$", self.architecture.debian);
        command.args(["search", "--names-only", &all]);
        let output = run(command)?;
        Ok(parse_search(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The packages of the kernel that `root` stands for, itself included: a
    /// metapackage leads to the image, the image (since 7.0) to binary, modules
    /// and base.
    pub fn kernel_packages(&self, root: &Package) -> Result<Vec<Package>, VmError> {
        let mut found = vec![root.clone()];
        let mut next = 0;
        while next < found.len() {
            for name in found[next].depends.clone() {
                let known = found.iter().any(|p| p.name == name);
                if !known && is_kernel_package(&name) {
                    found.extend(self.show_package(&name)?);
                }
            }
            next += 1;
        }
        Ok(found)
    }

    /// Download and unpack the packages below `into`.
    pub fn unpack(&self, packages: &[Package], into: &Path) -> Result<(), VmError> {
        self.configure()?;
        let part = Part::create_in(&self.dir).map_err(io("create", &self.dir))?;
        let debs = part.path();
        written::make_new_directory(&debs).map_err(io("create", &debs))?;
        let mut command = self.apt("apt-get");
        command.args(["-q", "download"]).current_dir(&debs);
        command.args(packages.iter().map(|p| format!("{}={}", p.name, p.version)));
        let output = run(command)?;
        if !output.status.success() {
            return Err(unmet_error(
                &format!("packages of Debian {}", self.name),
                &format!("they cannot be downloaded: {}", last_words(&output)),
                "check the network and try again",
            ));
        }
        for deb in fs::read_dir(&debs).map_err(io("read", &debs))?.flatten() {
            extract(&deb.path(), into)?;
        }
        Ok(())
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("updated")
    }

    fn prepare(&self) -> Result<(), VmError> {
        if !Path::new(KEYRING).exists() {
            return Err(unmet_error(
                KEYRING,
                "the keys of the Debian archive are not there",
                "install the package debian-archive-keyring",
            ));
        }
        cache::own_directory(&self.dir)?;
        for dir in ["lists/partial", "cache/archives/partial"] {
            let dir = self.dir.join(dir);
            written::make_directory(&dir).map_err(io("create", &dir))?;
        }
        let mirror = sources::debian_mirror(Path::new("/etc/apt"));
        let line = format!(
            "deb [arch={} signed-by={KEYRING}] {mirror} {} main\n",
            self.architecture.debian, self.name
        );
        for (file, text) in [("sources.list", line.as_str()), ("status", "")] {
            let path = self.dir.join(file);
            written::write_file(&path, text).map_err(io("write", &path))?;
        }
        self.configure()
    }

    /// The way to the mirror may be another one by now.
    fn configure(&self) -> Result<(), VmError> {
        let text = apt_config::config_text(self.architecture);
        cache::write_whole(&self.dir.join(CONFIG), text.as_bytes())
    }

    /// All that apt is configured with, reads as state or writes lies below our
    /// directory.
    fn apt(&self, program: &'static str) -> Command {
        let dir = self.dir.display();
        let mut command = tool_command(program);
        command.env("LC_ALL", "C.UTF-8");
        command.env("APT_CONFIG", self.dir.join(CONFIG));
        for option in [
            format!("Dir::Etc::sourcelist={dir}/sources.list"),
            format!("Dir::State::Lists={dir}/lists"),
            format!("Dir::State::status={dir}/status"),
            format!("Dir::Cache={dir}/cache"),
            "Dir::Cache::pkgcache=pkgcache.bin".to_owned(),
            "Dir::Cache::srcpkgcache=srcpkgcache.bin".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }
}

/// The C library of an interpreter is no library of a program.
fn is_library(name: &str) -> bool {
    (name.starts_with("lib") && !name.starts_with("libpython")) || name == "zlib1g"
}

fn is_kernel_package(name: &str) -> bool {
    [
        "linux-image-",
        "linux-binary-",
        "linux-modules-",
        "linux-base-",
    ]
    .iter()
    .filter_map(|prefix| name.strip_prefix(prefix))
    .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn extract(deb: &Path, into: &Path) -> Result<(), VmError> {
    let mut command = tool_command("dpkg-deb");
    command.arg("-x").arg(deb).arg(into);
    let output = run(command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(unmet_error(
        &deb.display().to_string(),
        &format!("it cannot be unpacked: {}", last_words(&output)),
        "check the free space of the cache directory",
    ))
}

/// `E: Release file for … is expired (invalid since …)`.
fn is_expired(output: &Output) -> bool {
    !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(" is expired ")
}

fn run(mut command: Command) -> Result<Output, VmError> {
    let program = command.get_program().to_string_lossy().into_owned();
    doors::read::output_of_work(&mut command).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => unmet_error(
            &program,
            "it is not installed, and kernels come from Debian through it",
            "install apt and dpkg, or name a kernel image by its path",
        ),
        _ => io("run", Path::new(&program))(e),
    })
}

fn last_words(output: &Output) -> String {
    last_lines(&String::from_utf8_lossy(&output.stderr), 3, "; ")
}

fn lock(path: &Path) -> Result<File, VmError> {
    let file = written::open_file(path, 0o644).map_err(io("create", path))?;
    file.lock().map_err(io("lock", path))?;
    Ok(file)
}

fn age(path: &Path) -> Option<Duration> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

/// The first stanza of `apt-cache show`; `None` without a name and a version that can
/// be part of a path.
pub fn parse_stanza(text: &str) -> Option<Package> {
    let field = |name: &str| {
        text.lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some(Package {
        name: field("Package").filter(|n| name::is_package(n))?.to_owned(),
        version: field("Version").filter(|v| name::is_version(v))?.to_owned(),
        depends: parse_depends(field("Depends").unwrap_or_default()),
        summary: field("Description").unwrap_or_default().to_owned(),
    })
}

/// The first alternative of each, without versions.
fn parse_depends(text: &str) -> Vec<String> {
    text.split(',')
        .filter_map(|dependency| dependency.split_whitespace().next())
        .filter(|name| name::is_package(name))
        .map(str::to_owned)
        .collect()
}

/// The lines of `apt-cache search`.
pub fn parse_search(text: &str) -> Vec<Package> {
    text.lines()
        .filter_map(|line| line.split_once(" - "))
        .filter(|(name, _)| name::is_package(name))
        .map(|(name, summary)| Package {
            name: name.to_owned(),
            summary: summary.to_owned(),
            ..Package::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOW: &str = "Package: linux-image-7.2.13+deb14-amd64\nVersion: 7.2.13-1\n\
        Depends: dracut | initramfs-tools (>= 0.120+deb8u2), linux-base-7.2.13+deb14-amd64 (= 7.2.13-1), \
        linux-binary-7.2.13+deb14-amd64 (= 7.2.13-1)\nDescription: Linux 7.2.13 for 64-bit PCs\n\n\
        Package: older\nVersion: 1\n";

    #[test]
    fn the_first_stanza_of_apt_cache_show_is_read() {
        let package = parse_stanza(SHOW).unwrap();
        assert_eq!(package.name, "linux-image-7.2.13+deb14-amd64");
        assert_eq!(package.version, "7.2.13-1");
        assert_eq!(package.summary, "Linux 7.2.13 for 64-bit PCs");
        assert_eq!(
            package.depends,
            [
                "dracut",
                "linux-base-7.2.13+deb14-amd64",
                "linux-binary-7.2.13+deb14-amd64"
            ]
        );
    }

    #[test]
    fn the_kernel_that_lists_led_to_holds_until_there_are_newer_lists() {
        let cache = tempfile::tempdir().unwrap();
        let suite = Suite::new(cache.path(), "sid", &X86_64).unwrap();
        fs::create_dir_all(&suite.dir).unwrap();
        let kernels = cache.path().join("kernels");
        assert_eq!(suite.found_kernel(&kernels), None, "nothing was found yet");
        let fetched = |seconds| {
            let at = SystemTime::now() - Duration::from_secs(seconds);
            File::create(suite.stamp())
                .unwrap()
                .set_modified(at)
                .unwrap();
        };
        fetched(60);
        suite.remember_kernel("linux-image-7_7-1");
        assert_eq!(suite.found_kernel(&kernels), None, "it was removed");
        let dir = kernels.join("linux-image-7_7-1");
        fs::create_dir_all(&dir).unwrap();
        assert_eq!(suite.found_kernel(&kernels), Some(dir));
        fetched(0);
        let old = File::options()
            .write(true)
            .open(suite.dir.join("kernel"))
            .unwrap();
        old.set_modified(SystemTime::now() - Duration::from_secs(9))
            .unwrap();
        assert_eq!(suite.found_kernel(&kernels), None, "there are newer lists");
    }

    #[test]
    fn what_the_lists_led_to_is_a_name_and_no_path() {
        let cache = tempfile::tempdir().unwrap();
        let suite = Suite::new(cache.path(), "sid", &X86_64).unwrap();
        fs::create_dir_all(&suite.dir).unwrap();
        File::create(suite.stamp()).unwrap();
        let kernels = cache.path().join("kernels");
        fs::create_dir_all(cache.path().join("elsewhere_1")).unwrap();
        fs::create_dir_all(&kernels).unwrap();
        for name in ["../elsewhere_1", "/", ".."] {
            suite.remember_kernel(name);
            assert_eq!(suite.found_kernel(&kernels), None, "{name}");
        }
    }

    #[test]
    fn a_suite_keeps_to_one_directory_below_the_cache() {
        let cache = Path::new("/cache");
        let suite = Suite::new(cache, "bookworm/updates", &X86_64).unwrap();
        assert_eq!(suite.dir, Path::new("/cache/apt/bookworm_updates"));
        let of_arm = Suite::new(cache, "sid", &crate::architecture::AARCH64).unwrap();
        assert_eq!(of_arm.dir, Path::new("/cache/apt/arm64/sid"));
        for name in ["/x", "../x", "a/../../x", ".", ""] {
            let error = Suite::new(cache, name, &X86_64).unwrap_err().to_string();
            assert!(error.contains("no suite of Debian"), "{error}");
        }
    }

    #[test]
    fn a_stanza_whose_name_or_version_is_a_path_is_passed_over() {
        assert_eq!(parse_stanza("Package: linux-a/../../b\nVersion: 1\n"), None);
        assert_eq!(parse_stanza("Package: linux-a\nVersion: 1/../2\n"), None);
        assert!(parse_search("linux-image-1-amd64 - x\n../y - z\n").len() == 1);
    }

    #[test]
    fn an_unknown_package_is_none() {
        assert_eq!(parse_stanza(""), None);
    }

    #[test]
    fn only_parts_of_a_kernel_are_followed() {
        assert!(is_kernel_package("linux-binary-7.2.13+deb14-amd64"));
        assert!(is_kernel_package("linux-base-7.2.13+deb14-amd64"));
        assert!(!is_kernel_package("linux-base"));
        assert!(!is_kernel_package("linux-base-amd64"));
        assert!(!is_kernel_package("kmod"));
    }
}
