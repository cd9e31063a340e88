//! Sources of tools: a commit of a git repository, or a package of Debian. Programs that every
//! user of them has (git, apt, dpkg-deb) do the work, so that proxies and mirrors are as they are
//! set up for those.

use crate::catalog::{DEBIAN, GoModule, Tool};
use crate::error::Error;
use doors::started::tool_at;
use model::printable::{last_lines, write_hexadecimal};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lines of a program's output that an error quotes.
const QUOTED_LINES: usize = 5;
/// Part of apt that fetches one file; it is in no directory of PATH.
const APT_HELPER: &str = "/usr/lib/apt/apt-helper";

/// The files of one commit, in `into`.
pub(crate) fn checkout(tool: &Tool, from: &str, commit: &str, into: &Path) -> Result<(), Error> {
    let directory = into.display().to_string();
    let cloned = git::run_git(&["clone", "--quiet", "--no-checkout"], &[from, &directory])?;
    if !cloned.status.success() {
        return Err(Error::NotFetched {
            name: tool.name,
            from: from.to_owned(),
            why: last_words(&cloned),
        });
    }
    let found = git::run_git(
        &["-C", &directory, "checkout", "--quiet", "--detach"],
        &[commit],
    )?;
    match found.status.success() {
        true => Ok(()),
        false => Err(Error::NoCommit {
            from: from.to_owned(),
            commit: commit.to_owned(),
        }),
    }
}

/// The package with this path below a mirror and this checksum, in the directory `into`.
pub(crate) fn package(
    tool: &Tool,
    (path, sha256): (&str, &'static str),
    from: Option<&str>,
    into: &Path,
) -> Result<PathBuf, Error> {
    let found = locate(path, from.unwrap_or(DEBIAN));
    let (file, from) = match found {
        Place::Here(file) => {
            let from = file.display().to_string();
            (file, from)
        }
        Place::Url(url) => {
            let file = into.join(path.rsplit('/').next().unwrap_or(path));
            download(tool, &url, &file)?;
            (file, url)
        }
    };
    let bytes = doors::read::large_file_bytes(&file).map_err(|error| Error::NotFetched {
        name: tool.name,
        from: from.clone(),
        why: error.to_string(),
    })?;
    let digest = Sha256::digest(&bytes);
    let digits = write_hexadecimal(&digest);
    match digits == sha256 {
        true => Ok(file),
        false => Err(Error::OtherChecksum {
            from,
            wanted: sha256,
            found: digits,
        }),
    }
}

/// The files of a module of Go, in a directory below `into`; from another proxy where one is named.
/// Its checksum is compared here, so that a proxy without a database of checksums will do.
pub(crate) fn module(
    tool: &Tool,
    module: GoModule,
    from: Option<&str>,
    into: &Path,
) -> Result<PathBuf, Error> {
    let named = format!("{}@{}", module.path, tool.version);
    let mut command = tool_at(&go());
    command.args(["mod", "download", "-json", &named]);
    command.current_dir(into);
    // Its files are to be removable, and no other compiler is fetched.
    command.env("GOMODCACHE", into.join("modules"));
    command
        .env("GOFLAGS", "-modcacherw")
        .env("GOTOOLCHAIN", "local");
    command.env("GOSUMDB", "off").env("GOWORK", "off");
    if let Some(from) = from {
        command.env("GOPROXY", proxy(from));
    }
    let fetched = run_for_output(command, "fetching a module of Go", GO)?;
    let not_fetched = |why: String| Error::NotFetched {
        name: tool.name,
        from: from.unwrap_or(module.path).to_owned(),
        why,
    };
    let said: serde_json::Value = serde_json::from_slice(&fetched.stdout).unwrap_or_default();
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    match (text("Error"), text("Sum"), text("Dir")) {
        (None, Some(sum), Some(directory)) if sum == module.sum => Ok(directory.into()),
        (None, Some(found), Some(_)) => Err(Error::OtherSum {
            name: tool.name,
            from: from.unwrap_or(module.path).to_owned(),
            wanted: module.sum,
            found,
        }),
        (Some(why), ..) => Err(not_fetched(last_lines(&why, QUOTED_LINES, "; "))),
        _ => Err(not_fetched(self::last_words(&fetched))),
    }
}

/// Package of Debian with the compiler of Go.
pub(crate) const GO: &str = "golang-go";
/// Where the installation that go.dev offers puts it, which is in the PATH of few.
const GO_OF_ITS_OWN: &str = "/usr/local/go/bin/go";

/// The compiler of Go.
pub(crate) fn go() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).any(|directory| directory.join("go").is_file());
    let own = Path::new(GO_OF_ITS_OWN);
    match !in_path && own.is_file() {
        true => own.to_owned(),
        false => "go".into(),
    }
}

/// A proxy of modules: its URL, or a directory that is laid out as one.
fn proxy(from: &str) -> String {
    match from.contains("://") || from.contains(',') {
        true => from.to_owned(),
        false => {
            let path = std::path::absolute(from).unwrap_or_else(|_| from.into());
            format!("file://{}", path.display())
        }
    }
}

/// The place of the libraries of a package that came from `from`: the same mirror, or the
/// directory that the package is in. `None`: the package alone was named, by its URL.
pub(crate) fn place_of_libraries(from: &str) -> Option<String> {
    if !from.ends_with(".deb") {
        return Some(from.to_owned());
    }
    let is_path = !from.contains("://");
    let parent = Path::new(from).parent().filter(|_| is_path)?;
    let here = parent.as_os_str().is_empty();
    Some(if here {
        ".".to_owned()
    } else {
        parent.display().to_string()
    })
}

enum Place {
    Here(PathBuf),
    Url(String),
}

/// `from` is the package itself, or a mirror: a directory or a URL.
fn locate(path: &str, from: &str) -> Place {
    let name = path.rsplit('/').next().unwrap_or(path);
    if from.contains("://") {
        return Place::Url(match from.ends_with(".deb") {
            true => from.to_owned(),
            false => format!("{}/{path}", from.trim_end_matches('/')),
        });
    }
    let from = PathBuf::from(from);
    let beside = from.join(name);
    Place::Here(match (from.is_dir(), beside.is_file()) {
        (true, true) => beside,
        (true, false) => from.join(path),
        (false, _) => from,
    })
}

fn download(tool: &Tool, url: &str, file: &Path) -> Result<(), Error> {
    let mut command = tool_at(Path::new(APT_HELPER));
    command.args(["download-file", "--", url]).arg(file);
    let fetched = run_for_output(command, "fetching a package of Debian", "apt")?;
    match fetched.status.success() {
        true => Ok(()),
        false => Err(Error::NotFetched {
            name: tool.name,
            from: url.to_owned(),
            why: last_words(&fetched),
        }),
    }
}

/// Output of a program, whatever its status.
pub(crate) fn run_for_output(
    mut command: Command,
    purpose: &'static str,
    package: &'static str,
) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    doors::read::output_of_work(&mut command).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            return Error::MissingProgram {
                program: program.clone(),
                purpose,
                package,
            };
        }
        Error::io("start", program.clone())(error)
    })
}

/// The last words of a program that failed.
pub(crate) fn last_words(output: &Output) -> String {
    let words = [&output.stderr, &output.stdout].map(|text| {
        let text = String::from_utf8_lossy(text);
        last_lines(&text, QUOTED_LINES, "; ")
    });
    let [error, printed] = words;
    match (error.is_empty(), printed.is_empty()) {
        (false, _) => error,
        (true, false) => printed,
        (true, true) => output.status.to_string(),
    }
}
