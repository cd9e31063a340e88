//! A real sshd of the tests' own, on a port of the loopback address: nothing of the machine's or
//! the user's configuration of ssh is read or changed.

use crate::{skipped, write_program};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// An sshd, which ends with its sessions when it is dropped.
#[derive(Debug)]
pub struct Sshd {
    dir: tempfile::TempDir,
    port: u16,
}

impl Sshd {
    /// Starts it; `None` after it was said why there is none.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with shell scripts in front of the programs of PATH, by name.
    pub fn start_with(programs: &[(&str, &str)]) -> Option<Self> {
        let Some(program) = crate::program("sshd") else {
            skipped("sshd is not installed");
            return None;
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        drop(listener);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let sshd = Sshd { dir, port };
        for name in ["host", "other", "user"] {
            key(&sshd.path(name));
        }
        fs::create_dir(sshd.path("bin")).expect("a directory");
        for (name, script) in programs {
            write_program(
                &sshd.path("bin").join(name),
                format!("#!/bin/sh\n{script}\n"),
            );
        }
        let authorized = fs::copy(sshd.path("user.pub"), sshd.path("authorized"));
        authorized.expect("a writable directory");
        sshd.trust("host");
        sshd.write_configurations();
        // An empty directory that every sshd of root needs, and most systems make at boot.
        let _ = fs::create_dir_all("/run/sshd");
        let started = Command::new(program)
            .arg("-f")
            .arg(sshd.path("sshd_config"))
            .status();
        assert!(
            started.expect("sshd starts").success(),
            "sshd refuses its configuration"
        );
        let limit = Instant::now() + Duration::from_secs(30);
        while sshd.pid().is_none() {
            assert!(Instant::now() < limit, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(sshd)
    }

    fn write_configurations(&self) {
        let path = |name: &str| self.path(name).display().to_string();
        let usual = std::env::var("PATH").unwrap_or_default();
        let server = format!(
            "Port {}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile {}\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             SetEnv SCHEDLAB_STATE_DIR={} XDG_CACHE_HOME={} PATH={}:{usual}\n",
            self.port,
            path("host"),
            path("authorized"),
            path("pid"),
            path("state"),
            path("cache"),
            path("bin"),
        );
        fs::write(self.path("sshd_config"), server).expect("a writable directory");
        let user = Command::new("id")
            .arg("-un")
            .output()
            .expect("id(1)")
            .stdout;
        let client = format!(
            "Host lab\nHostName 127.0.0.1\nPort {}\nUser {}\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile none\n",
            self.port,
            String::from_utf8_lossy(&user).trim(),
            path("user"),
            path("known_hosts"),
        );
        fs::write(self.path("config"), client).expect("a writable directory");
    }

    /// File or directory of this sshd: `config`, `known_hosts`, `cache`, `state`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The table `[target]` of an experiment for the machine behind it.
    pub fn target(&self) -> String {
        let config = self.path("config");
        let config = config.display();
        format!("[target]\nkind = \"ssh\"\nhost = \"lab\"\nconfig = \"{config}\"\n")
    }

    /// Lets the client know this key as that of the machine: `host`, or `other` for a wrong one.
    pub fn trust(&self, name: &str) {
        let key = fs::read_to_string(self.path(&format!("{name}.pub"))).expect("a key");
        let line = format!("[127.0.0.1]:{} {key}", self.port);
        fs::write(self.path("known_hosts"), line).expect("a writable directory");
    }

    /// Ends all connections as the loss of the line would; new ones can be made.
    pub fn cut(&self) -> usize {
        let sessions = self.pid().map(sessions).unwrap_or_default();
        for pid in &sessions {
            kill(*pid);
        }
        sessions.len()
    }

    fn pid(&self) -> Option<i32> {
        fs::read_to_string(self.path("pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let sessions = sessions(pid);
            kill(pid);
            sessions.into_iter().for_each(kill);
        }
    }
}

fn key(path: &Path) {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path);
    assert!(command.status().expect("ssh-keygen").success());
}

fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// The processes of sshd below the one that listens, and no others: what they run is left alone.
fn sessions(listener: i32) -> Vec<i32> {
    let mut found = vec![listener];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(parent));
        next += 1;
    }
    found.split_off(1)
}

fn children(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let of_parent = stats.filter_map(|stat| {
        let (head, tail) = stat.rsplit_once(") ")?;
        let (pid, name) = head.split_once(" (")?;
        let own = tail.split(' ').nth(1)? == parent.to_string() && name.starts_with("sshd");
        own.then(|| pid.parse().ok())?
    });
    of_parent.collect()
}
