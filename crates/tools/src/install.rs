//! Installing a tool: its source is fetched, checked, and compiled or unpacked beside the
//! others; only then it gets its name. So a failed installation leaves nothing.

use crate::cache::{Cache, Installed, is_commit};
use crate::catalog::{GoModule, Package, Source, Tool};
use crate::error::Error;
use crate::fetch::{self, GO, last_words, run_for_output};
use confine::User;
use doors::read::{Asked, output_of_child};
use doors::started::{self, Agreed, Workshop, tool_at};
use doors::written::{self, Part};
use model::program::TOOL_FILE;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Packages of Debian with the compiler.
const COMPILER: &str = "gcc libc6-dev";

/// One step of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The source is being fetched from this place.
    Fetching(String),
    /// The compiler is at work.
    Compiling,
    /// The package is being unpacked.
    Unpacking,
}

/// Installs tools into a cache.
#[derive(Debug, Clone)]
pub struct Installer {
    cache: Cache,
    from: Option<String>,
    compiler: PathBuf,
    /// Whom the compiler runs as, if not as this process.
    user: Option<User>,
}

impl Installer {
    /// Installs into `cache`, from the places of the table, with the system's `cc`.
    pub fn new(cache: Cache) -> Self {
        Installer {
            cache,
            from: None,
            compiler: "cc".into(),
            user: None,
        }
    }

    /// Compile as another user, which only root can.
    pub fn with_user(mut self, user: Option<User>) -> Self {
        self.user = user;
        self
    }

    /// Take the source from another place: a repository or mirror, as a path or a URL, or the
    /// package itself.
    pub fn with_source(mut self, from: Option<String>) -> Self {
        self.from = from;
        self
    }

    /// Compile with another program.
    pub fn with_compiler(mut self, compiler: impl Into<PathBuf>) -> Self {
        self.compiler = compiler.into();
        self
    }

    /// The tool in the cache, fetched and built unless it is there. `version` is a commit of the
    /// repository; without one, and for packages, that of the table.
    pub fn install(
        &self,
        tool: &Tool,
        version: Option<&str>,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Installed, Error> {
        let version = checked(tool, version)?;
        let installed = match self.cache.find_installed(tool, version) {
            Some(installed) => installed,
            None => self.make(tool, version, progress)?,
        };
        self.cache.link_programs(&installed)?;
        Ok(installed)
    }

    fn make(
        &self,
        tool: &Tool,
        version: &str,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Installed, Error> {
        let all = self.cache.directory();
        let work = Part::create_in(all).map_err(Error::io("create a directory in", all))?;
        let made = work.path();
        let bin = made.join("bin");
        written::make_directory(&bin).map_err(Error::io("create", &bin))?;
        let made_from = match tool.source {
            Source::Git(git) => {
                // Before the network is asked for what could not be used.
                let compiler = self.compiler_version()?;
                let from = self.from.as_deref().unwrap_or(git.url);
                progress(Step::Fetching(from.to_owned()));
                let source = work.directory().join("source");
                fetch::checkout(tool, from, version, &source)?;
                progress(Step::Compiling);
                let build = |workshop: &Workshop, made: &Path| {
                    let mut command = workshop.build_command(&self.compiler);
                    command.args(["-O2", "-g", "-o"]).arg(made);
                    command.arg(source.join(git.file)).args(git.libraries);
                    command
                };
                self.compile(tool, build, &source, &bin)?;
                format!("commit {version}, compiled by {compiler}")
            }
            Source::Go(module) => {
                self.make_of_go(tool, module, work.directory(), &bin, progress)?
            }
            Source::Package(package) => {
                check_machine(tool, package)?;
                let from = self.from.clone().unwrap_or_else(|| tool.origin());
                progress(Step::Fetching(from));
                let of_tool = (package.path, package.sha256);
                let file = fetch::package(tool, of_tool, self.from.as_deref(), work.directory())?;
                progress(Step::Unpacking);
                unpack(tool, &file, &made)?;
                link_programs(tool, &bin)?;
                if !missing_libraries(tool, &bin, Path::new(""))?.is_empty() {
                    self.add_libraries(tool, package, &work, progress)?;
                }
                format!("Debian package {} {version}", package_name(package.path))
            }
        };
        let file = made.join(TOOL_FILE);
        written::write_file(&file, made_from + "\n").map_err(Error::io("write", &file))?;
        let root = self.cache.tool_root(tool, version);
        // What an earlier installation left there is not whole.
        work.replace_at(&root)
            .map_err(Error::io("put in place", &root))?;
        self.cache
            .find_installed(tool, version)
            .ok_or(Error::Failed {
                name: tool.name,
                done: "installed",
                why: format!("it has not all of {}", tool.programs.join(", ")),
            })
    }

    /// Compiles a module of Go; what the tool was made from.
    fn make_of_go(
        &self,
        tool: &Tool,
        module: GoModule,
        room: &Path,
        bin: &Path,
        progress: &mut dyn FnMut(Step),
    ) -> Result<String, Error> {
        let compiler = go_version()?;
        let from = self.from.as_deref();
        progress(Step::Fetching(from.unwrap_or(module.path).to_owned()));
        let source = fetch::module(tool, module, from, room)?;
        progress(Step::Compiling);
        let build = |workshop: &Workshop, made: &Path| {
            let own = workshop.user().map_or(room, |_| workshop.dir());
            let mut command = go_build(workshop, made);
            command.env("GOCACHE", own.join("go-cache"));
            command.env("GOPATH", own.join("go")).current_dir(&source);
            command
        };
        self.compile(tool, build, &source, bin)?;
        let (path, version) = (module.path, tool.version);
        Ok(format!("module {path} {version}, compiled by {compiler}"))
    }

    /// Unpacks the libraries of a package beside its programs, and starts those with them.
    fn add_libraries(
        &self,
        tool: &Tool,
        package: Package,
        work: &Part,
        progress: &mut dyn FnMut(Step),
    ) -> Result<(), Error> {
        let made = work.path();
        let bin = made.join("bin");
        let from = self.from.as_deref();
        let place = from.map_or(Some(None), |from| fetch::place_of_libraries(from).map(Some));
        // Without a place for them, the error below says how to install them.
        for library in package.libraries.iter().filter(|_| place.is_some()) {
            progress(Step::Fetching(format!("the library {}", library.package)));
            let of_library = (library.path, library.sha256);
            let file = fetch::package(
                tool,
                of_library,
                place.clone().flatten().as_deref(),
                work.directory(),
            )?;
            progress(Step::Unpacking);
            unpack(tool, &file, &made)?;
        }
        start_with_libraries(tool, package, &bin)?;
        let own = library_directory(&made.display().to_string(), package);
        let missing = missing_libraries(tool, &made.join("usr/bin"), Path::new(&own))?;
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Error::MissingLibraries {
                name: tool.name,
                missing: missing.join(", "),
                packages: package
                    .libraries
                    .iter()
                    .map(|library| library.package)
                    .collect(),
            }),
        }
    }

    /// Makes the program of a tool by the command that `build` gives for its place.
    fn compile(
        &self,
        tool: &Tool,
        build: impl FnOnce(&Workshop, &Path) -> Command,
        source: &Path,
        bin: &Path,
    ) -> Result<(), Error> {
        let program = bin.join(tool.name);
        let all = self.cache.directory();
        let workshop = Workshop::open(Agreed::by_command(), self.user.clone(), all, tool.name)
            .map_err(Error::io("make a directory for builds in", all))?;
        let made = match self.user {
            Some(_) => workshop.dir().join(tool.name),
            None => program.clone(),
        };
        let mut command = build(&workshop, &made);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |why: String| Error::Failed {
            name: tool.name,
            done: "compiled",
            why,
        };
        let child = workshop.spawn(command, &[source.to_owned()]);
        let child = child.map_err(|e| failed(e.to_string()))?;
        let output = output_of_child(child, Asked::of_work());
        succeeded(
            tool,
            "compiled",
            &output.map_err(|e| failed(e.to_string()))?,
        )?;
        match self.user {
            Some(_) => workshop
                .take_program(&made, &program)
                .map_err(Error::io("take the program that was built", made)),
            None => Ok(()),
        }
    }

    fn compiler_version(&self) -> Result<String, Error> {
        let mut command = tool_at(&self.compiler);
        command.arg("--version");
        let printed = run_for_output(command, "compiling", COMPILER)?;
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        Ok(text.lines().next().unwrap_or("cc").to_owned())
    }
}

/// Command that compiles the module in the current directory, which asks no network and stamps no
/// version.
fn go_build(workshop: &Workshop, made: &Path) -> Command {
    let mut command = workshop.build_command(fetch::go());
    command.args(["build", "-trimpath", "-buildvcs=false", "-o"]);
    command.arg(made).arg(".");
    command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    command.env("GOFLAGS", "").env("GOWORK", "off");
    command
}

/// `go version go1.26 linux/amd64`.
fn go_version() -> Result<String, Error> {
    let mut command = tool_at(&fetch::go());
    command.arg("version").env("GOTOOLCHAIN", "local");
    let printed = run_for_output(command, "compiling a module of Go", GO)?;
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    Ok(text.trim().to_owned())
}

fn succeeded(tool: &Tool, done: &'static str, output: &Output) -> Result<(), Error> {
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Failed {
            name: tool.name,
            done,
            why: last_words(output),
        }),
    }
}

fn check_machine(tool: &Tool, package: Package) -> Result<(), Error> {
    match package.machine == std::env::consts::ARCH {
        true => Ok(()),
        false => Err(Error::OtherMachine {
            name: tool.name,
            version: tool.version,
            machine: package.machine,
            here: std::env::consts::ARCH,
        }),
    }
}

/// Unpacks the files of a package.
fn unpack(tool: &Tool, package: &Path, into: &Path) -> Result<(), Error> {
    let mut command = started::tool_command("dpkg-deb");
    command.arg("--extract").arg(package).arg(into);
    let unpacked = run_for_output(command, "unpacking a package of Debian", "dpkg")?;
    succeeded(tool, "unpacked", &unpacked)
}

/// Makes a link in `bin` for each program of a package.
fn link_programs(tool: &Tool, bin: &Path) -> Result<(), Error> {
    for program in tool.programs {
        let link = bin.join(program);
        let to = Path::new("../usr/bin").join(program);
        written::write_link(&to, &link).map_err(Error::io("create a link", &link))?;
    }
    Ok(())
}

/// Puts a script in place of each link, which starts the program with the libraries beside it. It
/// becomes the program, so that tasks have the name that they are known by.
fn start_with_libraries(tool: &Tool, package: Package, bin: &Path) -> Result<(), Error> {
    for program in tool.programs {
        let script = bin.join(program);
        let text = format!(
            "#!/bin/sh\n\
             root=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\n\
             LD_LIBRARY_PATH=\"{}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\" \\\n  \
             exec \"$root/usr/bin/{program}\" \"$@\"\n",
            library_directory("$root", package)
        );
        written::remove_file(&script)
            .and_then(|_| written::write_file_with_rights(&script, 0o755, text))
            .map_err(Error::io("write", &script))?;
    }
    Ok(())
}

/// `pool/main/d/dbench/dbench_4.0-2.1_amd64.deb` is of the package dbench.
fn package_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once('_').map_or(file, |(name, _)| name)
}

/// Libraries that the programs in `bin` lack, with those in the directory `own`.
fn missing_libraries(tool: &Tool, bin: &Path, own: &Path) -> Result<Vec<String>, Error> {
    let mut missing = Vec::new();
    for program in tool.programs {
        let mut command = started::tool_command("ldd");
        command.env("LD_LIBRARY_PATH", own).arg(bin.join(program));
        let printed = run_for_output(command, "looking for libraries", "libc-bin")?;
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let lacks = text.lines().filter(|line| line.ends_with("not found"));
        let names = lacks.filter_map(|line| line.split_whitespace().next());
        missing.extend(names.map(str::to_owned));
    }
    missing.sort();
    missing.dedup();
    Ok(missing)
}

/// Directory of the libraries of an unpacked package.
fn library_directory(root: &str, package: Package) -> String {
    format!("{root}/usr/lib/{}-linux-gnu", package.machine)
}

/// The version that is meant. It becomes part of a path and an argument of git.
fn checked<'a>(tool: &Tool, version: Option<&'a str>) -> Result<&'a str, Error> {
    let Some(version) = version else {
        return Ok(tool.version);
    };
    let (is_fine, remedy) = match tool.source {
        Source::Git(_) => (
            is_commit(version),
            format!(
                "name a commit with its 40 digits: {}@{}",
                tool.name, tool.version
            ),
        ),
        Source::Package(_) | Source::Go(_) => (
            version == tool.version,
            format!("leave the version out; it is {}", tool.version),
        ),
    };
    match is_fine {
        true => Ok(version),
        false => Err(Error::BadVersion {
            name: tool.name,
            version: version.to_owned(),
            remedy,
        }),
    }
}

#[cfg(test)]
mod tests;
