//! Another machine, over a program that runs commands there: ssh(1), srun(1) of Slurm, or any command of
//! the target exec. This very binary is copied and is the agent there.

mod agent_file;
mod checks;
mod line;
mod look;
mod reboot;
mod session;
mod words;

pub use line::{Failure, Forwarding, Line, Sudo};
pub(crate) use words::quote_words;

use crate::{Boot, Can, Host, Looked, Session, Target, TargetError};
use agent_file::AgentFile;
use look::Look;
use model::{Arm, Experiment, Fact, Invalid, Place, Problem, Severity, Warning, Way};
use session::FarSession;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// Clocks that differ by more are told.
const CLOCKS_S: u64 = 60;

/// Another machine, with an agent that a line starts there.
#[derive(Debug)]
pub struct FarTarget {
    line: Arc<dyn Line>,
    can: Can,
    program: PathBuf,
    /// Wait for the end of another run there.
    wait: bool,
    interrupted: Arc<AtomicBool>,
    /// Read when it is needed first.
    agent: Option<AgentFile>,
    /// A look that no agent was started after.
    fresh: Option<Look>,
    /// The machine as it was when its first agent answered.
    first: Option<Look>,
    /// An arm changes something, which may need root.
    changes: bool,
    ahead_s: i64,
}

impl FarTarget {
    /// Target with an agent that this line starts, and these abilities.
    pub fn new(line: Arc<dyn Line>, can: Can, host: &Host) -> Self {
        // This very file, also after another build took its place.
        let this = || PathBuf::from("/proc/self/exe");
        let given = line.agent_path().or_else(|| host.program.clone());
        FarTarget {
            program: given.unwrap_or_else(this),
            line,
            can,
            wait: host.wait,
            interrupted: host.interrupted.clone(),
            agent: None,
            fresh: None,
            first: None,
            changes: false,
            ahead_s: 0,
        }
    }

    fn agent(&mut self) -> Result<&AgentFile, Problem> {
        let agent = match self.agent.take() {
            Some(agent) => agent,
            None => AgentFile::read(&self.program, self.line.agent_path().is_some())?,
        };
        Ok(self.agent.insert(agent))
    }

    /// The machine as it is now. It may need another build of this program than this machine; where that
    /// lies beside this one, it is taken, and the machine is asked whether it has that one already.
    fn look(&mut self) -> Result<Look, Failure> {
        if let Some(look) = self.fresh.take() {
            return Ok(look);
        }
        let look = self.look_for_agent()?;
        let fits = self.agent()?.find_misfit(&look.machine).is_none();
        if fits || self.line.agent_path().is_some() {
            return Ok(look);
        }
        let Some(build) = vm::architecture::find_build(&look.machine, &self.program) else {
            return Ok(look);
        };
        let agent = AgentFile::read(&build, false)?;
        if agent.find_misfit(&look.machine).is_some() {
            return Ok(look);
        }
        self.agent = Some(agent);
        self.look_for_agent()
    }

    fn look_for_agent(&mut self) -> Result<Look, Failure> {
        let hash = self.agent()?.hash.clone();
        let look =
            self.line
                .look_at_machine(&hash, self.line.sudo() != Sudo::No, &self.interrupted)?;
        self.ahead_s = look.ahead_s;
        Ok(look)
    }

    /// The reason for which no agent could be started there, if there is one.
    fn hindrance(&mut self, look: &Look) -> Result<(), Problem> {
        let line = Arc::clone(&self.line);
        if look.system != "Linux" {
            let what = format!("the machine runs {}", look.system);
            return Err(line.problem(what, "schedlab compares schedulers of Linux"));
        }
        if let Some((what, remedy)) = self.agent()?.find_misfit(&look.machine) {
            return Err(line.problem(what, &remedy));
        }
        if !look.is_writable {
            let what = format!("{} cannot be written", look.cache);
            let remedy = "the agent is kept there; XDG_CACHE_HOME on the machine names another";
            return Err(line.problem(what, remedy));
        }
        if let (Sudo::Yes, Some(Err(said))) = (line.sudo(), &look.sudo) {
            return Err(line.problem(format!("sudo -n true: {said}"), checks::SUDO_REMEDY));
        }
        // Where each trial names its kernel, each proves it.
        let first = self.first.as_ref().filter(|_| !self.can.reboots);
        match first.filter(|first| first.release != look.release) {
            Some(first) => Err(line.problem(
                format!(
                    "it came back with kernel {}, not {}",
                    look.release, first.release
                ),
                "boot the kernel of the trials so far, then: schedlab run --resume DIR",
            )),
            None => Ok(()),
        }
    }

    /// Starts a program of the machine's own schedlab, which is there afterwards.
    fn started(&mut self, look: &Look, args: &[&str], as_root: bool) -> Result<Command, Failure> {
        self.hindrance(look)?;
        let line = Arc::clone(&self.line);
        let interrupted = Arc::clone(&self.interrupted);
        let agent = self.agent()?;
        if look.agent.as_deref() != Some(agent.hash.as_str()) {
            tracing::info!(
                "copying the agent to {}: {} MiB",
                line.machine_name(),
                agent.bytes.len() >> 20
            );
            line.copy_agent(agent, look, &interrupted)?;
        }
        let program = format!("{}/agent-{}", look.cache, agent.hash);
        let cache = format!("SCHEDLAB_CACHE_DIR={}", look.cache);
        let by_sudo = as_root && matches!(look.sudo, Some(Ok(())));
        let sudo: &[&str] = if by_sudo { &["sudo", "-n"] } else { &[] };
        // Root has a directory of its own on each machine.
        let state = line
            .state_dir(&look.cache)
            .filter(|_| !by_sudo && !look.is_root);
        let state = state.map(|state| format!("SCHEDLAB_STATE_DIR={state}"));
        let state: Vec<&str> = state.as_deref().into_iter().collect();
        let words = [sudo, &["env", &cache], &state, &[&program], args].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        Ok(line.command(&words))
    }

    fn start(&mut self) -> Result<FarSession, Failure> {
        let look = self.look()?;
        let as_root = match self.line.sudo() {
            Sudo::Auto => self.changes,
            Sudo::Yes => true,
            Sudo::No => false,
        };
        let controller = controller();
        let command = self.started(&look, &["agent-here", "--for", &controller], as_root)?;
        let first = self.first.as_ref().unwrap_or(&look);
        let facts = vec![
            Fact::new("kernel", look.release.clone()).with_wanted(first.release.clone()),
            Fact::new("machine", look.hostname.clone()).with_wanted(first.hostname.clone()),
        ];
        let address = self.line.network_address(look.address);
        let session = FarSession::start(command, &self.line, facts, address, &self.interrupted)?;
        self.first.get_or_insert(look);
        Ok(session)
    }

    /// Release of the kernel that it runs.
    pub fn kernel_release(&mut self) -> Result<String, TargetError> {
        let look = self.patiently(FarTarget::look)?;
        let release = look.release.clone();
        self.fresh = Some(look);
        Ok(release)
    }

    /// Tries a step again for as long as that makes sense.
    fn patiently<T>(
        &mut self,
        step: impl Fn(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, TargetError> {
        let since = Instant::now();
        let mut told = false;
        loop {
            let failure = match step(self) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            let patience = self.patience(&failure).unwrap_or_default();
            if since.elapsed() >= patience {
                return Err(given_up(failure, patience));
            }
            if !std::mem::replace(&mut told, true) {
                tracing::info!("{}; trying again", TargetError::from(failure));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The time until which another try makes sense after this one.
    fn patience(&self, failure: &Failure) -> Option<Duration> {
        match failure {
            Failure::Busy(_) if self.wait => Some(Duration::MAX),
            // The agent of the lost connection may still have the machine.
            Failure::Busy(_) | Failure::Connection(_) if self.first.is_some() => {
                Some(self.line.reconnect_time())
            }
            Failure::Connection(_) if self.line.is_patient() => Some(self.line.reconnect_time()),
            _ => None,
        }
    }
}

/// Who asks, for those who find the machine taken.
fn controller() -> String {
    let names = rustix::system::uname();
    let host = names.nodename().to_string_lossy();
    format!("{host}, process {}", std::process::id())
}

impl Target for FarTarget {
    fn kind(&self) -> &'static str {
        self.line.kind()
    }

    fn abilities(&self) -> Can {
        self.can
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        if !self.line.can_forward()
            && let Some(problem) = find_forwarded(experiment)
        {
            return vec![problem];
        }
        self.changes = experiment
            .arms
            .iter()
            .any(|arm| *arm != Arm::unchanged(&arm.name));
        let looked = self.patiently(|target| {
            let look = target.look()?;
            target.hindrance(&look)?;
            let problems = target.kernels_lacking(&look, experiment)?;
            // Whoever was asked about kernels has a copy of the agent now.
            target.fresh = Some(look).filter(|_| !target.can.reboots);
            Ok(problems)
        });
        match looked {
            Ok(problems) => problems,
            Err(TargetError::Unmet(problem)) => vec![problem],
            Err(other) => vec![self.line.problem(
                other.to_string(),
                &format!("try: {}", self.line.trial_command()),
            )],
        }
    }

    fn opening_step(&self, boot: &Boot) -> String {
        let machine = self.line.machine_name();
        match &boot.kernel {
            Some(kernel) => format!("restarting {machine} with {kernel}"),
            None => format!("starting the agent on {machine}"),
        }
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        match (&boot.kernel, self.line.reboot_way()) {
            (Some(kernel), Some((by, limit))) => self.reboot_into(kernel, by, limit)?,
            _ => boot.is_the_targets_own()?,
        }
        let session = self.patiently(FarTarget::start)?;
        Ok(Box::new(session))
    }

    fn leave_machine(&mut self) -> Result<(), TargetError> {
        match self.line.reboot_way() {
            Some((by, _)) if self.first.is_some() => self.reboot_home(by),
            _ => Ok(()),
        }
    }

    fn find_lacks(&mut self) -> Result<Looked, TargetError> {
        Ok(checks::look_at_target(self)?)
    }

    fn schedlab_command(&mut self, args: &[&str]) -> Result<Command, TargetError> {
        let look = FarTarget::look(self)?;
        let as_root = self.line.sudo() != Sudo::No;
        Ok(self.started(&look, args, as_root)?)
    }

    fn warnings(&self) -> Vec<Warning> {
        let differs = self.ahead_s.unsigned_abs() > CLOCKS_S;
        let warning = || Warning {
            severity: Severity::Caution,
            what: format!(
                "The clock of {} is {} of the one where schedlab was started: times of trials \
                 and of files differ.",
                self.line.machine_name(),
                checks::clock_difference(self.ahead_s)
            ),
            remedy: "Set it, as by NTP.".to_owned(),
        };
        differs.then(warning).into_iter().collect()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.line.facts().into_iter().collect()
    }
}

/// The problem of the first workload whose load needs forwarded ports, where a target has none.
fn find_forwarded(experiment: &Experiment) -> Option<Problem> {
    let mut workloads = experiment.workloads.iter();
    let forwarded = workloads.find(|workload| {
        workload.load_on == Place::Controller && workload.load_way == Way::Tunnel
    })?;
    Some(Problem {
        object: format!("workload {}", forwarded.name),
        what: "load-on = \"controller\": no ports are forwarded from a place that a command leads to"
            .to_owned(),
        remedy: "load-way = \"network\", with the address of the place in [target], or leave out load-on"
            .to_owned(),
    })
}

/// Refuses an address at which nobody is reached.
pub(crate) fn check_address(address: Option<IpAddr>) -> Result<(), Invalid> {
    match address.is_some_and(|address| address.is_unspecified() || address.is_multicast()) {
        true => Err(
            Invalid::new("address", "it is the address of no machine").with_remedy(
                "address = \"10.0.0.7\": that of the target in the network of this machine",
            ),
        ),
        false => Ok(()),
    }
}

/// The last failure, and for how long there was none other.
fn given_up(failure: Failure, patience: Duration) -> TargetError {
    match failure {
        Failure::Connection(mut problem) | Failure::Busy(mut problem) if !patience.is_zero() => {
            let for_how_long = model::format_duration_ns(model::whole_nanos(patience));
            problem.what = format!("tried again for {for_how_long}: {}", problem.what);
            problem.remedy =
                "what was measured is kept; go on with: schedlab run --resume DIR".into();
            TargetError::Unmet(problem)
        }
        other => other.into(),
    }
}
