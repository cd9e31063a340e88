//! The tools that schedlab can install. A new one is an entry of [`TOOLS`].

use crate::error::Error;

/// A benchmark that can be installed by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Name for `schedlab tool install`.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Licence of the tool, in the words that a user sees before it is fetched.
    pub licence: &'static str,
    /// Programs that it brings.
    pub programs: &'static [&'static str],
    /// Version that was tried: a commit, or the version of a package.
    pub version: &'static str,
    /// Place that it comes from.
    pub source: Source,
}

/// The place that a tool comes from. All forms are checked: a commit names its content, and a
/// package or a module has a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A commit of a git repository.
    Git(Git),
    /// A package of Debian 12.
    Package(Package),
    /// A module of Go.
    Go(GoModule),
}

/// One C file of a git repository. The compiler alone reads it: no Makefile or script of the
/// repository runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Git {
    /// Repository.
    pub url: &'static str,
    /// File that becomes the program.
    pub file: &'static str,
    /// Arguments of the compiler behind the file.
    pub libraries: &'static [&'static str],
}

/// A module of Go that needs no other module. The compiler alone reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoModule {
    /// Path of the module, which has the program at its top.
    pub path: &'static str,
    /// Checksum of its files, as go.sum has it.
    pub sum: &'static str,
}

/// A package of Debian, which is unpacked and not installed: no script of it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Path below a mirror of Debian.
    pub path: &'static str,
    /// SHA-256 of the package, in hexadecimal digits.
    pub sha256: &'static str,
    /// Machine that its programs are for, as Rust names it (`std::env::consts::ARCH`).
    pub machine: &'static str,
    /// Packages with libraries that its programs need besides the C library. Where one is not
    /// installed, it is fetched and unpacked beside the programs.
    pub libraries: &'static [Library],
}

/// A package of Debian with a library, which is unpacked and not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Name of the package, for those who would rather install it.
    pub package: &'static str,
    /// Path below a mirror of Debian.
    pub path: &'static str,
    /// SHA-256 of the package, in hexadecimal digits.
    pub sha256: &'static str,
}

/// The mirror that packages come from unless another is named.
pub(crate) const DEBIAN: &str = "http://deb.debian.org/debian";

/// All tools, in order of name.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "http-echo",
        about: "an HTTP server that always gives the same answer, for the server `http-echo`",
        licence: "MPL-2.0",
        programs: &["http-echo"],
        version: "v1.0.0",
        source: Source::Go(GoModule {
            path: "github.com/hashicorp/http-echo",
            sum: "h1:89/jSHhCJH92B1lRc5yyhYU9zpjU3gJUT0KqYHtC35I=",
        }),
    },
    Tool {
        name: "netperf",
        about: "requests and responses over TCP or UDP, for the kind `netperf`",
        licence: "Hewlett-Packard's own: use and changes are free, distribution only for \
                  non-commercial purposes (Debian non-free)",
        programs: &["netperf", "netserver"],
        version: "2.7.0-0.1",
        source: Source::Package(Package {
            path: "pool/non-free/n/netperf/netperf_2.7.0-0.1_amd64.deb",
            sha256: "c20d6afd858945a6e7b35b560d6764192fe35fa0a00e7d78b7bb0ac62df761b2",
            machine: "x86_64",
            libraries: &[],
        }),
    },
    Tool {
        name: "rt-app",
        about: "periodic tasks described in JSON: slack and wakeup latency",
        licence: "GPL-2.0-only",
        programs: &["rt-app"],
        version: "1.0-1",
        source: Source::Package(Package {
            path: "pool/main/r/rt-app/rt-app_1.0-1_amd64.deb",
            sha256: "67ffca24048cc9292921d9b4cb3f0840e828613f5c7da96a28f3b4f43127965d",
            machine: "x86_64",
            libraries: &[Library {
                package: "libjson-c5",
                path: "pool/main/j/json-c/libjson-c5_0.16-2_amd64.deb",
                sha256: "d0e1ed8637d1c26b9720f6057d6355f18378bba5cc2553e459d1632783c00d70",
            }],
        }),
    },
    Tool {
        name: "schbench",
        about: "message threads wake workers over futexes, for the kind `schbench`",
        licence: "GPL-2.0-only",
        programs: &["schbench"],
        version: "24e32b8ef67cbafb0761aed68747d90a291767ae",
        source: Source::Git(Git {
            url: "https://github.com/masoncl/schbench",
            file: "schbench.c",
            libraries: &["-lpthread", "-lm"],
        }),
    },
    Tool {
        name: "tbench",
        about: "a file server's traffic over TCP: tbench, tbench_srv and dbench",
        licence: "GPL-2.0-or-later",
        programs: &["dbench", "tbench", "tbench_srv"],
        version: "4.0-2.1",
        source: Source::Package(Package {
            path: "pool/main/d/dbench/dbench_4.0-2.1_amd64.deb",
            sha256: "3b42a52a8609c06a66c0f86cdd9184627eb654ab27949689b10653bbf8938738",
            machine: "x86_64",
            libraries: &[Library {
                package: "libpopt0",
                path: "pool/main/p/popt/libpopt0_1.19+dfsg-1_amd64.deb",
                sha256: "6f94b488255acd996254f775c77ff3956557c61f860a3c9caeaf65457554194f",
            }],
        }),
    },
];

/// The entry of this name.
pub fn find_tool(name: &str) -> Result<&'static Tool, Error> {
    let found = TOOLS.iter().find(|tool| tool.name == name);
    found.ok_or_else(|| Error::UnknownName {
        name: name.to_owned(),
        nearest: model::find_nearest(name, TOOLS.iter().map(|tool| tool.name)),
    })
}

impl Tool {
    /// The repository or the file that it comes from unless another place is named.
    pub fn origin(&self) -> String {
        match self.source {
            Source::Git(git) => git.url.to_owned(),
            Source::Package(package) => format!("{DEBIAN}/{}", package.path),
            Source::Go(module) => module.path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_source_can_be_checked() {
        assert!(TOOLS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for tool in TOOLS {
            let is_hex = |text: &str, digits: usize| {
                text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
            };
            let (digits, length) = match tool.source {
                Source::Git(_) => (tool.version, 40),
                Source::Package(package) => {
                    assert!(package.path.contains(tool.version), "{}", package.path);
                    for library in package.libraries {
                        assert!(is_hex(library.sha256, 64), "{}", library.package);
                        assert!(library.path.contains(library.package), "{}", library.path);
                    }
                    (package.sha256, 64)
                }
                Source::Go(module) => {
                    // 32 bytes in base64.
                    let sum = module.sum.strip_prefix("h1:");
                    assert!(sum.is_some_and(|s| s.len() == 44 && s.ends_with('=')));
                    assert!(tool.version.starts_with('v'), "{}", tool.version);
                    continue;
                }
            };
            assert!(is_hex(digits, length), "{}", tool.name);
        }
    }

    #[test]
    fn a_mistyped_name_has_a_nearest_one() {
        let error = find_tool("schbenhc").unwrap_err().to_string();
        assert!(error.contains("did you mean `schbench`?"), "{error}");
        let error = find_tool("quake").unwrap_err().to_string();
        assert!(error.contains("schedlab tool list"), "{error}");
    }
}
