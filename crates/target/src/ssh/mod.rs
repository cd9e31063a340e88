//! Another machine, over ssh(1): the user's own program with its configuration, and this very
//! binary as the agent there.

mod agent_file;
mod checks;
mod far;
mod look;
mod session;
mod spec;

pub use spec::{KEYS, SshSpec, Sudo};

use crate::{Boot, Can, Host, Looked, Session, Target, TargetDef, TargetError};
use agent_file::AgentFile;
use far::Failure;
use look::Look;
use model::{Arm, Experiment, Fact, Problem, Reset, Severity, TargetSpec, Warning};
use serde::Deserialize;
use session::SshSession;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "ssh";
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// Clocks that differ by more are told.
const CLOCKS_S: u64 = 60;

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "another machine, over ssh",
    keys: KEYS,
    short: Some("host"),
    read: |keys| {
        let ssh = SshSpec::deserialize(keys)?;
        ssh.check()?;
        Ok(TargetSpec::from(&ssh))
    },
    can: |spec| {
        SshSpec::of(spec)?;
        Ok(CAN)
    },
    expose: None,
    shown: |spec| Ok(SshSpec::of(spec)?.shown()),
    make: |spec, host| Ok(Box::new(SshTarget::new(SshSpec::of(spec)?, host))),
};

const CAN: Can = Can {
    kernels: false,
    cpus: None,
    apart: true,
    here: false,
    reset: Reset::None,
};

/// Another machine, with an agent that ssh(1) starts there.
#[derive(Debug)]
pub struct SshTarget {
    spec: SshSpec,
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

impl SshTarget {
    fn new(spec: SshSpec, host: &Host) -> Self {
        // This very file, also after another build took its place.
        let this = || PathBuf::from("/proc/self/exe");
        let given = spec.agent.clone().or_else(|| host.program.clone());
        SshTarget {
            program: given.unwrap_or_else(this),
            spec,
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
            None => AgentFile::read(&self.program, self.spec.agent.is_some())?,
        };
        Ok(self.agent.insert(agent))
    }

    /// The machine as it is now.
    fn look(&mut self) -> Result<Look, Failure> {
        if let Some(look) = self.fresh.take() {
            return Ok(look);
        }
        let hash = self.agent()?.hash.clone();
        let look = self.spec.look(&hash, self.spec.sudo != Sudo::No)?;
        self.ahead_s = look.ahead_s;
        Ok(look)
    }

    /// The reason for which no agent could be started there, if there is one.
    fn hindrance(&mut self, look: &Look) -> Result<(), Problem> {
        let spec = self.spec.clone();
        if look.system != "Linux" {
            let what = format!("the machine runs {}", look.system);
            return Err(spec.problem(what, "schedlab compares schedulers of Linux"));
        }
        if let Some(problem) = self.agent()?.misfit(&spec.host, &look.machine) {
            return Err(problem);
        }
        if !look.is_writable {
            let what = format!("{} cannot be written", look.cache);
            let remedy = "the agent is kept there; XDG_CACHE_HOME on the machine names another";
            return Err(spec.problem(what, remedy));
        }
        if let (Sudo::Yes, Some(Err(said))) = (spec.sudo, &look.sudo) {
            return Err(spec.problem(format!("sudo -n true: {said}"), checks::SUDO_REMEDY));
        }
        match self
            .first
            .as_ref()
            .filter(|first| first.release != look.release)
        {
            Some(first) => Err(spec.problem(
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
        let spec = self.spec.clone();
        let agent = self.agent()?;
        if look.agent.as_deref() != Some(agent.hash.as_str()) {
            tracing::info!(
                "copying the agent to {}: {} MiB",
                spec.host,
                agent.bytes.len() >> 20
            );
            spec.copy(agent, look)?;
        }
        let program = format!("{}/agent-{}", look.cache, agent.hash);
        let cache = format!("SCHEDLAB_CACHE_DIR={}", look.cache);
        let by_sudo = as_root && matches!(look.sudo, Some(Ok(())));
        let sudo: &[&str] = if by_sudo { &["sudo", "-n"] } else { &[] };
        let words = [sudo, &["env", &cache, &program], args].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        Ok(spec.command(&words))
    }

    fn start(&mut self) -> Result<SshSession, Failure> {
        let look = self.look()?;
        let as_root = match self.spec.sudo {
            Sudo::Auto => self.changes,
            Sudo::Yes => true,
            Sudo::No => false,
        };
        let controller = controller();
        let command = self.started(&look, &["agent-here", "--for", &controller], as_root)?;
        let first = self.first.as_ref().unwrap_or(&look);
        let facts = vec![
            Fact::found("kernel", look.release.clone()).wants(first.release.clone()),
            Fact::found("machine", look.hostname.clone()).wants(first.hostname.clone()),
        ];
        let session = SshSession::start(command, &self.spec, facts, &self.interrupted)?;
        self.first.get_or_insert(look);
        Ok(session)
    }

    /// The time until which another try makes sense after this one.
    fn patience(&self, failure: &Failure) -> Option<Duration> {
        match failure {
            Failure::Busy(_) if self.wait => Some(Duration::MAX),
            // The agent of the lost connection may still have the machine.
            Failure::Busy(_) | Failure::Connection(_) if self.first.is_some() => {
                Some(self.spec.reconnect())
            }
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

impl Target for SshTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn can(&self) -> Can {
        CAN
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        self.changes = experiment
            .arms
            .iter()
            .any(|arm| *arm != Arm::unchanged(&arm.name));
        let looked = self.look().and_then(|look| {
            self.hindrance(&look)?;
            self.fresh = Some(look);
            Ok(())
        });
        match looked.map_err(TargetError::from) {
            Ok(()) => Vec::new(),
            Err(TargetError::Unmet(problem)) => vec![problem],
            Err(other) => vec![self.spec.problem(other.to_string(), "install ssh(1)")],
        }
    }

    fn opening(&self, _boot: &Boot) -> String {
        format!("starting the agent on {}", self.spec.host)
    }

    fn open(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        boot.is_the_targets_own()?;
        let since = Instant::now();
        let mut told = false;
        loop {
            let failure = match self.start() {
                Ok(session) => return Ok(Box::new(session)),
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

    fn look(&mut self) -> Result<Looked, TargetError> {
        Ok(checks::look(self)?)
    }

    fn command(&mut self, args: &[&str]) -> Result<Command, TargetError> {
        let look = SshTarget::look(self)?;
        let as_root = self.spec.sudo != Sudo::No;
        Ok(self.started(&look, args, as_root)?)
    }

    fn warnings(&self) -> Vec<Warning> {
        let differs = self.ahead_s.unsigned_abs() > CLOCKS_S;
        let warning = || Warning {
            severity: Severity::Caution,
            what: format!(
                "The clock of {} is {} of the one where schedlab was started: times of trials \
                 and of files differ.",
                self.spec.host,
                checks::clocks(self.ahead_s)
            ),
            remedy: "Set it, as by NTP.".to_owned(),
        };
        differs.then(warning).into_iter().collect()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("ssh.host".to_owned(), self.spec.host.clone())])
    }
}

/// The last failure, and for how long there was none other.
fn given_up(failure: Failure, patience: Duration) -> TargetError {
    match failure {
        Failure::Connection(mut problem) | Failure::Busy(mut problem) if !patience.is_zero() => {
            let for_how_long = model::format_duration_ns(model::nanos(patience));
            problem.what = format!("tried again for {for_how_long}: {}", problem.what);
            problem.remedy =
                "what was measured is kept; go on with: schedlab run --resume DIR".into();
            TargetError::Unmet(problem)
        }
        other => other.into(),
    }
}
