//! Programs that schedlab did not bring, and the tasks by which a scheduler knows them.

/// The file beside a tool that schedlab installed, which says in one line what the tool was made
/// from. It is above the directory of the tool's programs.
pub const TOOL_FILE: &str = "schedlab-tool";

/// A program from PATH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Name of the program, looked up on PATH.
    pub name: &'static str,
    /// Argument that makes it print its version; `None` for a program that cannot.
    pub version: Option<&'static str>,
    /// Debian package that has it; `None` where no package does. One that is outside of Debian's
    /// main archive has the name of its part in front, such as `non-free/netperf`.
    pub package: Option<&'static str>,
}

/// Tasks, by a name that does not change while they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Threads whose name (`/proc/PID/comm`) fits this pattern, such as `wakeup-*`.
    Thread(&'static str),
    /// All threads of the processes with this name.
    Process(&'static str),
}
