//! Duties of every target, as one test for all: agents start, answer, measure and prove; they
//! end when they are told to, or in the middle of a trial; nothing is left.

use crate::{Boot, Session, Target, TargetError};
use doors::read::kernel_bytes;
use model::{
    Experiment, PROTOCOL_VERSION, Reply, Request, Side, TrialResult, TrialSpec, TrialState,
};
use std::time::{Duration, Instant};

/// Time for an answer, long enough for a guest whose CPUs are emulated on a busy machine.
const ANSWER: Duration = Duration::from_secs(120);
const NO_KERNEL: &str = "/no/such/kernel";

/// Opens the target and puts it through everything; an error says what it does not do.
///
/// The agent must be schedlab's. The experiment has one arm, which changes nothing, and
/// two workloads: the first ends soon, the second lasts for minutes. The command line of
/// every process of the second has `mark` in it.
pub fn check_conformance(
    target: &mut dyn Target,
    experiment: &Experiment,
    mark: &str,
) -> Result<(), String> {
    let problems = target.check(experiment);
    expect(problems.is_empty(), || format!("it lacks {problems:?}"))?;
    let first = target.open_session(&Boot::default());
    let mut session = first.map_err(|e| format!("no agent: {e}"))?;
    answers(session.as_mut(), experiment)?;
    for attempt in 1..=2 {
        let result = measured(session.as_mut(), experiment)?;
        proves(target, session.as_mut(), &result).map_err(|e| format!("trial {attempt}: {e}"))?;
    }
    ends_in_the_middle(session, experiment, mark)?;
    let again = target.open_session(&Boot::default());
    let session = again.map_err(|e| format!("no agent after another: {e}"))?;
    says_goodbye(session)?;
    leaves_nothing(mark)?;
    refuses_a_kernel(target)
}

fn answers(session: &mut dyn Session, experiment: &Experiment) -> Result<(), String> {
    let protocol = PROTOCOL_VERSION;
    let hello = ask(session, &Request::Hello { protocol })?;
    let fits = matches!(hello, Reply::Hello { protocol: p, .. } if p == protocol);
    expect(fits, || format!("no hello, but {hello:?}"))?;
    let experiment = Box::new(experiment.clone());
    let checked = ask(
        session,
        &Request::Check {
            experiment,
            side: Side::Both,
        },
    )?;
    let nothing = matches!(&checked, Reply::Checked { problems, .. } if problems.is_empty());
    expect(nothing, || format!("a check says {checked:?}"))?;
    let system = ask(session, &Request::Probe { experiment: None })?;
    let named = matches!(&system, Reply::System { system } if !system.kernel_release.is_empty());
    expect(named, || format!("a probe says {system:?}"))
}

fn measured(session: &mut dyn Session, experiment: &Experiment) -> Result<TrialResult, String> {
    match ask(session, &trial(experiment, 0))? {
        Reply::Trial { mut results } if results.len() == 1 => Ok(results.remove(0)),
        other => Err(format!("no trial, but {other:?}")),
    }
}

fn proves(
    target: &dyn Target,
    session: &mut dyn Session,
    result: &TrialResult,
) -> Result<(), String> {
    let state = &result.state;
    let (points, metrics) = (&result.evidence.points, &result.metrics);
    let counts = *state == TrialState::Ok && !metrics.is_empty();
    expect(counts, || format!("it does not count: {state:?}"))?;
    expect(!points.is_empty(), || "there is no evidence".to_owned())?;
    let facts = session.machine_facts();
    let differs = |fact: &&model::Fact| fact.wanted.as_ref().is_some_and(|w| *w != fact.found);
    if let Some(fact) = facts.iter().find(differs) {
        return Err(format!("a fact disagrees: {fact:?}"));
    }
    let kernel = facts
        .iter()
        .any(|f| f.what == "kernel" && f.wanted.is_some());
    expect(kernel || !target.abilities().kernels, || {
        "it boots kernels, and states no fact of the one that it booted".to_owned()
    })
}

/// A runner that is interrupted drops its session.
fn ends_in_the_middle(
    mut session: Box<dyn Session>,
    experiment: &Experiment,
    mark: &str,
) -> Result<(), String> {
    send(session.as_mut(), &trial(experiment, 1))?;
    let start = Instant::now();
    loop {
        match receive(session.as_mut(), ANSWER)? {
            Some(Reply::Progress { step, .. }) if step.contains("measuring") => break,
            Some(Reply::Progress { .. }) if start.elapsed() < ANSWER => {}
            other => return Err(format!("in the middle of a trial: {other:?}")),
        }
    }
    drop(session);
    leaves_nothing(mark)
}

fn says_goodbye(mut session: Box<dyn Session>) -> Result<(), String> {
    let bye = ask(session.as_mut(), &Request::Bye)?;
    expect(bye == Reply::Bye, || format!("no goodbye, but {bye:?}"))?;
    let start = Instant::now();
    while start.elapsed() < ANSWER {
        match session.receive_reply(Duration::from_millis(200)) {
            Err(TargetError::Gone { why, .. }) => {
                return expect(!why.is_empty(), || "its end is not explained".to_owned());
            }
            Err(other) => return Err(format!("its end is told as: {other}")),
            Ok(_) => {}
        }
    }
    Err("it does not end after a goodbye".to_owned())
}

fn leaves_nothing(mark: &str) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let left = left(mark);
        if left.is_empty() {
            return Ok(());
        }
        if start.elapsed() > ANSWER {
            return Err(format!("it left processes: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Command lines of children of this process, and of those that have the mark.
fn left(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut left = Vec::new();
    for process in processes.flatten().map(|entry| entry.path()) {
        let read = |name: &str| kernel_bytes(process.join(name)).unwrap_or_default();
        let argv = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        // The parent is the second word behind the name, which may have spaces.
        let behind_name = stat.rsplit(") ").next().unwrap_or_default();
        let is_child = behind_name.split(' ').nth(1) == Some(own.as_str());
        if is_child || argv.contains(mark) {
            left.push(format!("{} {argv}", process.display()));
        }
    }
    left
}

fn refuses_a_kernel(target: &mut dyn Target) -> Result<(), String> {
    let kernel = Some(NO_KERNEL.to_owned());
    match target.open_session(&Boot { kernel }) {
        Ok(_) => Err("it says that it booted a kernel that there is not".to_owned()),
        Err(_) => Ok(()),
    }
}

fn trial(experiment: &Experiment, workload: usize) -> Request {
    let workload = experiment.workloads[workload].clone();
    let (arm, load) = (experiment.arms[0].clone(), workload.loads[0]);
    Request::Trial {
        spec: Box::new(TrialSpec::new(arm, workload, load)),
    }
}

/// The answer, after whatever is said on the way to it.
fn ask(session: &mut dyn Session, request: &Request) -> Result<Reply, String> {
    send(session, request)?;
    loop {
        match receive(session, ANSWER)? {
            Some(reply) if reply.precedes_answer() => {}
            Some(reply) => return Ok(reply),
            None => return Err(format!("no answer to {request:?}")),
        }
    }
}

fn send(session: &mut dyn Session, request: &Request) -> Result<(), String> {
    let sent = session.send_request(request);
    sent.map_err(|e| format!("{request:?}: {e}"))
}

fn receive(session: &mut dyn Session, wait: Duration) -> Result<Option<Reply>, String> {
    session.receive_reply(wait).map_err(|e| match e {
        TargetError::Gone { why, tail } => format!("it is gone: {why}\n{tail}"),
        other => other.to_string(),
    })
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(otherwise()),
    }
}
