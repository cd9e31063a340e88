use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tests::{Bench, Image, SmallDisk, Sshd, is_root, sched_program};

/// A knob that a locked-down kernel lets root write, with no effect on what runs.
const KNOB: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";

/// A service in a container. Podman raises limits unless they are given, which needs CAP_SYS_RESOURCE.
const CONTAINER: &str = r#"[[workload.service]]
name = "web"
image = "IMAGE"
options = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
command = ["httpd", "-f", "-p", "127.0.0.1:{port}", "-h", "{folder}"]
ports = ["http"]
files = { "index.html" = "ready" }
stop-limit = "100ms"
"#;

const XEN: &str = r#"[target]
kind = "xen"
accel = "tcg"
memory = "2G"
[[arm]]
name = "credit2"
hypervisor-scheduler = "credit2"
[[arm]]
name = "cpu 1"
hypervisor-scheduler = { scheduler = "credit2", cpus = "1" }
[[workload]]
kind = "burnwait"
workers = "guests"
loads = [1]
duration = "3s"
warmup = "2s"
interval = "1s"
time-limit = "20m"
[[workload.set]]
name = "one"
events = ["500 10us"]
"#;

/// Changes and processes of a trial that a kill could leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// A policy of the workload, whose processes leave their session.
    Policy,
    /// A knob of the kernel.
    Tunables,
    /// The same knob, which takes turns inside one process.
    Turns,
    /// A deadline policy.
    Deadline,
    /// The knob of a machine behind ssh, whose sshd is the test's own.
    Ssh,
    /// A bisection of a program, whose steps are runs.
    Bisection,
    /// Groups with weights around a server and its neighbour.
    Cgroups,
    /// A server that writes over its own environment.
    Services,
    /// A service in a container of Podman.
    Containers,
    /// A workload that leaves no room for the journal.
    FullDisk,
    /// A sched_ext scheduler in a guest with its own kernel; a policy where none is built.
    Guest,
    /// Guests of Xen in a pool of their own; Xen is in a virtual machine.
    Xen,
}

/// A mechanism, ready to run in one directory.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The path of the experiment file.
    pub(crate) experiment: String,
    /// The number of trials of its plan.
    pub(crate) places: u32,
    pub(crate) environment: Vec<(String, PathBuf)>,
    /// The file of a workload that fills a disk.
    fill: Option<PathBuf>,
    _disk: Option<SmallDisk>,
    /// Where its processes are known by, besides the bench's own.
    pub(crate) directories: Vec<PathBuf>,
    _sshd: Option<Sshd>,
    _image: Option<Image>,
}

impl Prepared {
    /// Removes what the workload itself left on the disk when it was killed.
    pub(crate) fn make_room(&self) {
        let _ = self.fill.as_deref().map(fs::remove_file);
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Mechanism {
    /// True where one run has it at a time; the others go beside runs that turn knobs.
    pub fn needs_lock_of_runs(self) -> bool {
        self.knob().is_some() || self == Mechanism::Deadline
    }

    /// The knob of this machine that its arm turns. Runs of others beside it may turn any other.
    pub(crate) fn knob(self) -> Option<&'static Path> {
        use Mechanism::{FullDisk, Ssh, Tunables, Turns};
        matches!(self, Tunables | Turns | Ssh | FullDisk).then(|| Path::new(KNOB))
    }

    /// All mechanisms, in the order in which they are tried.
    pub const ALL: [Mechanism; 12] = [
        Mechanism::Policy,
        Mechanism::Tunables,
        Mechanism::Turns,
        Mechanism::Deadline,
        Mechanism::Ssh,
        Mechanism::Bisection,
        Mechanism::Cgroups,
        Mechanism::Services,
        Mechanism::Containers,
        Mechanism::FullDisk,
        Mechanism::Guest,
        Mechanism::Xen,
    ];

    /// Word for the mechanism on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Policy => "policy",
            Mechanism::Tunables => "tunables",
            Mechanism::Turns => "turns",
            Mechanism::Deadline => "deadline",
            Mechanism::Ssh => "ssh",
            Mechanism::Bisection => "bisection",
            Mechanism::Cgroups => "cgroups",
            Mechanism::Services => "services",
            Mechanism::Containers => "containers",
            Mechanism::FullDisk => "full-disk",
            Mechanism::Guest => "guest",
            Mechanism::Xen => "xen",
        }
    }

    /// The times when a run is killed, after its start or after a trial's end.
    pub(crate) fn moments(self) -> Range<Duration> {
        let ms = match self {
            Mechanism::Guest => 0..10_000,
            Mechanism::Xen => 0..120_000,
            Mechanism::Cgroups | Mechanism::Services | Mechanism::Ssh => 0..600,
            Mechanism::Turns => 0..1500,
            Mechanism::Containers => 0..3000,
            Mechanism::Bisection => 0..4000,
            _ => 0..300,
        };
        Duration::from_millis(ms.start)..Duration::from_millis(ms.end)
    }

    fn why_not(self) -> Option<String> {
        let server = |program| match Command::new(program).arg("-V").output() {
            Ok(_) => None,
            Err(error) => Some(format!("{program}: {error}")),
        };
        match self {
            Mechanism::Policy => None,
            _ if !is_root() => Some("it needs root".to_owned()),
            Mechanism::Bisection => match Command::new("git").arg("version").output() {
                Ok(_) => None,
                Err(error) => Some(format!("git: {error}")),
            },
            Mechanism::Tunables | Mechanism::Turns | Mechanism::Ssh => {
                let written = fs::read(KNOB).and_then(|value| fs::write(KNOB, value));
                written.err().map(|error| format!("{KNOB}: {error}"))
            }
            Mechanism::Cgroups => server("memcached"),
            Mechanism::Services => server("nginx"),
            Mechanism::Containers => server("podman"),
            Mechanism::FullDisk | Mechanism::Deadline => None,
            Mechanism::Guest | Mechanism::Xen => server("qemu-system-x86_64"),
        }
    }

    /// Writes the experiment, or says what is missing for it.
    pub(crate) fn prepare(self, bench: &Bench) -> Result<Prepared, String> {
        if let Some(why) = self.why_not() {
            return Err(why);
        }
        let disk = match self {
            Mechanism::FullDisk => Some(SmallDisk::mount(&bench.path("disk"), "256k")?),
            _ => None,
        };
        let sshd = match self {
            Mechanism::Ssh => Some(Sshd::start().ok_or("sshd is not installed")?),
            _ => None,
        };
        let image = (self == Mechanism::Containers).then(|| Image::make(bench));
        if self == Mechanism::Bisection {
            with_a_slower_program(bench)?;
        }
        let fill = disk.as_ref().map(|disk| disk.path().join("fill"));
        let blocks = self.blocks();
        let stop = format!("[stop]\nmin-blocks = {blocks}\nmax-blocks = {blocks}\n");
        let target = sshd.as_ref().map(Sshd::target).unwrap_or_default();
        let of_image = image.as_ref().map_or("", |image| &image.name);
        let text = target + &self.text(fill.as_deref()).replace("IMAGE", of_image);
        let text = match self {
            // It has a budget in place of blocks.
            Mechanism::Bisection => text,
            _ => text + &stop,
        };
        let state = disk.as_ref().map(|disk| disk.path().join("state"));
        // The journal of the other machine, which is this one.
        let state = state.or_else(|| Some(sshd.as_ref()?.path("state")));
        let state = state.map(|dir| ("SCHEDLAB_STATE_DIR".to_owned(), dir));
        // What QEMU is told to open lies there too, so that its processes are known.
        let temporary = ("TMPDIR".to_owned(), bench.dir.path().to_owned());
        let far = sshd.iter().map(|sshd| sshd.path(""));
        Ok(Prepared {
            experiment: bench.file("kills.toml", &text),
            places: 2 * blocks,
            environment: state.into_iter().chain([temporary]).collect(),
            fill,
            directories: far.collect(),
            _disk: disk,
            _sshd: sshd,
            _image: image,
        })
    }

    fn blocks(self) -> u32 {
        match self {
            Mechanism::Guest | Mechanism::Containers => 3,
            Mechanism::Turns => 5,
            Mechanism::Xen => 2,
            _ => 25,
        }
    }

    fn text(self, fill: Option<&Path>) -> String {
        let plain = "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"changed\"\n";
        let batch = "policy = { class = \"batch\" }\n";
        let sleep = "[[workload]]\nkind = \"command\"\ncommand = [\"sleep\", \"0.1\"]\n";
        let shell = |script: &str| {
            format!("[[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '{script}']\n")
        };
        let http = "[[workload]]\nkind = \"http\"\nloads = [\"500/s\"]\nconnections = 2\n\
                    warmup = \"20ms\"\nduration = \"200ms\"\nmetrics = [\"request_p50\"]\n";
        match self {
            Mechanism::Policy => format!("{plain}{batch}{}", shell("setsid sleep 0.1 & wait")),
            Mechanism::Turns => format!(
                "{plain}tunables = {{ rr_timeslice = \"37ms\" }}\n[[workload]]\nkind = \"wakeup\"\n\
                 loads = [1]\noperations = 1\nsleep = \"20us\"\nmetrics = [\"requests_per_sec\"]\n\
                 in-place = \"always\"\nturn = \"100ms\"\nduration = \"1400ms\"\nwarmup = \"100ms\"\n"
            ),
            Mechanism::Deadline => format!(
                "{plain}policy = {{ class = \"deadline\", runtime = \"1ms\", period = \"10ms\" }}\n{sleep}"
            ),
            Mechanism::Bisection => shell("sh \"$PROGRAM\"").replace('\'', "'''"),
            Mechanism::Tunables | Mechanism::Ssh => {
                format!("{plain}tunables = {{ rr_timeslice = \"37ms\" }}\n{sleep}")
            }
            Mechanism::Cgroups => format!(
                "[[arm]]\nname = \"default\"\nweight = 100\n[[arm]]\nname = \"changed\"\n\
                 weight = 1000\n{}[workload.server]\nkind = \"memcached\"\n\
                 [[workload.antagonist]]\nname = \"batch\"\nkind = \"spinner\"\nthreads = 1\n\
                 quota = \"20%\"\n",
                http.replace("\"http\"", "\"memcached\"")
            ),
            Mechanism::Services => format!(
                "{plain}{batch}to = \"server\"\n{http}[workload.server]\nkind = \"nginx\"\n"
            ),
            Mechanism::Containers => {
                format!("{plain}{batch}to = \"server\"\n{http}{CONTAINER}")
            }
            Mechanism::FullDisk => {
                let fill = fill.expect("a mechanism with a disk").display();
                // All of the disk, until the end of the trial.
                let fill = format!("cat /dev/zero > {fill} 2>/dev/null; sleep 0.1; rm -f {fill}");
                let tunable = "tunables = { rr_timeslice = \"37ms\" }\n";
                format!("{plain}{tunable}{}", shell(&fill))
            }
            Mechanism::Guest => {
                let change = match sched_program("scx_faulty") {
                    Some(scheduler) => format!(
                        "scheduler = \"{}\"\nargs = [\"--fault\", \"none\"]\n",
                        scheduler.display()
                    ),
                    None => batch.to_owned(),
                };
                format!(
                    "[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\ncpus = 1\n\
                     memory = \"1G\"\n{plain}{change}{sleep}"
                )
            }
            Mechanism::Xen => XEN.to_owned(),
        }
    }
}

/// A repository of a script that counts: commit 5 of 8 lets it count further.
fn with_a_slower_program(bench: &Bench) -> Result<(), String> {
    let script = "set -e; git init -q r; cd r; git config user.name a; git config user.email a@b.c; \
        for n in $(seq 0 8); do test $n -lt 5 && to=20000 || to=100000; \
        echo \"mkdir -p bin; echo 'i=0; while [ \\$i -lt $to ]; do i=\\$((i+1)); done' > bin/count\" > build.sh; \
        echo $n > NOTES; git add .; git commit -q -m \"change $n\"; git tag v$n; done";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(bench.dir.path());
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("a repository: {other:?}")),
    }
}
