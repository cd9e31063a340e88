//! A cluster of the tests' own: real munged, slurmctld and two slurmd, whose nodes are this machine.
//! Each node has a network of its own, so that it is another machine for schedlab's lock of ordinary
//! users.

use crate::{Bench, Machine, is_root, schedlab, skipped, write_program};
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
/// Time in which the nodes must be idle; ten times as much under emulation.
const READY: Duration = Duration::from_secs(60);

/// Starts slurmd with the kernel that was prepared last, again whenever it ends, as firmware starts a
/// machine. The other kernel is this one under the name that old programs see (personality(2)).
const FIRMWARE: &str = r#"#!/bin/sh
while :; do
  case "$(cat next-$NODE 2>/dev/null)" in *_2.6.*) way="setarch --uname-2.6" ;; *) way= ;; esac
  rm -f next-$NODE
  echo boot >> boots-$NODE
  $way slurmd -D -b -N $NODE
done
"#;
/// The helper of node_features/helpers: what is prepared is kept for the firmware.
const HELPER: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
test $# = 0 && exec ./schedlab boot feature
echo "$1" > next-$NODE
"#;
const REBOOT: &str = r#"#!/bin/sh
kill "$(cat "$(dirname "$0")/$NODE/pid")"
"#;

/// Two nodes, n1 and n2, of the partition `lab`; jobs of the partition `urgent` take them away from
/// others. They end when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    bench: Bench,
    /// In the order in which they end.
    daemons: Vec<Child>,
    /// Kernels that its nodes can be restarted with; none where they are not restarted.
    kernels: Vec<String>,
}

impl Cluster {
    /// Starts it; `None` after it was said why there is none.
    pub fn start() -> Option<Self> {
        Cluster::start_with(Vec::new())
    }

    /// The same with nodes that Slurm restarts for their kernels: this machine's, and the name of it
    /// that old programs see.
    pub fn start_with_kernels() -> Option<Self> {
        let release = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        };
        let other = release("setarch", &["--uname-2.6", "uname", "-r"]);
        let Some((own, other)) = release("uname", &["-r"]).zip(other) else {
            skipped("setarch(8) of util-linux is not installed");
            return None;
        };
        Cluster::start_with(vec![own, other])
    }

    /// A cluster whose one node is a machine that Slurm restarts for these kernels, which schedlab is
    /// installed on.
    pub fn start_with_machine(machine: &Machine, kernels: Vec<String>) -> Option<Self> {
        let mut cluster = Cluster::prepare(kernels)?;
        let [ctld, _, _] = free_ports();
        let dir = cluster.path("").display().to_string();
        let helper = "/usr/local/sbin/schedlab-kernel";
        let features = features(&cluster.kernels);
        let all = features.join(",");
        let common = |here: &str| {
            let host = host_name();
            let port = machine.slurmd();
            format!(
                "ClusterName=tests\nSlurmctldHost={host}({here})\nSlurmctldPort={ctld}\nSlurmUser=root\n\
                 AuthType=auth/munge\nMpiDefault=none\nProctrackType=proctrack/linuxproc\n\
                 TaskPlugin=task/none\nSelectType=select/linear\nReturnToService=2\nSlurmdTimeout=300\n\
                 ResumeTimeout=600\nDebugFlags=NO_CONF_HASH\nNodeFeaturesPlugins=node_features/helpers\n\
                 RebootProgram=/sbin/reboot\n\
                 NodeName=m1 NodeHostname=machine NodeAddr=127.0.0.1 Port={port} CPUs=1 Feature={all} \
                 State=UNKNOWN\n\
                 PartitionName=lab Nodes=m1 Default=YES OverSubscribe=EXCLUSIVE State=UP\n"
            )
        };
        let here = format!(
            "AuthInfo=socket={dir}/munge/socket\nSlurmctldPidFile={dir}/ctld/pid\n\
             SlurmctldLogFile={dir}/log/ctld\nStateSaveLocation={dir}/ctld\n{}",
            common("127.0.0.1")
        );
        let helpers = helpers(&features, helper);
        // The address of this machine in QEMU's user network.
        let there = format!("SlurmdLogFile=/var/log/slurmd\n{}", common("10.0.2.2"));
        // Otherwise slurmd asks systemd over D-Bus, which is not there.
        let cgroup = "IgnoreSystemd=yes\n".to_owned();
        for (name, text) in [
            ("slurm.conf", &here),
            ("there.conf", &there),
            ("helpers.conf", &helpers),
            ("cgroup.conf", &cgroup),
        ] {
            fs::write(cluster.path(name), text).expect("a writable directory");
        }
        cluster.munged();
        cluster.daemon(Command::new("slurmctld").arg("-D"));
        let script = "#!/bin/sh\nexec /usr/local/bin/schedlab boot feature \"$@\"\n";
        write_program(&cluster.path("kernel-helper"), script);
        for (from, to) in [
            ("munge/key", "/etc/munge/munge.key"),
            ("there.conf", "/etc/slurm/slurm.conf"),
            ("helpers.conf", "/etc/slurm/helpers.conf"),
            ("cgroup.conf", "/etc/slurm/cgroup.conf"),
            ("kernel-helper", helper),
        ] {
            machine.copy(&cluster.path(from), to);
        }
        machine.wait(
            "chown munge: /etc/munge/munge.key && chmod 400 /etc/munge/munge.key && \
             systemctl enable --now munge slurmd",
        );
        cluster.ready("1", READY * 10);
        Some(cluster)
    }

    /// Its files, without daemons; `None` after it was said why there can be none.
    fn prepare(kernels: Vec<String>) -> Option<Self> {
        if let Some(why) = not_here() {
            skipped(why);
            return None;
        }
        let cluster = Cluster {
            bench: Bench::default(),
            daemons: Vec::new(),
            kernels,
        };
        cluster.write_files();
        Some(cluster)
    }

    /// Waits until so many nodes are idle.
    fn ready(&self, nodes: &str, time: Duration) {
        let limit = Instant::now() + time;
        let idle = ["-h", "-p", "lab", "-t", "idle", "-o", "%D"];
        while self.ask("sinfo", &idle).trim() != nodes {
            assert!(Instant::now() < limit, "no idle nodes:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn start_with(kernels: Vec<String>) -> Option<Self> {
        let mut cluster = Cluster::prepare(kernels)?;
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
            let mut slurmd = Command::new("nsenter");
            match cluster.kernels.is_empty() {
                true => slurmd.args([&network, "slurmd", "-D", "-N", node]),
                false => slurmd.args([&network, "./firmware"]).env("NODE", node),
            };
            let dir = cluster.path("");
            cluster.daemon(slurmd.current_dir(dir));
        }
        cluster.ready("2", READY);
        Some(cluster)
    }

    /// Kernels of its nodes, by their releases.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
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
        let host = host_name();
        let dir = self.bench.dir.path().display().to_string();
        let [ctld, n1, n2] = free_ports();
        let (features, restarts) = self.restarts(&dir);
        let text = format!(
            "ClusterName=tests\nSlurmctldHost={host}({here})\nSlurmctldPort={ctld}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={dir}/munge/socket\nMpiDefault=none\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\n\
             ReturnToService=2\nSlurmdTimeout=20\n\
             SlurmctldPidFile={dir}/ctld/pid\nSlurmctldLogFile={dir}/log/ctld\n\
             StateSaveLocation={dir}/ctld\nSlurmdPidFile={dir}/%n/pid\nSlurmdLogFile={dir}/log/%n\n\
             SlurmdSpoolDir={dir}/%n\n\
             NodeName=n1 NodeHostname={host} NodeAddr={first} Port={n1} CPUs=1 {features} State=UNKNOWN\n\
             NodeName=n2 NodeHostname={host} NodeAddr={second} Port={n2} CPUs=1 {features} State=UNKNOWN\n\
             PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n\
             PartitionName=lab Nodes=n1,n2 Default=YES OverSubscribe=EXCLUSIVE State=UP PriorityTier=1 \
             GraceTime=30\n\
             PartitionName=urgent Nodes=n1,n2 OverSubscribe=EXCLUSIVE State=UP PriorityTier=10 \
             PreemptMode=OFF\n{restarts}"
        );
        fs::write(self.path("slurm.conf"), text).expect("a writable directory");
    }

    /// Lines of slurm.conf about nodes that are restarted, with the files that they need.
    fn restarts(&self, dir: &str) -> (String, String) {
        if self.kernels.is_empty() {
            return (String::new(), String::new());
        }
        let programs = [
            ("firmware", FIRMWARE),
            ("helper", HELPER),
            ("reboot", REBOOT),
        ];
        for (name, text) in programs {
            write_program(&self.path(name), text);
        }
        let features = features(&self.kernels);
        let helpers = helpers(&features, &format!("{dir}/helper"));
        fs::write(self.path("helpers.conf"), helpers).expect("a writable directory");
        let restarts =
            format!("NodeFeaturesPlugins=node_features/helpers\nRebootProgram={dir}/reboot\n");
        (format!("Feature={}", features.join(",")), restarts)
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
        // What the firmware has started outlives it.
        for node in ["n1", "n2"].iter().filter(|_| !self.kernels.is_empty()) {
            let pid = fs::read_to_string(self.path(&format!("{node}/pid")));
            let pid = pid.ok().and_then(|pid| pid.trim().parse().ok());
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn host_name() -> String {
    let uname = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let host = uname.trim().split('.').next();
    host.unwrap_or_default().to_owned()
}

/// Features of nodes with these kernels, as `schedlab boot feature` calls them.
fn features(kernels: &[String]) -> Vec<String> {
    let feature = |kernel: &String| format!("kernel_{}", kernel.replace(['+', '-'], "_"));
    kernels.iter().map(feature).collect()
}

/// helpers.conf(5) for these features.
fn helpers(features: &[String], helper: &str) -> String {
    let lines = features
        .iter()
        .map(|feature| format!("Feature={feature} Helper={helper}\n"));
    let all = features.join(",");
    format!(
        "{}MutuallyExclusive={all}\nBootTime=600\n",
        lines.collect::<String>()
    )
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
