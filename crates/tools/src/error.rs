//! Errors when a tool is installed or looked up.

use std::path::PathBuf;

/// Error in installing a tool.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that the table does not have.
    #[error(
        "`{name}` is no tool that schedlab can install; {}",
        .nearest.map_or("`schedlab tool list` has all".to_owned(), |n| format!("did you mean `{n}`?"))
    )]
    UnknownName {
        /// Name as it was given.
        name: String,
        /// Name of the table that is close to it, if any.
        nearest: Option<&'static str>,
    },
    /// A text after the `@` that is no version of the tool.
    #[error("`{version}` is no version of {name} that can be installed")]
    BadVersion {
        /// Name of the tool.
        name: &'static str,
        /// Text in the place of the version.
        version: String,
        /// Remedy in words.
        remedy: String,
    },
    /// A program that the installation starts is not on this machine.
    #[error("{purpose} needs `{program}`, which is not installed")]
    MissingProgram {
        /// Name of the program.
        program: String,
        /// Purpose of the program.
        purpose: &'static str,
        /// Debian package that has it.
        package: &'static str,
    },
    /// A package for other machines.
    #[error("{name} {version} is a package for {machine}, and this machine is {here}")]
    OtherMachine {
        /// Name of the tool.
        name: &'static str,
        /// Version of the package.
        version: &'static str,
        /// Machine that the package is for.
        machine: &'static str,
        /// This machine.
        here: &'static str,
    },
    /// The source was not to be had.
    #[error("{name} could not be fetched from {from}: {why}")]
    NotFetched {
        /// Name of the tool.
        name: &'static str,
        /// Repository, file or URL.
        from: String,
        /// Last words of the program that fetched it.
        why: String,
    },
    /// A repository without the commit.
    #[error("{from} has no commit {commit}")]
    NoCommit {
        /// Repository.
        from: String,
        /// Commit that was wanted.
        commit: String,
    },
    /// A package that is not the one of the table.
    #[error("the package from {from} is another one: its SHA-256 is {found} and not {wanted}")]
    OtherChecksum {
        /// File or URL.
        from: String,
        /// Checksum in the table.
        wanted: &'static str,
        /// Checksum of the file.
        found: String,
    },
    /// A module that is not the one of the table.
    #[error(
        "the module {name} from {from} is another one: its checksum is {found} and not {wanted}"
    )]
    OtherSum {
        /// Name of the tool.
        name: &'static str,
        /// Path of the module, or the proxy.
        from: String,
        /// Checksum in the table.
        wanted: &'static str,
        /// Checksum of what was fetched.
        found: String,
    },
    /// The compiler or the unpacking program ended with an error.
    #[error("{name} could not be {done}: {why}")]
    Failed {
        /// Name of the tool.
        name: &'static str,
        /// Step as a participle, such as "compiled".
        done: &'static str,
        /// Last words of the program.
        why: String,
    },
    /// Programs that do not find their libraries here.
    #[error("the programs of {name} do not find their libraries here: {missing}")]
    MissingLibraries {
        /// Name of the tool.
        name: &'static str,
        /// Names of the libraries.
        missing: String,
        /// Debian packages that have them.
        packages: Vec<&'static str>,
    },
    /// git did not run.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// The operating system refused a step.
    #[error("{step}: {}: {source}", object.display())]
    Io {
        /// Step that failed, as in "create a link".
        step: &'static str,
        /// File or directory that the step was about.
        object: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: names the step and what it was done to.
    pub(crate) fn io(
        step: &'static str,
        object: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let object = object.into();
        move |source| Error::Io {
            step,
            object,
            source,
        }
    }

    /// True if the fault is in the words of the command line.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::UnknownName { .. } | Error::BadVersion { .. })
    }

    /// The way out, where there is one.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Error::UnknownName { .. } | Error::Git(_) | Error::Io { .. } => return None,
            Error::BadVersion { remedy, .. } => remedy.clone(),
            Error::MissingProgram { package, .. } => format!("apt-get install {package}"),
            Error::OtherMachine { name, .. } => {
                format!("install {name} with your distribution, or build it and put it on PATH")
            }
            Error::NotFetched { .. } => {
                "check the network, or name a local mirror: --from PATH".to_owned()
            }
            Error::NoCommit { .. } => "name a mirror that has it: --from PATH; another commit is \
                                       installed as NAME@COMMIT"
                .to_owned(),
            Error::OtherSum { .. } => "fetch it from another proxy: --from URL".to_owned(),
            Error::OtherChecksum { .. } => {
                "fetch it again, or from another mirror: --from PATH".to_owned()
            }
            Error::Failed { .. } => {
                "run the command by hand to see more, or put the program on PATH yourself"
                    .to_owned()
            }
            Error::MissingLibraries { packages, .. } if !packages.is_empty() => {
                format!("apt-get install {}", packages.join(" "))
            }
            Error::MissingLibraries { .. } => {
                "install the libraries; the package is one of Debian 12".to_owned()
            }
        })
    }
}
