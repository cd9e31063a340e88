//! Starting a process in two steps: the child exists and waits, things are done to
//! it (counters opened, a policy set), then it runs its program.

use crate::sys;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("start {program}: {source}")]
    Start { program: String, source: io::Error },
    /// A step between the start of the child and its program failed.
    #[error("{0}")]
    Refused(String),
}

/// A look at a child whose program is loaded and has not run an instruction.
pub type Look<'a> = &'a mut (dyn FnMut(i32) + Send);

/// Start `command` in a session of its own; it dies with the calling thread.
/// `prepare` is called, in another thread, with the id of the child before it runs
/// its program; an error ends the child.
pub fn spawn<T: Send>(
    command: Command,
    prepare: impl FnOnce(i32) -> Result<T, String> + Send,
) -> Result<(Child, T), SpawnError> {
    spawn_and_look(command, prepare, None)
}

/// [`spawn`] with a look at the child. Where it may not be traced (ptrace(2)), because another
/// program traces it for example, nobody looks.
pub fn spawn_and_look<T: Send>(
    mut command: Command,
    prepare: impl FnOnce(i32) -> Result<T, String> + Send,
    look: Option<Look>,
) -> Result<(Child, T), SpawnError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start_error = |source| SpawnError::Start {
        program: program.clone(),
        source,
    };
    let (told, tell) = pipe().map_err(start_error)?;
    let (gate, open_gate) = pipe().map_err(start_error)?;
    sys::own_session(&mut command);
    sys::wait_at_gate(&mut command, tell, gate);
    std::thread::scope(|scope| {
        let porter = scope.spawn(|| attend(told.into(), open_gate.into(), prepare, look));
        // This thread must be the one that forks: the child dies with it.
        let child = command.spawn();
        // Closes our ends, so that the porter does not wait for a child that never was.
        drop(command);
        let prepared = porter
            .join()
            .unwrap_or_else(|_| Err(Some("panicked while a child waited".to_owned())));
        match (child, prepared) {
            (Ok(child), Ok(prepared)) => Ok((child, prepared)),
            (_, Err(Some(why))) => Err(SpawnError::Refused(why)),
            (Err(source), _) => Err(start_error(source)),
            (Ok(mut child), Err(None)) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(start_error(io::ErrorKind::BrokenPipe.into()))
            }
        }
    })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// `Err(None)`: no child came.
fn attend<T>(
    mut told: File,
    mut gate: File,
    prepare: impl FnOnce(i32) -> Result<T, String>,
    look: Option<Look>,
) -> Result<T, Option<String>> {
    let mut pid = [0u8; 4];
    told.read_exact(&mut pid).map_err(|_| None)?;
    let pid = i32::from_ne_bytes(pid);
    let prepared = prepare(pid);
    let answer = if prepared.is_ok() { sys::GO } else { b'x' };
    let look = look.filter(|_| sys::stop_at_exec(pid).is_ok());
    // A child that is gone meanwhile is seen by the thread that forked.
    let _ = gate.write_all(&[answer]);
    if let Some(look) = look {
        sys::at_exec(pid, look);
    }
    prepared.map_err(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_can_be_done_to_a_child_before_its_program_runs() {
        let (mut child, name) = spawn(Command::new("true"), |pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|e| e.to_string())
        })
        .unwrap();
        assert!(child.wait().unwrap().success());
        assert_ne!(name.trim(), "true");
    }

    #[test]
    fn a_look_comes_before_the_first_instruction_of_the_program() {
        let root = std::path::Path::new("/");
        let mut shown = (String::new(), Vec::new(), Some(0));
        let mut look = |pid: i32| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            let ran = collect::tasks::read_stat(root, pid).map(|stat| stat.user_ns);
            shown = (
                comm.unwrap(),
                collect::tasks::read_environment(root, pid),
                ran,
            );
        };
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]).env_clear().env("GIVEN", "1");
        let (mut child, ()) = spawn_and_look(command, |_| Ok(()), Some(&mut look)).unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(3),
            "it goes on by itself"
        );
        assert_eq!((shown.0.trim(), &*shown.1), ("sh", &b"GIVEN=1\0"[..]));
        assert_eq!(shown.2, Some(0));
    }

    #[test]
    fn a_child_that_is_to_be_looked_at_can_be_refused_and_fail_to_start() {
        for (program, prepared, says) in [
            ("true", Err("not today".to_owned()), "not today"),
            (
                "/nonexistent/program",
                Ok(()),
                "start /nonexistent/program: ",
            ),
        ] {
            let mut looked = false;
            let mut look = |_| looked = true;
            let result = spawn_and_look(Command::new(program), |_| prepared, Some(&mut look));
            let said = result.unwrap_err().to_string();
            assert!(said.starts_with(says) && !looked, "{said}");
        }
    }

    #[test]
    fn a_refusal_ends_the_child_and_is_the_error() {
        let result = spawn(Command::new("true"), |_| {
            Err::<(), _>("not today".to_owned())
        });
        assert_eq!(result.unwrap_err().to_string(), "not today");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = spawn(Command::new("/nonexistent/program"), |_| Ok(())).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("start /nonexistent/program: "),
            "{error}"
        );
    }
}
