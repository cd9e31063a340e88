//! Kernels of commits: one work tree and one build go from commit to commit, so that make builds only
//! what changed; the image of each commit is kept.

use super::program;
use crate::exit::CliError;
use crate::progress::Spinner;
use doors::written::{self, Part};
use git::Bisection;
use std::path::{Path, PathBuf};
use vm::VmError;
use vm::kernel::build::{self, BuildRequest};

/// Word that stands for the kernel in place of a scheduler or a program.
pub const NAME: &str = "kernel";
/// Where a kernel's configuration starts from unless it is said.
pub const CONFIG: &str = "defconfig";
/// Image of a built tree, which an arm names by the tree.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// Files that are kept of a build.
const KEPT: [&str; 2] = [IMAGE, ".config"];

/// The kernels of a bisection.
pub struct Kernels<'a> {
    pub bisection: &'a Bisection,
    /// Directory of the bisection.
    pub dir: &'a Path,
    /// Start of the configuration: a target of make, or a file.
    pub config: &'a str,
    /// Files that are merged into it.
    pub fragments: &'a [PathBuf],
}

/// Refuses a directory that no arm could name, and a machine that cannot build a kernel.
pub fn check(dir: &Path) -> Result<(), CliError> {
    program::check_name(&dir.join(NAME))?;
    Ok(build::check_tools()?)
}

/// SHA-256 of each file that configures the kernel: with another content the images that are kept
/// would be of another configuration.
pub fn digests(config: Option<&str>, fragments: &[PathBuf]) -> Result<Vec<String>, CliError> {
    let config = config.map(Path::new).filter(|path| path.is_file());
    let files = config
        .into_iter()
        .chain(fragments.iter().map(PathBuf::as_path));
    let digest = |path: &Path| {
        let bytes = doors::read::small_file_bytes(path).map_err(|error| {
            let what = format!("{}: {error}", path.display());
            CliError::usage(what, "name a file that can be read")
        })?;
        Ok(results::capsule::sha256(&bytes))
    };
    files.map(digest).collect()
}

impl Kernels<'_> {
    /// Directory of the image of a commit, whether it is built or not.
    pub fn image_dir(&self, commit: &str) -> PathBuf {
        self.dir.join("kernels").join(short(commit))
    }

    /// Builds the kernel of a commit, unless that was done before; the inner error is how the build
    /// failed.
    pub fn build(&self, commit: &str) -> Result<Result<(), String>, CliError> {
        let kernel = self.image_dir(commit);
        if kernel.join(IMAGE).is_file() {
            return Ok(Ok(()));
        }
        let tree = self.dir.join("linux");
        self.bisection.checkout(commit, &tree)?;
        let log = self.dir.join(format!("{}.log", short(commit)));
        // Of an earlier try.
        let _ = written::remove_file(&log);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let request = BuildRequest {
            source: tree.display().to_string(),
            commit: None,
            base: self.config.to_owned(),
            fragments: self.fragments.to_vec(),
            output: Some(self.dir.join("build")),
            jobs: cpus,
            sched_ext: false,
            log: Some(log.clone()),
        };
        let bar = Spinner::new()?;
        bar.show_line(&format!("building the kernel of {}", short(commit)));
        let built = build::build(&request, self.dir);
        bar.end_display();
        let built = match built {
            Ok(built) => built,
            Err(VmError::Unmet(problem)) => {
                return Ok(Err(program::failure_reason(&problem.what, &log)));
            }
            Err(error) => return Err(error.into()),
        };
        keep(&built, &kernel, self.dir).map_err(|e| not_kept(&kernel, &e))?;
        Ok(Ok(()))
    }
}

fn short(commit: &str) -> &str {
    commit.get(..git::SHORT).unwrap_or(commit)
}

/// Takes what a guest boots out of a build with this cache, beside its place, and renames it when it
/// is whole.
fn keep(built: &Path, kernel: &Path, cache: &Path) -> std::io::Result<()> {
    let part = Part::create_in(kernel.parent().unwrap_or(kernel))?;
    for file in KEPT {
        build::take_file(&built.join(file), &part.path().join(file), cache)?;
    }
    part.replace_at(kernel)
}

fn not_kept(kernel: &Path, error: &std::io::Error) -> CliError {
    CliError::internal(std::io::Error::new(
        error.kind(),
        format!("keeping a kernel in {}: {error}", kernel.display()),
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_of_another_content_is_another_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("my.config");
        let digests = |config: &str| digests(Some(config), &[]).unwrap();
        assert!(
            digests("defconfig").is_empty(),
            "a target of make is no file"
        );
        fs::write(&config, "CONFIG_HZ=250\n").unwrap();
        let before = digests(&config.display().to_string());
        fs::write(&config, "CONFIG_HZ=1000\n").unwrap();
        let after = digests(&config.display().to_string());
        assert_eq!((before.len(), after.len()), (1, 1));
        assert_ne!(before, after);
    }

    /// The build is another user's where root builds: what they put in the place of the image is not
    /// what root copies.
    #[test]
    fn a_link_in_the_place_of_an_image_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (built, kernel) = (dir.path().join("build"), dir.path().join("kernels/abc"));
        fs::create_dir_all(built.join("arch/x86/boot")).unwrap();
        fs::create_dir_all(kernel.parent().unwrap()).unwrap();
        let keep = || {
            for file in [Path::new(""), Path::new(".config"), Path::new(IMAGE)] {
                let path = built.join(file);
                if let (Some(user), true) = (confine::User::for_builds(), path.exists()) {
                    std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid)).unwrap();
                }
            }
            super::keep(&built, &kernel, dir.path())
        };
        fs::write(built.join(".config"), "CONFIG_X=y\n").unwrap();
        std::os::unix::fs::symlink("/etc/shadow", built.join(IMAGE)).unwrap();
        let error = keep().unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert!(!kernel.exists());
        fs::remove_file(built.join(IMAGE)).unwrap();
        fs::write(built.join(IMAGE), "image").unwrap();
        keep().unwrap();
        assert_eq!(fs::read_to_string(kernel.join(IMAGE)).unwrap(), "image");
    }
}
