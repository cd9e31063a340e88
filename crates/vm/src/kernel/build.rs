//! `schedlab kernel build`: a kernel for guests from a tree, or from a
//! `linux-source-*` package, with the shipped fragment merged into its
//! configuration. The tree itself is left alone: everything is built beside it
//! (`O=`), and the result is named in experiments like any built tree. A tag or commit of a git
//! repository gets a tree of its own first.

use super::apt::Suite;
use super::config::Config;
use super::{SUITES, list};
use crate::VmError;
use crate::architecture::Architecture;
use crate::failure::{io, unmet_error};
use crate::name;
use confine::User;
use doors::read::{Log, join_output, to_log};
use doors::shown::{self, Stream};
use doors::started::{Agreed, Workshop, status_of, tool_command};
use doors::written::{self, Part};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Configuration that every guest's kernel has.
pub(crate) const FRAGMENT: &str = include_str!("../../../../guest/kernel.config");

/// Programs and headers that the build needs, and the packages that have them.
const TOOLS: [(&str, &str); 7] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("pahole", "dwarves"),
    ("xz", "xz-utils"),
];
const HEADERS: [(&str, &str); 2] = [
    ("libelf.h", "libelf-dev"),
    ("openssl/opensslv.h", "libssl-dev"),
];

/// Files of a directory that a kernel was built in, also by earlier versions.
const BUILT: [&str; 2] = ["schedlab.config", ".config"];

/// SIGINT and SIGTERM (signal(7)).
const INTERRUPTS: [i32; 2] = [2, 15];

/// Request for a kernel with everything that schedlab can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// A kernel tree, `debian:linux-source-VERSION`, or a git repository as a path or a URL.
    pub source: String,
    /// Tag, branch or commit of the repository; `None`: the files of a path as they are, and the
    /// own branch of a URL.
    pub commit: Option<String>,
    /// A target of the kernel's make (`defconfig`, `tinyconfig`) or a file.
    pub base: String,
    /// Merged after the shipped fragment.
    pub fragments: Vec<PathBuf>,
    /// Directory of the build; below the cache when not given.
    pub output: Option<PathBuf>,
    /// Jobs of make at a time.
    pub jobs: usize,
    /// True where it is an error that the kernel cannot have sched_ext.
    pub sched_ext: bool,
    /// File with all that make says; `None`: its errors go to the standard error.
    pub log: Option<PathBuf>,
}

/// Directory of builds in a cache.
const BUILDS: &str = "builds";
/// What every guest's kernel must have, without `CONFIG_`.
const FOR_GUESTS: [&str; 5] = [
    "VIRTIO_PCI",
    "VIRTIO_CONSOLE",
    "NET_9P_VIRTIO",
    "9P_FS",
    "OVERLAY_FS",
];
/// What schedulers of sched_ext need besides.
const FOR_SCHED_EXT: [&str; 3] = ["BPF_SYSCALL", "DEBUG_INFO_BTF", "SCHED_CLASS_EXT"];

/// The output directory, which is what an experiment names as its kernel.
pub fn build(request: &BuildRequest, cache: &Path) -> Result<PathBuf, VmError> {
    check_tools()?;
    build_with_tools(request, cache)
}

/// Makes the directory of a build. One that an earlier build was given belongs to the user that
/// builds for root, who writes it again.
fn make_output(output: &Path) -> std::io::Result<()> {
    let found = output.symlink_metadata();
    let is_of = |user: User| found.is_ok_and(|at| at.is_dir() && at.uid() == user.uid);
    match User::for_builds().is_some_and(is_of) {
        true => written::real_place(output).map(drop),
        false => written::make_directory(output).map(drop),
    }
}

fn build_with_tools(request: &BuildRequest, cache: &Path) -> Result<PathBuf, VmError> {
    let tree = source_tree(&request.source, request.commit.as_deref(), cache)?;
    let output = match &request.output {
        Some(path) => path.clone(),
        None => list::kernels_directory(cache).join(format!("build-{}", last_name(&tree))),
    };
    make_output(&output).map_err(io("create", &output))?;
    let output = fs::canonicalize(&output).map_err(io("find", &output))?;
    let workshop = workshop(&output, &cache.join(BUILDS), &request.source)?;
    let readable = workshop.check_readable(&tree.join("Makefile"), std::slice::from_ref(&tree));
    readable.map_err(|e| io("read", &tree)(std::io::Error::other(e)))?;
    let build = Build {
        request,
        tree,
        output,
        workshop,
    };
    build.configure()?;
    tracing::info!("building the kernel in {}", build.output.display());
    let mut make = build.make();
    make.arg(format!("-j{}", request.jobs.max(1)));
    let image = Path::new(Architecture::of_this_machine().built_image);
    make.args(image.file_name());
    build.run(make, "make", &[])?;
    Ok(build.output)
}

/// A kernel that is being built: make files and scripts of its tree run.
struct Build<'a> {
    request: &'a BuildRequest,
    tree: PathBuf,
    output: PathBuf,
    workshop: Workshop,
}

/// Where root builds, the output is another user's. It was empty, or holds a build.
fn workshop(output: &Path, dir: &Path, source: &str) -> Result<Workshop, VmError> {
    let user = User::for_builds();
    let workshop = Workshop::open(Agreed::by_command(), user, dir, source);
    let workshop = workshop.map_err(io("create", dir))?;
    let is_built = BUILT.iter().any(|name| output.join(name).exists());
    let mut entries = fs::read_dir(output).map_err(io("read", output))?;
    if workshop.user().is_some() && !is_built && entries.next().is_some() {
        return Err(unmet_error(
            &format!("directory {}", output.display()),
            "it has other files than those of a kernel's build, which another user gets",
            "name an empty directory, or one that does not exist",
        ));
    }
    workshop
        .give_to_user(output)
        .map_err(io("give away", output))?;
    Ok(workshop)
}

/// Takes a file of a tree that was built with this cache to where only we can change it. The tree is
/// another user's where root builds, who may have put a link there.
pub fn take_file(file: &Path, to: &Path, cache: &Path) -> std::io::Result<()> {
    let (user, builds) = (User::for_builds(), cache.join(BUILDS));
    Workshop::open(Agreed::by_command(), user, &builds, "taken")?.take_file(file, to)
}

/// An error that names the packages where something that a build needs is not installed.
pub fn check_tools() -> Result<(), VmError> {
    let mut missing: Vec<&str> = Vec::new();
    missing.extend(
        TOOLS
            .iter()
            .filter(|(name, _)| which::which(name).is_err())
            .map(|(_, package)| *package),
    );
    missing.extend(
        HEADERS
            .iter()
            .filter(|(name, _)| !has_header(name))
            .map(|(_, package)| *package),
    );
    if missing.is_empty() {
        return Ok(());
    }
    Err(unmet_error(
        "kernel build",
        "not everything that it needs is installed",
        &format!("install the packages {}", missing.join(" ")),
    ))
}

/// The compiler knows where its headers are.
fn has_header(name: &str) -> bool {
    let mut probe = tool_command("gcc");
    probe.args(["-E", "-x", "c", "-include", name, "/dev/null"]);
    status_of(probe).is_ok_and(|status| status.success())
}

fn source_tree(source: &str, commit: Option<&str>, cache: &Path) -> Result<PathBuf, VmError> {
    if let Some(package) = source.strip_prefix("debian:") {
        return match commit {
            None => packaged_tree(package, cache),
            Some(_) => Err(unmet_error(
                &format!("source {source}"),
                "a package has no tags and no commits",
                "leave out --ref, or name a git repository",
            )),
        };
    }
    let tree = match commit.is_some() || git::is_url(source) {
        true => taken(source, commit, cache)?,
        false => fs::canonicalize(source).map_err(io("find", Path::new(source)))?,
    };
    if !tree.join("scripts/kconfig/merge_config.sh").exists() {
        return Err(unmet_error(
            &format!("kernel tree {}", tree.display()),
            "it has no scripts/kconfig/merge_config.sh",
            "name the top of a kernel tree, a repository and a tag (--ref v6.18), or \
             debian:linux-source-VERSION",
        ));
    }
    Ok(tree)
}

/// The files of a commit.
fn taken(source: &str, name: Option<&str>, cache: &Path) -> Result<PathBuf, VmError> {
    let commit = git::commit_of(source, name)?;
    Ok(git::fetch_tree(source, &commit, &cache.join("src"))?)
}

/// The package holds `usr/src/NAME.tar.xz`.
fn packaged_tree(package: &str, cache: &Path) -> Result<PathBuf, VmError> {
    for suite in SUITES.into_iter().filter(|_| name::is_package(package)) {
        let suite = Suite::new(cache, suite, Architecture::of_this_machine())?;
        suite.refresh()?;
        let Some(found) = suite
            .show_package(package)?
            .filter(|p| p.name.starts_with("linux-source-"))
        else {
            continue;
        };
        let tree = cache
            .join("src")
            .join(format!("{}_{}", found.name, found.version));
        if !tree.exists() {
            unpack_source(&suite, &found, &tree)?;
        }
        return Ok(tree);
    }
    Err(unmet_error(
        &format!("source debian:{package}"),
        &format!("no such linux-source package in {}", SUITES.join(", ")),
        "name one with its version, such as debian:linux-source-7.2",
    ))
}

fn unpack_source(suite: &Suite, package: &super::apt::Package, tree: &Path) -> Result<(), VmError> {
    let parent = tree.parent().unwrap_or(tree);
    let part = Part::create_in(parent).map_err(io("create", parent))?;
    tracing::info!("downloading {} {}", package.name, package.version);
    suite.unpack(std::slice::from_ref(package), part.directory())?;
    let archive = part
        .directory()
        .join("usr/src")
        .join(format!("{}.tar.xz", package.name));
    let mut tar = tool_command("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(part.directory());
    run(tar, "unpack the kernel's source", None, |mut tar| {
        tar.spawn()
    })?;
    let top = part.directory().join(&package.name);
    written::move_durably(&top, tree).map_err(io("rename", &top))
}

impl Build<'_> {
    fn configure(&self) -> Result<(), VmError> {
        let config = self.output.join(".config");
        // Inputs lie where the tree's scripts cannot put links in their way.
        let temporary = std::env::temp_dir();
        let inputs = Part::create_in(&temporary).map_err(io("create", &temporary))?;
        let shipped = inputs.directory().join("schedlab.config");
        written::write_file(&shipped, FRAGMENT).map_err(io("write", &shipped))?;
        let base = match Path::new(&self.request.base).is_file() {
            true => fs::canonicalize(&self.request.base).map_err(io("find", &config))?,
            false => {
                self.configure_by(&self.request.base)?;
                config.clone()
            }
        };
        let mut files = vec![base, shipped];
        // It runs elsewhere.
        for fragment in &self.request.fragments {
            files.push(fs::canonicalize(fragment).map_err(io("find", fragment))?);
        }
        let script = self.tree.join("scripts/kconfig/merge_config.sh");
        let mut merge = self.workshop.build_command(script);
        merge.args(["-m", "-O"]).arg(&self.output).args(&files);
        // Its temporary files are made where it runs.
        merge.current_dir(&self.output);
        self.run(merge, "merge the kernel's configuration", &files)?;
        self.configure_by("olddefconfig")?;
        let text = doors::read::small_file_text(&config).map_err(io("read", &config))?;
        check_needed(&Config::parse(&text), self.request.sched_ext)
    }

    fn make(&self) -> Command {
        let mut make = self.workshop.build_command("make");
        make.arg("-C").arg(&self.tree);
        make.arg(format!("O={}", self.output.display()));
        make.args(compiler(which::which("ccache").is_ok()));
        make
    }

    fn configure_by(&self, make_target: &str) -> Result<(), VmError> {
        let mut configure = self.make();
        configure.args(["-s", make_target]);
        self.run(configure, "make", &[])
    }

    fn run(&self, command: Command, step: &'static str, files: &[PathBuf]) -> Result<(), VmError> {
        let mut shown = vec![self.tree.clone(), self.output.clone()];
        shown.extend(files.iter().cloned());
        run(command, step, self.request.log.as_deref(), |command| {
            let child = self.workshop.spawn(command, &shown);
            child.map_err(std::io::Error::other)
        })
    }
}

/// Kconfig drops what it cannot have without a word.
fn check_needed(config: &Config, sched_ext: bool) -> Result<(), VmError> {
    let besides = FOR_SCHED_EXT.iter().filter(|_| sched_ext);
    let needed = FOR_GUESTS.iter().chain(besides);
    let lost: Vec<&str> = needed.copied().filter(|o| !config.built_in(o)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(unmet_error(
        "kernel build",
        &format!("the configuration cannot have {}", lost.join(", ")),
        "take a kernel of 6.12 or later and a configuration for x86-64, with pahole installed",
    ))
}

/// A second build of nearly the same source takes a fraction of the time with ccache.
fn compiler(with_ccache: bool) -> Option<&'static str> {
    with_ccache.then_some("CC=ccache gcc")
}

/// Runs a program. What it says is shown on standard error, or goes to the log.
fn run(
    mut command: Command,
    step: &'static str,
    log: Option<&Path>,
    start: impl FnOnce(Command) -> std::io::Result<Child>,
) -> Result<(), VmError> {
    let program = PathBuf::from(command.get_program());
    command.stdin(Stdio::null());
    let ran = match log {
        Some(log) => {
            let file = written::open_log(log).and_then(Log::append_to);
            let file = file.map_err(io("open", log))?;
            let output = join_output(&mut command).map_err(io(step, &program))?;
            start(command).and_then(|child| to_log(child, output, file))
        }
        None => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            start(command).and_then(|child| shown::to_end(child, Stream::Errors))
        }
    };
    let status = ran.map_err(io(step, &program))?;
    if status.success() {
        return Ok(());
    }
    if status.signal().is_some_and(|s| INTERRUPTS.contains(&s)) {
        return Err(VmError::Interrupted);
    }
    let see = match log {
        None => "see its messages above".to_owned(),
        Some(log) => format!("see {}", log.display()),
    };
    Err(unmet_error(
        "kernel build",
        &format!("`{step}` failed with {status}"),
        &see,
    ))
}

fn last_name(path: &Path) -> String {
    path.file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_shipped_fragment_has_what_every_guest_needs() {
        assert!(check_needed(&Config::parse(FRAGMENT), true).is_ok());
    }

    #[test]
    fn what_kconfig_dropped_is_named() {
        let without = FRAGMENT.replace("CONFIG_DEBUG_INFO_BTF=y\n", "");
        let error = check_needed(&Config::parse(&without), true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("DEBUG_INFO_BTF") && error.contains("pahole"),
            "{error}"
        );
        assert!(check_needed(&Config::parse(&without), false).is_ok());
    }

    #[test]
    fn a_directory_that_is_no_kernel_tree_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().display().to_string();
        let error = source_tree(&source, None, Path::new("/nowhere"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("merge_config.sh"), "{error}");
    }

    /// A stand-in that answers what schedlab asks of a kernel's tree, without a kernel: its configuration is the shipped
    /// fragment, and its image says the version.
    const MAKEFILE: &str = "\
defconfig olddefconfig:
\ttouch $(O)/.config
bzImage:
\tmkdir -p $(O)/arch/x86/boot
\techo \"$(VERSION) $(CC)\" > $(O)/arch/x86/boot/bzImage
";
    const MERGE: &str = "#!/bin/sh\nshift 2; out=$1; shift; cat \"$@\" > \"$out/merged\"\n\
                         mv \"$out/merged\" \"$out/.config\"\n";

    fn in_repository(repository: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "test"),
            ("GIT_AUTHOR_EMAIL", "test@localhost"),
            ("GIT_COMMITTER_NAME", "test"),
            ("GIT_COMMITTER_EMAIL", "test@localhost"),
        ] {
            command.env(name, value);
        }
        let output = command.arg("-C").arg(repository).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A repository that stands in for the kernel's, with a commit for each of the versions, of
    /// which the first has a tag. Gives the commits.
    fn repository(at: &Path, versions: &[&str]) -> Vec<String> {
        in_repository(at, &["init", "-q", "-b", "main"]);
        let kconfig = at.join("scripts/kconfig");
        fs::create_dir_all(&kconfig).unwrap();
        ::tests::write_program(&kconfig.join("merge_config.sh"), MERGE);
        let commits = versions.iter().map(|version| {
            let makefile = format!("VERSION = {version}\n{MAKEFILE}");
            fs::write(at.join("Makefile"), makefile).unwrap();
            in_repository(at, &["add", "-A"]);
            in_repository(at, &["commit", "-q", "-m", version]);
            in_repository(at, &["rev-parse", "HEAD"])
        });
        let commits: Vec<String> = commits.collect();
        in_repository(at, &["tag", "-a", "-m", "first", "v1", &commits[0]]);
        commits
    }

    fn request(source: &str, commit: Option<&str>, fragments: &[PathBuf]) -> BuildRequest {
        BuildRequest {
            source: source.to_owned(),
            commit: commit.map(str::to_owned),
            base: "defconfig".to_owned(),
            fragments: fragments.to_vec(),
            output: None,
            jobs: 1,
            sched_ext: true,
            log: None,
        }
    }

    #[test]
    fn a_directory_of_other_files_is_not_given_away() {
        let Some(user) = User::for_builds() else {
            return ::tests::skipped("only root gives files away");
        };
        let (dir, builds) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = dir.path().join("mine");
        fs::write(&file, "").unwrap();
        let error = workshop(dir.path(), builds.path(), "source").unwrap_err();
        assert!(error.to_string().contains("other files"), "{error}");
        assert_ne!(file.metadata().unwrap().uid(), user.uid);
    }

    #[test]
    fn a_tag_and_a_commit_of_a_repository_are_built_from_a_path_and_a_url() {
        if ["git", "make"]
            .iter()
            .any(|name| which::which(name).is_err())
        {
            return ::tests::skipped("there is no git or no make".to_owned());
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("linux");
        fs::create_dir(&at).unwrap();
        let commits = repository(&at, &["one", "two", "three"]);
        let path = at.display().to_string();
        let url = format!("file://{path}");
        let fragment = dir.path().join("own.config");
        fs::write(&fragment, "CONFIG_OWN=y\n").unwrap();
        // Scripts of the tree run as somebody else where root builds.
        let cache = tempfile::tempdir().unwrap();
        let built = build_with_tools(&request(&path, None, &[]), cache.path()).unwrap();
        let image = built.join("arch/x86/boot/bzImage").metadata().unwrap();
        let user = User::for_builds();
        let own = dir.path().metadata().unwrap().uid();
        let user = user.map_or(own, |user| user.uid);
        assert_eq!(image.uid(), user);
        for (source, commit, version) in [
            (&path, Some("v1"), "one"),
            (&path, Some(commits[1].as_str()), "two"),
            (&path, None, "three"),
            (&url, Some("v1"), "one"),
            (&url, Some("main"), "three"),
            (&url, Some(commits[1].as_str()), "two"),
            (&url, None, "three"),
        ] {
            let cache = tempfile::tempdir().unwrap();
            let request = request(source, commit, std::slice::from_ref(&fragment));
            let built = build_with_tools(&request, cache.path()).unwrap();
            let image = fs::read_to_string(built.join("arch/x86/boot/bzImage")).unwrap();
            let words: Vec<&str> = image.split_whitespace().collect();
            assert_eq!(words[0], version, "{source} {commit:?}");
            assert_eq!(words.contains(&"ccache"), which::which("ccache").is_ok());
            let config = fs::read_to_string(built.join(".config")).unwrap();
            assert!(config.contains("CONFIG_OWN=y") && config.contains("CONFIG_SCHED_CLASS_EXT=y"));
            // A second build has the tree, and another commit another directory.
            assert_eq!(build_with_tools(&request, cache.path()).unwrap(), built);
        }
        assert_eq!(in_repository(&at, &["status", "--porcelain"]), "");
        assert_eq!(in_repository(&at, &["rev-parse", "HEAD"]), commits[2]);
    }

    #[test]
    fn a_commit_that_is_not_there_is_an_error_and_leaves_nothing() {
        if which::which("git").is_err() {
            return ::tests::skipped("there is no git".to_owned());
        }
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("linux");
        fs::create_dir(&at).unwrap();
        repository(&at, &["one"]);
        let cache = tempfile::tempdir().unwrap();
        let (path, zeroes) = (at.display().to_string(), "0".repeat(40));
        let url = format!("file://{path}");
        for (source, commit) in [
            (path.as_str(), "v9"),
            (&path, "--help"),
            (&url, "v9"),
            (&url, "--upload-pack=x"),
            (&url, &zeroes),
            ("file:///no/such/repository", "v1"),
            ("debian:linux-source-6.12", "v1"),
        ] {
            let error = source_tree(source, Some(commit), cache.path()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(source), "{error}");
        }
        let left = fs::read_dir(cache.path().join("src")).into_iter().flatten();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_source_is_no_option_of_git() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("ran");
        let source = format!("--upload-pack=touch {}; x@y:z", mark.display());
        for commit in [None, Some("v1"), Some(&*"0".repeat(40))] {
            let error = source_tree(&source, commit, dir.path()).unwrap_err();
            assert!(error.to_string().contains("begin with a dash"), "{error}");
            assert!(!mark.exists());
        }
    }

    #[test]
    fn ccache_is_used_where_it_is_there() {
        assert_eq!(compiler(true), Some("CC=ccache gcc"));
        assert_eq!(compiler(false), None);
    }
}
