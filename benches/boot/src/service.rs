//! A guest that was saved with a service in it: time until the service answers again.

use crate::{Failure, Series, guest};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const MEMORY: &str = "3G";
/// Emulated CPUs start a JVM in minutes.
const START_LIMIT: Duration = Duration::from_secs(900);
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
const STEP: Duration = Duration::from_millis(20);
/// A connection that QEMU takes before the guest does leads nowhere.
const PATIENCE: Duration = Duration::from_secs(2);

/// A guest of a disk image and the service in it.
struct Lab<'a> {
    program: &'a str,
    name: String,
    port: u16,
    path: &'a str,
}

/// Starts a guest and a service in it, saves both once the service has answered, and lets them go
/// on in rounds. `service` is the path to ask for, then a line for the guest's shell, in which the
/// service is to listen on port 7000 of all its addresses.
pub fn rounds(program: &str, image: &str, service: &[String], rounds: u32) -> Result<(), Failure> {
    let [path, line] = service else {
        return Err("what to ask for (/health), and a line that starts the service".into());
    };
    let lab = Lab {
        program,
        name: format!("bench-{}", std::process::id()),
        port: std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port(),
        path,
    };
    let measured = lab.measure(image, line, rounds);
    let _ = lab.stop();
    let _ = lab.vm(&["snapshot", "delete", &lab.name]);
    measured
}

impl Lab<'_> {
    fn vm(&self, args: &[&str]) -> Result<(), Failure> {
        let output = Command::new(self.program).arg("vm").args(args).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    }

    fn stop(&self) -> Result<(), Failure> {
        self.vm(&["stop", "--name", &self.name])
    }

    fn measure(&self, image: &str, line: &str, rounds: u32) -> Result<(), Failure> {
        let name = self.name.as_str();
        let (root, forward) = (format!("image:{image}"), format!("{}:7000", self.port));
        let cpus = guest::CPUS.to_string();
        self.vm(&[
            "start",
            "--name",
            name,
            "--kernel",
            guest::KERNEL,
            "--cpus",
            &cpus,
            "--memory",
            MEMORY,
            "--root",
            &root,
            "--forward",
            &forward,
        ])?;
        // What is still in its session is ended with the shell.
        let background = format!("setsid {line} >/dev/null 2>&1 </dev/null & sleep 5");
        self.vm(&["exec", "--name", name, "sh", "-c", &background])?;
        println!(
            "started: the service answered after {:.0?}",
            self.answer(START_LIMIT)?
        );
        self.vm(&["snapshot", "create", name, "--name", name])?;
        self.stop()?;
        let mut again = Series::new("service answers again");
        for round in 0..rounds {
            println!("round {}", round + 1);
            again.add(self.restored());
            self.stop()?;
        }
        again.print();
        Ok(())
    }

    /// From the command line to the service's answer.
    fn restored(&self) -> Result<Duration, Failure> {
        let start = Instant::now();
        self.vm(&["snapshot", "restore", &self.name, "--name", &self.name])?;
        self.answer(ANSWER_LIMIT)?;
        Ok(start.elapsed())
    }

    /// Asks until the answer is 200; the time that it took.
    fn answer(&self, limit: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        loop {
            match self.ask() {
                Ok(answer) if answer.starts_with(b"HTTP/1.1 200") => return Ok(start.elapsed()),
                _ if start.elapsed() > limit => return Err("the service does not answer".into()),
                _ => std::thread::sleep(STEP),
            }
        }
    }

    fn ask(&self) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let path = self.path;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }
}
