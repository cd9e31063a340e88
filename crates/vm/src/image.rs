//! `schedlab image build`: a root file system for `root = "image:PATH"` from a list
//! of Debian packages, with mmdebstrap(1), without root. The image is read-only and
//! the guest puts memory over it, so one image serves any number of guests.

use super::architecture::Architecture;
use super::failure::{io, unmet_error};
use super::kernel::sources;
use super::name;
use crate::VmError;
use doors::shown::{self, Stream};
use doors::started::{status_of, tool_command};
use doors::written::{self, Part};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;

/// Formats that mmdebstrap writes itself, by the end of the name, and the package that each
/// needs.
const FORMATS: [(&str, &str, &str); 2] = [
    ("squashfs", "tar2sqfs", "squashfs-tools-ng"),
    ("ext2", "genext2fs", "genext2fs"),
];

/// Request for a root file system made of Debian packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// `NAME.squashfs` or `NAME.ext2`.
    pub output: PathBuf,
    /// Debian suite, such as `bookworm`.
    pub suite: String,
    /// Architecture of the guest.
    pub architecture: &'static Architecture,
    /// Names of packages besides the essential ones.
    pub packages: Vec<String>,
    /// Files and folders of this machine that the image gets.
    pub copies: Vec<Copied>,
}

/// A file or folder of this machine in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Path on this machine; links are followed.
    pub from: PathBuf,
    /// Directory of the image that it comes into, an absolute path.
    pub into: String,
}

impl FromStr for Copied {
    type Err = String;

    /// Reads `PATH:DIRECTORY`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            Some((from, into)) if !from.is_empty() && into.starts_with('/') => Ok(Copied {
                from: from.into(),
                into: into.to_owned(),
            }),
            _ => Err(
                "write PATH:DIRECTORY, a path of this machine and an absolute one of the \
                      image: target/app.jar:/opt/app"
                    .to_owned(),
            ),
        }
    }
}

/// Builds the image with mmdebstrap; the file is whole or absent. An error says which program is
/// missing, or which name is no suite or package.
pub fn build(request: &ImageRequest) -> Result<(), VmError> {
    let format = format_of(&request.output)?;
    check_names(request)?;
    check_copies(request)?;
    check_program("mmdebstrap", "mmdebstrap")?;
    if !rustix::process::geteuid().is_root() {
        check_program("newuidmap", "uidmap").map_err(as_ordinary_user)?;
    }
    check_program(format.1, format.2)?;
    // Whole or absent: the name that mmdebstrap sees ends as the final one does.
    let dir = match request.output.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let part = Part::create_in(dir).map_err(io("create", dir))?;
    let image = part.directory().join(format!("image.{}", format.0));
    tracing::info!(
        "building {} from Debian {}",
        request.output.display(),
        request.suite
    );
    run(request, &image)?;
    written::move_durably(&image, &request.output).map_err(io("rename", &image))
}

/// They become arguments of mmdebstrap and apt.
fn check_names(request: &ImageRequest) -> Result<(), VmError> {
    let wrong = |what: String| {
        let object = format!("image {}", request.output.display());
        Err(unmet_error(
            &object,
            &what,
            "write names as packages.debian.org has them",
        ))
    };
    if !name::is_suite(&request.suite) {
        return wrong(format!("{:?} is no suite of Debian", request.suite));
    }
    match request.packages.iter().find(|p| !name::is_package(p)) {
        Some(package) => wrong(format!("{package:?} is no name of a package")),
        None => Ok(()),
    }
}

fn check_copies(request: &ImageRequest) -> Result<(), VmError> {
    let mut copies = request.copies.iter();
    let Some(absent) = copies.find(|copied| !copied.from.exists()) else {
        return Ok(());
    };
    Err(unmet_error(
        &absent.from.display().to_string(),
        "it is to be copied into the image, and is not there",
        "make it first, or correct --copy",
    ))
}

fn format_of(output: &Path) -> Result<(&'static str, &'static str, &'static str), VmError> {
    let name = output.extension().unwrap_or_default();
    FORMATS
        .into_iter()
        .find(|(format, ..)| name == *format)
        .ok_or_else(|| {
            unmet_error(
                &format!("image {}", output.display()),
                "its name does not tell a format",
                "let it end in .squashfs or .ext2",
            )
        })
}

fn check_program(program: &'static str, package: &str) -> Result<(), VmError> {
    let mut probe = tool_command(program);
    probe.arg("--version");
    match status_of(probe) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(unmet_error(
            program,
            "it is not installed, and images are made with it",
            &format!("install the package {package}"),
        )),
        _ => Ok(()),
    }
}

/// mmdebstrap gives an ordinary user the ids of a system in a user namespace.
fn as_ordinary_user(error: VmError) -> VmError {
    match error {
        VmError::Unmet(mut problem) => {
            problem.what =
                "it is not installed, and images are made without root through it".into();
            problem
                .remedy
                .push_str(", or build the image as root: any user can boot it");
            VmError::Unmet(problem)
        }
        other => other,
    }
}

fn run(request: &ImageRequest, image: &Path) -> Result<(), VmError> {
    let mut command = tool_command("mmdebstrap");
    let mirror = sources::debian_mirror(Path::new("/etc/apt"));
    let squashes = request.output.extension().is_some_and(|e| e == "squashfs");
    let output = if squashes { Path::new("-") } else { image };
    command.args(arguments(request, output, &mirror)?);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = match squashes {
        true => squash(&mut command, image),
        false => {
            let status = shown::run_program(&mut command, Stream::Errors);
            let status = status.map_err(io("run", Path::new("mmdebstrap")))?;
            Ok(Some(status).filter(|status| !status.success()))
        }
    }?;
    let Some(status) = status else {
        return Ok(());
    };
    Err(unmet_error(
        &format!("image {}", request.output.display()),
        &format!("mmdebstrap or tar2sqfs failed with {status}"),
        "see its messages above; without root it needs user namespaces, the package uidmap, and a range of ids for \
         you in /etc/subuid and /etc/subgid (usermod --add-subuids, --add-subgids)",
    ))
}

/// The tar of mmdebstrap as a squashfs with LZ4; the status of the program that failed. What
/// mmdebstrap makes itself is compressed with xz in blocks of 1 MiB, and an emulated CPU takes
/// minutes to read the classes of a JVM out of that.
fn squash(debian: &mut Command, image: &Path) -> Result<Option<ExitStatus>, VmError> {
    let failed = |program: &'static str| io("run", Path::new(program));
    let mut debian = debian
        .arg("--format=tar")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed("mmdebstrap"))?;
    let said = debian.stderr.take();
    let said = said.map(|said| shown::relay_lines(said, Stream::Errors));
    let tar = debian.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut squash = tool_command("tar2sqfs");
    squash
        .args(["--quiet", "--compressor", "lz4"])
        .arg(image)
        .stdin(tar);
    let squashed = shown::run_program(&mut squash, Stream::Errors);
    // It holds the other end of the pipe, which mmdebstrap would wait for.
    drop(squash);
    let made = debian.wait().map_err(failed("mmdebstrap"))?;
    if let Some(said) = said {
        // It has no panic of its own.
        let _ = said.join();
    }
    let squashed = squashed.map_err(failed("tar2sqfs"))?;
    Ok([made, squashed]
        .into_iter()
        .find(|status| !status.success()))
}

fn arguments(request: &ImageRequest, image: &Path, mirror: &str) -> Result<Vec<String>, VmError> {
    let mut args = vec!["--quiet".to_owned()];
    args.extend(base(request.architecture));
    if !request.packages.is_empty() {
        args.push(format!("--include={}", request.packages.join(",")));
    }
    // Mount points that init needs in a root that it cannot write to.
    args.push(
        "--customize-hook=mkdir -p \"$1/sys\" \"$1/proc\" \"$1/dev\" \"$1/run\" \"$1/boot\""
            .to_owned(),
    );
    for copied in &request.copies {
        args.push(hook(copied).map_err(io("copy", &copied.from))?);
    }
    args.extend([
        request.suite.clone(),
        image.display().to_string(),
        mirror.to_owned(),
    ]);
    Ok(args)
}

/// Programs of another architecture do not run here, so nothing of it is configured: its essential
/// packages are unpacked, and get the one user that programs ask for.
fn base(architecture: &Architecture) -> Vec<String> {
    if architecture.is_of_this_machine() {
        return vec!["--variant=minbase".to_owned()];
    }
    let root = "echo root:x:0:0:root:/root:/bin/sh > \"$1/etc/passwd\"";
    vec![
        "--variant=extract".to_owned(),
        format!("--architectures={}", architecture.debian),
        "--include=?essential".to_owned(),
        format!("--customize-hook={root}"),
    ]
}

/// The command that copies; a shell outside of the image runs it, with the root as `$1`.
fn hook(copied: &Copied) -> std::io::Result<String> {
    let from = std::path::absolute(&copied.from)?.display().to_string();
    let quoted = |text: &str| shlex::try_quote(text).map(String::from);
    let words = quoted(&from).and_then(|from| Ok((from, quoted(&copied.into)?)));
    let (from, into) = words.map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(format!(
        "--customize-hook=mkdir -p \"$1\"{into} && cp -RL -- {from} \"$1\"{into}/"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(output: &str) -> ImageRequest {
        ImageRequest {
            output: output.into(),
            suite: "trixie".to_owned(),
            architecture: Architecture::of_this_machine(),
            packages: vec!["rt-tests".to_owned(), "stress-ng".to_owned()],
            copies: vec!["/srv/it's:/opt/a b".parse().unwrap()],
        }
    }

    #[test]
    fn mmdebstrap_gets_suite_packages_and_the_hosts_mirror() {
        let args = arguments(
            &request("a.squashfs"),
            Path::new("/tmp/p.squashfs"),
            "http://m.example/debian",
        )
        .unwrap();
        let copies = args.iter().filter(|arg| arg.contains("cp -RL"));
        assert_eq!(
            copies.collect::<Vec<_>>(),
            [
                r#"--customize-hook=mkdir -p "$1"'/opt/a b' && cp -RL -- "/srv/it's" "$1"'/opt/a b'/"#
            ]
        );
        assert!(args.contains(&"--include=rt-tests,stress-ng".to_owned()));
        assert_eq!(
            args[args.len() - 3..],
            ["trixie", "/tmp/p.squashfs", "http://m.example/debian"]
        );
    }

    #[test]
    fn packages_of_another_architecture_are_unpacked_and_not_run() {
        let all = crate::architecture::ALL.into_iter();
        let other = all
            .into_iter()
            .find(|one| !one.is_of_this_machine())
            .unwrap();
        let request = ImageRequest {
            architecture: other,
            copies: Vec::new(),
            ..request("a.squashfs")
        };
        let args = arguments(&request, Path::new("-"), "http://m.example/debian").unwrap();
        let has = |wanted: &str| args.iter().any(|arg| arg == wanted);
        assert!(
            has(&format!("--architectures={}", other.debian)),
            "{args:?}"
        );
        assert!(has("--variant=extract") && !has("--variant=minbase"));
    }

    #[test]
    fn suite_and_packages_are_names_and_no_options() {
        assert!(check_names(&request("a.squashfs")).is_ok());
        for (suite, package) in [
            ("--setup-hook=x", "gcc"),
            ("sid", "gcc,--x"),
            ("../x", "gcc"),
        ] {
            let request = ImageRequest {
                suite: suite.to_owned(),
                packages: vec![package.to_owned()],
                ..request("a.squashfs")
            };
            let error = check_names(&request).unwrap_err().to_string();
            assert!(error.contains("is no "), "{error}");
        }
    }

    #[test]
    fn what_is_copied_has_a_path_here_and_a_directory_there() {
        for wrong in ["app.jar", ":/opt", "app.jar:opt"] {
            assert!(wrong.parse::<Copied>().is_err(), "{wrong}");
        }
        let mut absent = request("a.squashfs");
        absent.copies = vec!["/no/such/file:/opt".parse().unwrap()];
        let error = check_copies(&absent).unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }

    #[test]
    fn an_ordinary_user_is_told_both_ways() {
        let missing = check_program("no-such-newuidmap", "uidmap").map_err(as_ordinary_user);
        let error = missing.unwrap_err().to_string();
        assert!(
            error.contains("package uidmap, or build the image as root"),
            "{error}"
        );
    }

    #[test]
    fn the_name_of_an_image_tells_its_format() {
        assert_eq!(format_of(Path::new("a/b.ext2")).unwrap().0, "ext2");
        let error = format_of(Path::new("a/b.img")).unwrap_err().to_string();
        assert!(error.contains(".squashfs or .ext2"), "{error}");
    }
}
