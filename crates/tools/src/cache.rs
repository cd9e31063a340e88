//! The cache of installed tools, and the way from a name to a program.

use crate::catalog::Tool;
use crate::error::Error;
use doors::written;
use std::fs;
use std::path::{Path, PathBuf};

/// Digits of a commit that name a directory.
const SHORT_COMMIT: usize = 12;

/// A directory of installed tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    tools: PathBuf,
}

/// One installed tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Version: a commit, or that of a package.
    pub version: String,
    /// Directory with all that belongs to it.
    pub directory: PathBuf,
    /// Paths of its programs.
    pub programs: Vec<PathBuf>,
}

impl Cache {
    /// The tools of the cache directory `root`, which need not exist yet.
    pub fn in_directory(root: &Path) -> Self {
        Cache {
            tools: root.join("tools"),
        }
    }

    /// The directory with all that is installed, where links in `bin_dir` lead to.
    pub fn directory(&self) -> &Path {
        &self.tools
    }

    /// Holds a link for each installed program, by its name.
    pub fn bin_dir(&self) -> PathBuf {
        self.tools.join("bin")
    }

    /// The directory of one tool in one version.
    pub(crate) fn tool_root(&self, tool: &Tool, version: &str) -> PathBuf {
        let short = match is_commit(version) {
            true => &version[..SHORT_COMMIT],
            false => version,
        };
        self.tools.join(format!("{}-{short}", tool.name))
    }

    /// The tool in this version, if all its programs are there.
    pub fn find_installed(&self, tool: &Tool, version: &str) -> Option<Installed> {
        let directory = self.tool_root(tool, version);
        let programs = tool.programs.iter();
        let programs: Vec<_> = programs.map(|p| directory.join("bin").join(p)).collect();
        let is_there = programs.iter().all(|program| program.is_file());
        is_there.then(|| Installed {
            version: version.to_owned(),
            directory,
            programs,
        })
    }

    /// The version that workloads find: the one that the links in `bin` lead to. A commit has
    /// its first digits.
    pub fn current_version(&self, tool: &Tool) -> Option<String> {
        let link = fs::read_link(self.bin_dir().join(tool.programs.first()?)).ok()?;
        let root = link.parent()?.parent()?.file_name()?.to_str()?;
        let version = root.strip_prefix(tool.name)?.strip_prefix('-')?;
        self.find_installed(tool, version)
            .map(|installed| installed.version)
    }

    /// Makes the links of the tool's programs lead to this version.
    pub(crate) fn link_programs(&self, installed: &Installed) -> Result<(), Error> {
        let bin = self.bin_dir();
        written::make_directory(&bin).map_err(Error::io("create", &bin))?;
        for program in &installed.programs {
            let relative = program.strip_prefix(&self.tools).unwrap_or(program);
            let name = program.file_name().unwrap_or_default();
            replace_link(&bin.join(name), &Path::new("..").join(relative))?;
        }
        Ok(())
    }
}

/// True for a commit with all its digits.
pub(crate) fn is_commit(version: &str) -> bool {
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    version.len() == 40 && version.bytes().all(is_digit)
}

/// By rename, so that a reader never finds the name missing.
fn replace_link(link: &Path, program: &Path) -> Result<(), Error> {
    written::write_link(program, link).map_err(Error::io("write a link", link))
}
