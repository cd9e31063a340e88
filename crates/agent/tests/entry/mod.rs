//! Common parts of the tests of a new entry of a table.

use agent::{Options, serve};
use miette::Diagnostic;
use model::{Build, Experiment, Problem, Reply, Request, Side, TrialResult, TrialSpec};
use std::io::{BufRead, BufReader, Write};

/// Line and column of what is wrong with a file, both from 1, and the help.
pub fn wrong(file: &str) -> (usize, usize, String) {
    let error = plan::parse_experiment("x.toml", file).unwrap_err();
    let label = error.labels().unwrap().next().unwrap();
    let text = error.source_code().unwrap();
    let text = text.read_span(label.inner(), 0, 0).unwrap();
    let help = error.help().map(|help| help.to_string());
    (text.line() + 1, text.column() + 1, help.unwrap_or_default())
}

/// The problems of an experiment on this machine, and one trial of its first arm under its first
/// workload.
pub fn trial(experiment: &Experiment) -> (Vec<Problem>, TrialResult) {
    let workload = &experiment.workloads[0];
    let arm = experiment.arms[0].clone();
    let spec = Box::new(TrialSpec {
        observe: experiment.observe.clone(),
        ..TrialSpec::new(arm, workload.clone(), workload.loads[0])
    });
    let experiment = Box::new(experiment.clone());
    let side = Side::Both;
    let requests = [Request::Check { experiment, side }, Request::Trial { spec }];
    let mut replies = answers(&requests);
    match (replies.pop(), replies.pop()) {
        (Some(Reply::Trial { mut results }), Some(Reply::Checked { problems, .. })) => {
            (problems, results.remove(0))
        }
        replies => panic!("{replies:?}"),
    }
}

/// The replies of an agent in this process.
fn answers(requests: &[Request]) -> Vec<Reply> {
    let state = tempfile::tempdir().unwrap();
    let (input, mut requested) = std::io::pipe().unwrap();
    let (replies, output) = std::io::pipe().unwrap();
    for request in requests {
        writeln!(requested, "{}", serde_json::to_string(request).unwrap()).unwrap();
    }
    let options = Options {
        state_dir: state.path().to_owned(),
        root: "/".into(),
        executable: "/proc/self/exe".into(),
        guard: false,
        build: Build::default(),
    };
    let agent = std::thread::spawn(move || serve(BufReader::new(input), output, options));
    let replies = BufReader::new(replies).lines().map(Result::unwrap);
    let replies = replies.map(|line| serde_json::from_str(&line).unwrap());
    let is_answer = |reply: &Reply| !reply.precedes_answer();
    let answers: Vec<Reply> = replies.filter(is_answer).take(requests.len()).collect();
    drop(requested);
    agent.join().unwrap().unwrap();
    answers
}
