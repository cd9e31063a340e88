//! A cluster of the tests' own: real munged, slurmctld and two slurmd, whose nodes are this machine.
//! Each node has a network of its own, so that it is another machine for schedlab's lock of ordinary
//! users.

use crate::{Bench, is_root, schedlab, skipped};
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An ordinary user, which every Linux has: nobody.
const USER: u32 = 65534;
/// Time in which the nodes must be idle.
const READY: Duration = Duration::from_secs(60);

/// Two nodes, n1 and n2, of the partition `lab`. They end when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    bench: Bench,
    /// In the order in which they end.
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts it; `None` after it was said why there is none.
    pub fn start() -> Option<Self> {
        if let Some(why) = not_here() {
            skipped(why);
            return None;
        }
        let mut cluster = Cluster {
            bench: Bench::default(),
            daemons: Vec::new(),
        };
        cluster.write_files();
        let mut cables = Vec::new();
        for _ in 0..2 {
            let holder = own_network()?;
            let process = i32::try_from(holder.id()).expect("a process");
            cluster.daemons.push(holder);
            cables.push(connect(process, cables.len())?);
        }
        cluster.configure(&cables);
        cluster.munged();
        cluster.daemon(Command::new("slurmctld").arg("-D"));
        for (index, node) in ["n1", "n2"].into_iter().enumerate() {
            let network = cluster.network(index);
            cluster.daemon(Command::new("nsenter").args([&network, "slurmd", "-D", "-N", node]));
        }
        let limit = Instant::now() + READY;
        while cluster
            .ask("sinfo", &["-h", "-t", "idle", "-o", "%D"])
            .trim()
            != "2"
        {
            assert!(Instant::now() < limit, "no idle nodes:\n{}", cluster.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(cluster)
    }

    /// A path in the directory of the user's runs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// Writes an experiment file and gives its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        self.bench.file(name, text)
    }

    /// A command by an ordinary user, who knows the cluster.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.bench.dir.path())
            .env("HOME", self.bench.dir.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("SCHEDLAB_STATE_DIR", self.path("state"))
            .env("SLURM_CONF", self.path("slurm.conf"))
            .env("NO_COLOR", "1")
            .uid(USER)
            .gid(USER);
        command
    }

    /// `schedlab ARGS…` by an ordinary user.
    pub fn schedlab(&self, args: &[&str]) -> Command {
        let mut command = self.command(self.path("schedlab"));
        command.args(args);
        command
    }

    /// The same within a job that has both nodes.
    pub fn schedlab_in_job(&self, args: &[&str]) -> Command {
        let mut command = self.command("timeout");
        command.args(["120", "salloc", "--nodes=2", "--exclusive", "--quiet"]);
        command.arg(self.path("schedlab")).args(args);
        command
    }

    /// Output of `schedlab ARGS…` by an ordinary user.
    pub fn run(&self, args: &[&str]) -> Output {
        self.schedlab(args).output().expect("schedlab starts")
    }

    /// What a command of Slurm prints.
    pub fn ask(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command
            .args(args)
            .env("SLURM_CONF", self.path("slurm.conf"));
        let output = command.output().expect("a command of Slurm");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Jobs that are in the queue or run.
    pub fn jobs(&self) -> String {
        self.ask("squeue", &["-h", "-o", "%i %T"])
    }

    /// Ends everything that runs in the network of the second node, at once, and cuts its cable.
    pub fn kill_second_node(&self) {
        let holder = self.daemons[1].id();
        let network = fs::read_link(format!("/proc/{holder}/ns/net")).expect("it lives");
        // Whoever waits for an answer gets none.
        let network_of = self.network(1);
        let down = ["ip", "link", "set", "eth0", "down"];
        let cut = Command::new("nsenter").arg(network_of).args(down).status();
        assert!(cut.expect("nsenter(1)").success());
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        for process in processes {
            let of_it = fs::read_link(process.path().join("ns/net"));
            let of_it = of_it.is_ok_and(|its| its == network);
            let pid = process.file_name().to_string_lossy().parse::<i32>().ok();
            if let Some(pid) = pid
                .filter(|_| of_it)
                .and_then(rustix::process::Pid::from_raw)
            {
                // One that ended by itself is as well.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }

    /// The network of a node, as nsenter(1) is told it. The daemons that come first hold them.
    fn network(&self, node: usize) -> String {
        format!("--net=/proc/{}/ns/net", self.daemons[node].id())
    }

    /// The last lines of all daemons.
    pub fn logs(&self) -> String {
        let names = ["munged", "ctld", "n1", "n2"];
        let logs = names.map(|name| {
            let text = fs::read_to_string(self.path(&format!("log/{name}"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(10).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("{name}:\n{}", lines.join("\n"))
        });
        logs.join("\n")
    }

    fn write_files(&self) {
        for name in ["ctld", "n1", "n2", "munge", "log", "cache", "state"] {
            fs::create_dir(self.path(name)).expect("a directory");
        }
        let program = self.path("schedlab");
        let linked = fs::hard_link(schedlab(), &program);
        let there = linked.or_else(|_| fs::copy(schedlab(), &program).map(drop));
        there.expect("a program for the user");
        for name in [".", "cache", "state"] {
            chown(self.path(name), Some(USER), Some(USER)).expect("root may");
        }
    }

    /// `cables`: for each node the address here, where slurmctld is, and its own.
    fn configure(&self, cables: &[(String, String)]) {
        let (here, first, second) = (&cables[0].0, &cables[0].1, &cables[1].1);
        let uname = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
        let host = uname
            .trim()
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        let dir = self.bench.dir.path().display().to_string();
        let [ctld, n1, n2] = free_ports();
        let text = format!(
            "ClusterName=tests\nSlurmctldHost={host}({here})\nSlurmctldPort={ctld}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={dir}/munge/socket\nMpiDefault=none\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\n\
             ReturnToService=2\nSlurmdTimeout=20\n\
             SlurmctldPidFile={dir}/ctld/pid\nSlurmctldLogFile={dir}/log/ctld\n\
             StateSaveLocation={dir}/ctld\nSlurmdPidFile={dir}/%n/pid\nSlurmdLogFile={dir}/log/%n\n\
             SlurmdSpoolDir={dir}/%n\n\
             NodeName=n1 NodeHostname={host} NodeAddr={first} Port={n1} CPUs=1 State=UNKNOWN\n\
             NodeName=n2 NodeHostname={host} NodeAddr={second} Port={n2} CPUs=1 State=UNKNOWN\n\
             PartitionName=lab Nodes=n1,n2 Default=YES OverSubscribe=EXCLUSIVE State=UP\n"
        );
        fs::write(self.path("slurm.conf"), text).expect("a writable directory");
    }

    fn munged(&mut self) {
        let key = self.path("munge/key");
        let random = fs::read("/proc/sys/kernel/random/uuid").expect("random text");
        fs::write(&key, random.repeat(4)).expect("a writable directory");
        let mode = fs::Permissions::from_mode(0o400);
        fs::set_permissions(&key, mode).expect("its owner may");
        let option = |name: &str, file: &str| format!("--{name}={}", self.path(file).display());
        let options = [
            option("key-file", "munge/key"),
            option("socket", "munge/socket"),
            option("pid-file", "munge/pid"),
            option("log-file", "log/munged"),
            option("seed-file", "munge/seed"),
        ];
        let socket = self.path("munge/socket");
        self.daemon(
            Command::new("munged")
                .args(["--foreground", "--force"])
                .args(options),
        );
        let limit = Instant::now() + READY;
        while !socket.exists() {
            assert!(Instant::now() < limit, "munged: {}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn daemon(&mut self, command: &mut Command) {
        let started = command
            .env("SLURM_CONF", self.path("slurm.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.daemons
            .push(started.expect("a daemon of Slurm starts"));
    }
}

impl Drop for Cluster {
    /// Jobs end first, since slurmstepd outlives its slurmd.
    fn drop(&mut self) {
        self.ask("scancel", &["--user=nobody"]);
        let limit = Instant::now() + Duration::from_secs(20);
        while !self.jobs().trim().is_empty() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(100));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn not_here() -> Option<&'static str> {
    let is_there = |program: &str| {
        let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        places
            .iter()
            .any(|dir| Path::new(dir).join(program).exists())
    };
    let needed = ["munged", "slurmctld", "slurmd", "salloc", "ip", "nsenter"];
    match () {
        () if !is_root() => Some("slurmd needs root to start jobs of users"),
        () if !needed.iter().all(|program| is_there(program)) => {
            Some("slurmctld, slurmd, slurm-client, munge or iproute2 is not installed")
        }
        () => None,
    }
}

/// Ports that nobody has now, each another.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)));
    let listeners = listeners.map(|listener| listener.expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it has an address").port())
}

/// A process in a network of its own, which lasts as long as it does.
fn own_network() -> Option<Child> {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo; exec sleep infinity"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("unshare(1)");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it was asked for");
    let read = std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line);
    if read.is_ok_and(|bytes| bytes > 0) {
        return Some(child);
    }
    let _ = child.wait();
    skipped("no network of its own (unshare --net)");
    None
}

/// Addresses of this machine and of the network of a process, with a cable between them.
fn connect(process: i32, index: usize) -> Option<(String, String)> {
    let (of_us, name) = (
        std::process::id() % 250,
        format!("slurm{}", process % 100_000),
    );
    let subnet = format!("10.213.{of_us}");
    let (here, there) = (4 * index + 1, 4 * index + 2);
    let (here, there) = (format!("{subnet}.{here}"), format!("{subnet}.{there}"));
    let target = process.to_string();
    let inside = ["--target", &target, "--net", "ip"];
    let (of_here, of_there) = (format!("{here}/30"), format!("{there}/30"));
    let ip = |args: &[&str]| {
        let status = Command::new("ip").args(args).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let ip_there = |args: &[&str]| {
        let mut nsenter = Command::new("nsenter");
        let status = nsenter
            .args(inside)
            .args(args)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let works = ip(&[
        "link", "add", &name, "type", "veth", "peer", "name", "eth0", "netns", &target,
    ]) && ip(&["addr", "add", &of_here, "dev", &name])
        && ip(&["link", "set", &name, "up"])
        && ip_there(&["addr", "add", &of_there, "dev", "eth0"])
        && ip_there(&["link", "set", "eth0", "up"])
        && ip_there(&["link", "set", "lo", "up"])
        // Addresses of this machine beyond this cable are that of slurmctld.
        && ip_there(&["route", "add", "default", "via", &here]);
    if !works {
        skipped("no cable between two networks (ip link add … type veth)");
    }
    works.then_some((here, there))
}
