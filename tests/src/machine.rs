//! A real Debian with GRUB, systemd and sshd on a disk of its own, in QEMU: what reboots are tested
//! on. `scripts/machine-image` makes the disk, which is kept below target/.

use crate::{Bench, is_root, no_guests, schedlab, skipped, stdout};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Under emulation, beside other work.
const UP: Duration = Duration::from_secs(600);

/// QEMU's name of its network.
const NETWORK: &str = "net0";

/// A machine that is up, or has no power.
#[derive(Debug)]
pub struct Machine {
    bench: Bench,
    port: u16,
    /// The same here and there, for slurmd.
    slurmd: u16,
    power: Option<Child>,
}

impl Machine {
    /// Gives it power for the first time; `None` after it was said why there is none.
    pub fn start() -> Option<Self> {
        if let Some(why) = no_guests() {
            skipped(why);
            return None;
        }
        if !is_root() {
            skipped("only root makes the disk of a machine");
            return None;
        }
        let image = image()?;
        let ports = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let ports = ports.map(|listener| listener.expect("a free port"));
        let [port, slurmd] = ports.map(|l| l.local_addr().expect("it has an address").port());
        let mut machine = Machine {
            bench: Bench::default(),
            port,
            slurmd,
            power: None,
        };
        let disk = machine.bench.path("disk");
        run(Command::new("cp")
            .arg("--sparse=always")
            .arg(image)
            .arg(disk));
        machine.write_configuration();
        machine.power_on();
        Some(machine)
    }

    fn write_configuration(&self) {
        let text = format!(
            "Host machine\nHostName 127.0.0.1\nPort {}\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile none\nStrictHostKeyChecking accept-new\n",
            self.port,
            key().display(),
            self.bench.path("known_hosts").display(),
        );
        self.bench.file("config", &text);
    }

    /// File of this test.
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// Port of slurmd, here and there.
    pub fn slurmd(&self) -> u16 {
        self.slurmd
    }

    /// This program without what a debugger needs, which is a fraction of its size.
    pub fn stripped(&self) -> PathBuf {
        let stripped = self.bench.path("schedlab");
        if !stripped.exists() {
            run(Command::new("strip")
                .arg("-o")
                .arg(&stripped)
                .arg(schedlab()));
        }
        stripped
    }

    /// The table `[target]` of an experiment that reaches it over ssh.
    pub fn target(&self) -> String {
        let config = self.bench.path("config");
        format!(
            "[target]\nkind = \"ssh\"\nhost = \"root@machine\"\nconfig = \"{}\"\n",
            config.display()
        )
    }

    /// That table of an experiment that restarts it.
    pub fn target_that_reboots(&self) -> String {
        self.target() + "reboots = \"grub\"\n"
    }

    /// Waits until it is up.
    pub fn power_on(&mut self) {
        let console = File::options()
            .create(true)
            .append(true)
            .open(self.bench.path("console"));
        let console = console.expect("a writable directory");
        let mut qemu = Command::new("qemu-system-x86_64");
        // KVM may be there and not work. cmpxchg16b of QEMU 7.2 corrupts lists of Linux 6.12.
        qemu.args(["-accel", "tcg", "-cpu", "max,-cx16", "-m", "768"]);
        qemu.arg("-nographic");
        let disk = self.bench.path("disk");
        // What the machine has written is kept when this process is killed, and it alone is.
        let disk = format!("file={},if=virtio,format=raw,cache=unsafe", disk.display());
        qemu.args(["-drive", &disk]);
        let port = self.port;
        let network =
            format!("user,id={NETWORK},model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{port}-:22");
        let slurmd = self.slurmd;
        let network = format!("{network},hostfwd=tcp:127.0.0.1:{slurmd}-:{slurmd}");
        qemu.args(["-nic", &network]);
        let monitor = self.bench.path("monitor");
        let monitor = format!("unix:{},server=on,wait=off", monitor.display());
        qemu.args(["-qmp", &monitor]);
        qemu.stdin(Stdio::null())
            .stdout(console)
            .stderr(Stdio::null());
        self.power = Some(qemu.spawn().expect("QEMU starts"));
        self.wait("true");
    }

    /// Takes its power away, whatever it does.
    pub fn power_off(&mut self) {
        if let Some(mut qemu) = self.power.take() {
            let _ = qemu.kill();
            let _ = qemu.wait();
        }
    }

    /// Pulls its network's plug, or puts it back.
    pub fn plug(&self, is_in: bool) {
        let monitor = UnixStream::connect(self.bench.path("monitor")).expect("QEMU listens");
        let mut said = BufReader::new(&monitor).lines().map_while(Result::ok);
        let link = format!(
            "{{\"execute\":\"set_link\",\"arguments\":{{\"name\":\"{NETWORK}\",\"up\":{is_in}}}}}"
        );
        for asked in ["{\"execute\":\"qmp_capabilities\"}", &link] {
            (&monitor).write_all(asked.as_bytes()).expect("QEMU reads");
            let answer =
                said.find(|line| line.contains("\"return\"") || line.contains("\"error\""));
            let answer = answer.expect("QEMU answers");
            assert!(answer.contains("return"), "{asked}: {answer}");
        }
    }

    /// A shell command there.
    pub fn command(&self, script: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.bench.path("config"));
        ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        ssh.args(["-o", "ServerAliveInterval=10", "root@machine", script]);
        ssh
    }

    /// Output of a shell command there, tried again until it succeeds.
    pub fn wait(&self, script: &str) -> String {
        let limit = Instant::now() + UP;
        loop {
            let output = self.command(script).output().expect("ssh starts");
            if output.status.success() {
                return stdout(&output);
            }
            assert!(
                Instant::now() < limit,
                "{script}: {output:?}\n{}",
                self.console()
            );
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    /// Puts a file there.
    pub fn copy(&self, from: &Path, to: &str) {
        let script = format!("cat > {to} && chmod 755 {to}");
        let file = File::open(from).expect("a readable file");
        run(self.command(&script).stdin(file));
    }

    /// The last that its console said.
    pub fn console(&self) -> String {
        let text = std::fs::read(self.bench.path("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power_off();
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/machine")
}

fn key() -> PathBuf {
    directory().join("key")
}

/// The disk as the script makes it now; `None`, said, where Debian or a program for it is out of reach.
fn image() -> Option<PathBuf> {
    let image = directory().join("machine.img");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scripts/machine-image");
    let modified = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    if modified(&image) > modified(&script) {
        return Some(image);
    }
    std::fs::create_dir_all(directory()).expect("a writable directory");
    if !key().exists() {
        run(Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(key()));
    }
    let made = Command::new(script)
        .arg(&image)
        .arg(directory().join("key.pub"))
        .output()
        .expect("the script starts");
    if made.status.success() {
        return Some(image);
    }
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert_eq!(made.status.code(), Some(3), "{said}");
    skipped(said.trim());
    None
}
