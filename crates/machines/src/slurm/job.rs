//! A job that has nodes: of salloc(1), for as long as this process lives, or the one that this
//! process was started in.

use super::spec::{SlurmSpec, kernel_feature};
use crate::{Leaving, TargetError};
use doors::read::{Lines, output_of};
use doors::started::tool_command;
use model::Problem;
use model::printable::last_lines;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::env;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

pub(super) const LOOK: &str = "look at the cluster: sinfo; squeue";
/// Time before the limit of the job at which its nodes are left: trials are undone by then.
const BEFORE_THE_END_S: u64 = 60;
/// Between two looks at a signal while the job is in the queue.
const LOOK_UP: Duration = Duration::from_millis(200);
/// The longest time for which the end of a job is waited for; Slurm's own, KillWait, is half a minute.
const MOST_OF_AN_END: Duration = Duration::from_secs(120);
/// Lines of salloc(1) that wait to be looked at, and the most that are kept of what it said.
const MOST_WAITING: usize = 64;
/// Time between two looks at a controller that does not answer.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Looks at a controller that does not answer, as in the moment of its restart.
const LOOKS_AT_A_JOB: u32 = 3;
/// A way out of the job that a command is started in.
const ANOTHER_JOB: &str = "env -u SLURM_JOB_ID -u SLURM_JOB_NODELIST schedlab run …";
/// Says which job it is, and lasts until its standard input ends, as it does with this process.
const SAYS: &str = r#"echo "$SLURM_JOB_ID $SLURM_JOB_NODELIST"; cat > /dev/null"#;

/// Slurm gives no nodes.
#[derive(Debug)]
pub(super) struct Unavailable {
    pub what: String,
    pub remedy: String,
}

pub(super) fn slurm_problem(what: String, remedy: &str) -> Problem {
    Problem {
        object: "slurm".to_owned(),
        what,
        remedy: remedy.to_owned(),
    }
}

/// A job with its nodes.
#[derive(Debug)]
pub(super) struct Job {
    id: String,
    nodes: Vec<String>,
    /// Ends the job with its life; `None` for the job that this process is part of.
    salloc: Option<Mutex<Child>>,
}

impl Job {
    #[cfg(test)]
    pub fn with_nodes(id: &str, nodes: &[&str]) -> Self {
        Job {
            id: id.to_owned(),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            salloc: None,
        }
    }

    /// The job that this process was started in, or a new one, for which it waits in the queue.
    pub fn find_or_start(
        spec: &SlurmSpec,
        interrupted: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, TargetError> {
        if let (Ok(id), Ok(list)) = (env::var("SLURM_JOB_ID"), env::var("SLURM_JOB_NODELIST")) {
            return match spec.kernel_feature {
                None => Job::around(spec, id, &list),
                Some(_) => Err(Unavailable {
                    what: format!("each kernel is a job of its own, and this runs in job {id}"),
                    remedy: "start it outside of a job, where salloc gives it nodes".to_owned(),
                }
                .into()),
            };
        }
        Job::allocate(spec, interrupted, say)
    }

    fn around(spec: &SlurmSpec, id: String, list: &str) -> Result<Self, TargetError> {
        let mut nodes = hostnames(list)?;
        if let Some(host) = &spec.host {
            nodes.retain(|node| node == host);
        }
        let wanted = spec.nodes as usize;
        if nodes.len() < wanted {
            let has = format!("job {id}, in which this runs, has {list}");
            return Err(Unavailable {
                what: match &spec.host {
                    Some(host) => format!("{has} and not {host}"),
                    None => format!("{has}, and {wanted} nodes are wanted"),
                },
                remedy: format!(
                    "ask for more nodes (sbatch -N), or for fewer here (nodes = N), or for a job of its \
                     own: {ANOTHER_JOB}"
                ),
            }
            .into());
        }
        nodes.truncate(wanted);
        let job = Job {
            id,
            nodes,
            salloc: None,
        };
        job.is_alone()?;
        Ok(job)
    }

    fn allocate(
        spec: &SlurmSpec,
        interrupted: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, TargetError> {
        let there = output_of(tool_command("salloc").arg("--version"));
        there.map_err(|e| not_started("salloc", &e))?;
        let mut salloc = salloc(spec);
        salloc
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = salloc.spawn().map_err(|e| not_started("salloc", &e))?;
        let said = lines(child.stderr.take());
        let answer = lines(child.stdout.take());
        let mut heard = Vec::new();
        let line = loop {
            let mut hear = |wait| {
                for _ in 0..MOST_WAITING {
                    let Ok(line) = said.recv_timeout(wait) else {
                        break;
                    };
                    if ["queued", "Pending", "configuration"]
                        .iter()
                        .any(|word| line.contains(word))
                    {
                        say(&line);
                    }
                    if heard.len() == MOST_WAITING {
                        heard.remove(0);
                    }
                    heard.push(line);
                }
            };
            match answer.recv_timeout(LOOK_UP) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) => hear(Duration::ZERO),
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = child.wait();
                    hear(LOOK_UP);
                    return Err(refused(&heard.join("\n")).into());
                }
            }
            if interrupted.load(Ordering::Relaxed) {
                // It takes the job out of the queue.
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::TERM);
                }
                let _ = child.wait();
                return Err(TargetError::Interrupted);
            }
        };
        let (id, list) = line.split_once(' ').unwrap_or((&line, ""));
        let mut job = Job {
            id: id.to_owned(),
            nodes: Vec::new(),
            salloc: Some(Mutex::new(child)),
        };
        // Dropped with an error, it gives the nodes back.
        job.nodes = hostnames(list)?;
        job.is_alone()?;
        say(&format!("job {id} has {}", job.nodes.join(", ")));
        Ok(job)
    }

    /// Refuses nodes that others may use at the same time, and those of which nobody says whether
    /// they may.
    fn is_alone(&self) -> Result<(), Unavailable> {
        self.is_alone_by(self.shared())
    }

    fn is_alone_by(&self, said: Result<String, String>) -> Result<(), Unavailable> {
        let (what, remedy) = match said.as_deref() {
            Ok("NO" | "EXCLUSIVE") => return Ok(()),
            Ok(shared) => (
                format!("does not have its nodes alone (squeue -o %h says {shared})"),
                format!(
                    "sbatch --exclusive, another partition, or a job of its own: {ANOTHER_JOB}"
                ),
            ),
            Err(why) => (
                format!("may share its nodes with others, since squeue does not tell: {why}"),
                LOOK.to_owned(),
            ),
        };
        let what = format!("job {} {what}", self.id);
        Err(Unavailable { what, remedy })
    }

    /// Answer of squeue(1) about others on the nodes of the job, or why it says nothing.
    fn shared(&self) -> Result<String, String> {
        let look = || match ask("squeue", &["-h", "-j", &self.id, "-o", "%h"])?.trim() {
            "" => Err("it knows no such job".to_owned()),
            shared => Ok(shared.to_owned()),
        };
        for _ in 1..LOOKS_AT_A_JOB {
            if let Ok(shared) = look() {
                return Ok(shared);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        look()
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Nodes that are about to be lost: all of them near the end of the job.
    pub fn nodes_to_leave(&self) -> Vec<Leaving> {
        let all = |why: String| {
            let leave = |node: &String| Leaving {
                machine: node.clone(),
                why: why.clone(),
            };
            self.nodes.iter().map(leave).collect()
        };
        let asked = ask("squeue", &["-h", "-j", &self.id, "-o", "%T|%L"]);
        let state = match &asked {
            Ok(said) => job_state(said),
            Err(said) if said.contains("Invalid job id") => {
                JobState::Ended("it is gone".to_owned())
            }
            // Its controller is away for a moment; the steps go on.
            Err(_) => JobState::Runs { left_s: None },
        };
        match state {
            JobState::Ended(how) => all(format!("job {} has ended: {how}", self.id)),
            JobState::Runs { left_s: Some(left) } if left <= BEFORE_THE_END_S => {
                all(format!("the time limit of job {} is near", self.id))
            }
            JobState::Runs { .. } => unfit_nodes(&self.nodes),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(salloc) = self.salloc.take() else {
            return;
        };
        if let Ok(mut salloc) = salloc.into_inner() {
            // The end of its standard input ends the command of the job, and so the job.
            drop(salloc.stdin.take());
            let _ = salloc.wait();
        }
    }
}

/// Takes away the variables that are options of a command of Slurm: those of the job around, or of
/// the user's shell, are for other commands than ours.
pub(super) fn without_options(command: &mut Command, beginnings: &[&str]) {
    const NEEDED: [&str; 3] = ["SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT"];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let is_option = beginnings.iter().any(|start| text.starts_with(start));
        if is_option && !NEEDED.contains(&&*text) {
            command.env_remove(&name);
        }
    }
}

fn salloc(spec: &SlurmSpec) -> Command {
    // A job in the queue reads no standard input yet, and goes with this process all the same, where
    // setpriv(1) knows how (util-linux 2.33).
    let with_us = ["--pdeathsig", "TERM"];
    let tried = output_of(tool_command("setpriv").args(with_us).arg("true"));
    let mut salloc = match tried.is_ok_and(|output| output.status.success()) {
        true => {
            let mut setpriv = tool_command("setpriv");
            setpriv.args(with_us).arg("salloc");
            setpriv
        }
        false => tool_command("salloc"),
    };
    salloc.args(["--exclusive", "--mem=0", "--no-kill", "--job-name=schedlab"]);
    salloc.arg(format!("--nodes={}", spec.nodes));
    if spec.kernel_feature.is_some() {
        // Otherwise it says that it has the node while that boots.
        salloc.arg("--wait-all-nodes=1");
    }
    for (option, value) in [
        ("partition", &spec.partition),
        ("constraint", &spec.constraint),
        ("nodelist", &spec.host),
    ] {
        if let Some(value) = value {
            salloc.arg(format!("--{option}={value}"));
        }
    }
    if let Some(time) = spec.time {
        let minutes = (time.as_secs() + 59) / 60;
        salloc.arg(format!("--time={minutes}"));
    }
    salloc.args(&spec.options);
    salloc.args(["sh", "-c", SAYS]);
    salloc
}

/// The lines of a stream, as they come. Some wait for who listens, and who writes waits as well.
fn lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = sync_channel(MOST_WAITING);
    if let Some(stream) = stream {
        std::thread::spawn(move || {
            for line in Lines::from_stream(stream) {
                // Read to the end, also where nobody listens any more.
                let _ = send.send(line);
            }
        });
    }
    receive
}

fn not_started(program: &str, error: &std::io::Error) -> Unavailable {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "install the commands of Slurm (Debian: slurm-client)",
        _ => LOOK,
    };
    Unavailable {
        what: format!("{program}: {error}"),
        remedy: remedy.to_owned(),
    }
}

/// True for words about a node that did not boot, or a job that was lost since it did not.
pub(super) fn is_of_the_boot(said: &str) -> bool {
    const WORDS: [&str; 6] = [
        "revoked",
        "boot",
        "not ready",
        "failure on",
        "Node failure",
        "tried again for",
    ];
    WORDS.iter().any(|words| said.contains(words))
}

/// Why salloc(1) gave no nodes.
fn refused(said: &str) -> Unavailable {
    let has = |words: &str| said.contains(words);
    let remedy = match () {
        () if has("artition") => "name one that is there: sinfo",
        () if has("feature") || has("node configuration") => {
            "no nodes are like that: sinfo -o '%N %f' shows their features"
        }
        () if has("contact") => "find out whether slurmctld runs: scontrol ping",
        () => LOOK,
    };
    let said = last_lines(said, 5, "\n");
    Unavailable {
        what: match said.is_empty() {
            true => "salloc gave no nodes".to_owned(),
            false => said,
        },
        remedy: remedy.to_owned(),
    }
}

/// The names that a list such as `n[1-3]` means.
fn hostnames(list: &str) -> Result<Vec<String>, Unavailable> {
    let said = ask("scontrol", &["show", "hostnames", list]).map_err(|said| Unavailable {
        what: format!("scontrol show hostnames {list}: {said}"),
        remedy: LOOK.to_owned(),
    })?;
    let names: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    match names.is_empty() {
        false => Ok(names),
        true => Err(Unavailable {
            what: "the job has no nodes".to_owned(),
            remedy: LOOK.to_owned(),
        }),
    }
}

/// The answer of a command of Slurm, or what it complains about.
fn ask(program: &'static str, args: &[&str]) -> Result<String, String> {
    let mut command = tool_command(program);
    without_options(&mut command, &["SQUEUE_", "SINFO_"]);
    let output = output_of(command.args(args)).map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(last_lines(&text(&output.stderr), 3, "; ")),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum JobState {
    Runs { left_s: Option<u64> },
    Ended(String),
}

/// From `RUNNING|1-02:03:04`, as `squeue -o '%T|%L'` prints it.
fn job_state(said: &str) -> JobState {
    let Some((state, left)) = said.trim().split_once('|') else {
        return JobState::Ended("it is gone".to_owned());
    };
    match state {
        "RUNNING" | "SUSPENDED" | "STOPPED" | "SIGNALING" | "CONFIGURING" => JobState::Runs {
            left_s: seconds(left),
        },
        other => JobState::Ended(other.to_lowercase().replace('_', " ")),
    }
}

/// Seconds of `[days-]hours:minutes:seconds`, without the first parts where they are zero.
fn seconds(left: &str) -> Option<u64> {
    let (days, rest) = left.split_once('-').unwrap_or(("0", left));
    let mut total = 0;
    for part in rest.split(':') {
        total = total * 60 + part.parse::<u64>().ok()?;
    }
    Some(days.parse::<u64>().ok()? * 86_400 + total)
}

/// Nodes that must be left. One that a job waits for while it is restarted is none of them.
pub(super) fn unfit_nodes(nodes: &[String]) -> Vec<Leaving> {
    let list = nodes.join(",");
    let said = ask("sinfo", &["-h", "-a", "-N", "-n", &list, "-o", "%N|%T|%E"]);
    let mut unfit: Vec<Leaving> = Vec::new();
    for line in said.unwrap_or_default().lines() {
        if let Some(leaving) = unfit_node(line)
            && !unfit.iter().any(|known| known.machine == leaving.machine)
        {
            unfit.push(leaving);
        }
    }
    unfit
}

/// Waits until the job before has left a node. Slurm refuses a job for which a node must be restarted, and
/// does not queue it, while another one is ending there (22.05: "never runnable").
pub(super) fn wait_for_the_end(node: &str, interrupted: &AtomicBool) {
    let since = Instant::now();
    while since.elapsed() < MOST_OF_AN_END && !interrupted.load(Ordering::Relaxed) {
        let state = ask("sinfo", &["-h", "-a", "-N", "-n", node, "-o", "%T"]);
        if !state.is_ok_and(|state| state.contains("completing")) {
            return;
        }
        std::thread::sleep(LOOK_UP);
    }
}

/// Kernels that Slurm knows of no node to boot.
pub(super) fn kernels_lacking(spec: &SlurmSpec, kernels: &BTreeSet<&str>) -> Vec<Problem> {
    let Some(pattern) = &spec.kernel_feature else {
        return Vec::new();
    };
    let mut asked = vec!["-h", "-a", "-N", "-o", "%f"];
    asked.extend(spec.host.iter().flat_map(|host| ["-n", host]));
    let known = match ask("sinfo", &asked) {
        Ok(known) => known,
        Err(said) => return vec![slurm_problem(format!("sinfo: {said}"), LOOK)],
    };
    let known: BTreeSet<&str> = known.split([',', '\n']).map(str::trim).collect();
    let features = kernels
        .iter()
        .map(|kernel| kernel_feature(pattern, kernel))
        .filter(|feature| !known.contains(feature.as_str()));
    let lacking = features.map(|feature| Problem {
        object: format!("feature {feature}"),
        what: "Slurm can give it to none of these nodes".to_owned(),
        remedy: "add it to Feature= of the nodes in slurm.conf and of the helper in helpers.conf \
                 (`schedlab boot feature`)"
            .to_owned(),
    });
    lacking.collect()
}

/// From `n1|draining|disk`, as `sinfo -N -o '%N|%T|%E'` prints it, where its node must be left.
fn unfit_node(line: &str) -> Option<Leaving> {
    let mut parts = line.splitn(3, '|');
    let (node, state) = (parts.next()?, parts.next()?);
    let is_unfit = ["down", "drain", "fail", "error"]
        .iter()
        .any(|start| state.starts_with(start));
    let reason = parts
        .next()
        .map(str::trim)
        .filter(|r| !r.is_empty() && *r != "none");
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    is_unfit.then(|| Leaving {
        machine: node.to_owned(),
        why: format!(
            "Slurm says that it is {}{reason}",
            state.trim_end_matches('*')
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_which_nobody_says_that_they_are_alone_are_refused() {
        let job = Job::with_nodes("7", &["a"]);
        let judged = |said: Result<&str, &str>| {
            let said = said.map(str::to_owned).map_err(str::to_owned);
            job.is_alone_by(said).map_err(|refused| refused.what)
        };
        assert_eq!(judged(Ok("EXCLUSIVE")), Ok(()));
        assert!(judged(Ok("YES")).unwrap_err().contains("says YES"));
        let silent = judged(Err("Unable to contact slurm controller")).unwrap_err();
        assert!(silent.contains("job 7 may share its nodes"), "{silent}");
        assert!(silent.contains("Unable to contact"), "{silent}");
    }

    #[test]
    fn what_salloc_says_without_end_is_read_in_bounds() {
        use std::io::Read;
        let endless = std::io::repeat(b'x').take(64 << 20);
        let line = lines(Some(endless)).recv().unwrap();
        assert!(line.ends_with("more bytes)") && line.len() < 10_000);
        let said = lines(Some(&b"a\xffb\nlast\n"[..]));
        assert_eq!(said.iter().collect::<Vec<_>>(), ["a\u{fffd}b", "last"]);
    }

    #[test]
    fn the_time_that_a_job_has_left_is_read_as_slurm_prints_it() {
        let runs = |left_s| JobState::Runs { left_s };
        assert_eq!(job_state("RUNNING|UNLIMITED\n"), runs(None));
        assert_eq!(job_state("RUNNING|0:45\n"), runs(Some(45)));
        assert_eq!(job_state("RUNNING|1-02:03:04\n"), runs(Some(93_784)));
        let ended = JobState::Ended("node fail".to_owned());
        assert_eq!(job_state("NODE_FAIL|0:00\n"), ended);
        assert_eq!(job_state(""), JobState::Ended("it is gone".to_owned()));
    }

    #[test]
    fn a_node_that_is_drained_or_down_is_left_with_the_reason() {
        let left = unfit_node("n2|draining|new disk").unwrap();
        assert_eq!(left.machine, "n2");
        assert_eq!(left.why, "Slurm says that it is draining (new disk)");
        assert!(unfit_node("n1|down*|none").is_some());
        assert_eq!(unfit_node("n1|allocated|none"), None);
        assert_eq!(unfit_node("n1|allocated#|none"), None);
    }

    #[test]
    fn a_refusal_says_what_to_look_at() {
        let refused = refused("salloc: error: invalid partition specified: moon");
        assert!(refused.what.contains("moon") && refused.remedy.contains("sinfo"));
        let missing = std::io::Error::from(ErrorKind::NotFound);
        assert!(
            not_started("salloc", &missing)
                .remedy
                .contains("slurm-client")
        );
    }
}
