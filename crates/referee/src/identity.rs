//! The identity of a question, by which two are the same.

use model::printable::write_hexadecimal;
use model::{Arm, Experiment, Workload};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Parts of a workload that say what is done. How long and how it is measured says nothing of that: who
/// asks again with a longer window asks the same.
const OF_WORKLOAD: [&str; 8] = [
    "kind",
    "loads",
    "server",
    "services",
    "antagonists",
    "client",
    "load_on",
    "load_way",
];

/// Hashes of a question and of what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Target, work, baseline and proposal.
    pub question: String,
    /// Target and work.
    pub subject: String,
}

/// Identity of the question whether `proposal` is better than the baseline of an experiment.
pub fn identify_question(experiment: &Experiment, proposal: usize) -> Identity {
    let workloads = experiment.workloads.iter().map(reduce_workload);
    let mut workloads: Vec<String> = workloads.map(|workload| workload.to_string()).collect();
    // Their order says nothing.
    workloads.sort();
    let subject = json!({ "target": as_value(&experiment.target), "workloads": workloads });
    let arms = [experiment.baseline, proposal].map(|arm| changes(&experiment.arms[arm]));
    let question = json!({ "subject": subject, "arms": arms });
    Identity {
        question: hash_text(&question.to_string()),
        subject: hash_text(&subject.to_string()),
    }
}

/// What is done by a workload, and beside it.
fn reduce_workload(workload: &Workload) -> Value {
    let whole = as_value(workload);
    let kept = OF_WORKLOAD.iter().filter_map(|key| {
        let value = whole.get(*key)?;
        Some(((*key).to_owned(), value.clone()))
    });
    let mut kept: Map<String, Value> = kept.collect();
    if !workload.co_runners.is_empty() {
        let beside = workload.co_runners.iter().map(reduce_workload);
        kept.insert("co_runners".to_owned(), beside.collect());
    }
    Value::Object(kept)
}

/// Identity of a question that is no experiment with two arms, from what it is about and what it asks.
pub fn identify_text(subject: &str, question: &str) -> Identity {
    Identity {
        question: hash_text(question),
        subject: hash_text(subject),
    }
}

/// Changes of an arm, whatever it is called.
fn changes(arm: &Arm) -> Value {
    Value::Object(as_value(&Arm {
        name: String::new(),
        ..arm.clone()
    }))
}

fn as_value(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("the words of the model are structs"),
    }
}

/// The first half of the SHA-256 of a text.
pub(crate) fn hash_text(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    write_hexadecimal(&digest[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(arm: &str, workload: &str) -> Identity {
        catalogue::install();
        let text = format!(
            "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n{arm}\n[[workload]]\nkind = \"wakeup\"\n{workload}\n"
        );
        let experiment = plan::parse_experiment("x.toml", &text).unwrap();
        identify_question(&experiment, 1)
    }

    #[test]
    fn how_a_question_is_measured_makes_it_no_other_question() {
        let first = identity("policy = { nice = 5 }", "");
        for workload in ["duration = \"7s\"", "metrics = [\"requests_per_sec\"]"] {
            assert_eq!(identity("policy = { nice = 5 }", workload), first);
        }
    }

    #[test]
    fn another_proposal_is_another_question_on_the_same_subject() {
        let first = identity("policy = { nice = 5 }", "");
        let other = identity("policy = { nice = 6 }", "");
        assert_eq!(first.subject, other.subject);
        assert_ne!(first.question, other.question);
        let elsewhere = identity("policy = { nice = 5 }", "loads = [3]");
        assert_ne!(first.subject, elsewhere.subject);
        let beside = |load: u32| {
            let keys = format!("[[workload.co-runner]]\nkind = \"periodic\"\nload = {load}");
            identity("policy = { nice = 5 }", &keys)
        };
        assert_ne!(first.subject, beside(1).subject);
        assert_ne!(beside(1).subject, beside(2).subject);
    }
}
