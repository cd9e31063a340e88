//! State of a bisection, as its directory keeps it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// State of a bisection, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// Scheduler or program, and the command that builds it; or `kernel` and its configuration.
    pub(super) program: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fragments: Vec<PathBuf>,
    /// Content of the files that configure the kernel (SHA-256).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) digests: Vec<String>,
    /// Paths that the commits change which are looked at; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) paths: Vec<String>,
    /// Content of the patches that each commit is built with (SHA-256).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) patches: Vec<String>,
    pub(super) good: String,
    pub(super) bad: String,
    /// Commits after the good one, up to the bad one.
    pub(super) commits: u32,
    /// Confidence that all calls hold together.
    pub(super) confidence: f64,
    /// Smallest change that was looked for.
    pub(super) smallest_effect: f64,
    /// Comparison of both ends.
    pub(super) ends: Option<Step>,
    pub(super) steps: Vec<Step>,
    /// Comparison of the culprit with its parent.
    pub(super) again: Option<Step>,
}

impl State {
    /// The commit that is surely bad while the first one is not known: `0123456789ab (balance less often), or a commit before it
    /// that was skipped`.
    pub(super) fn name_suspects(&self) -> String {
        let mut steps = self.steps.iter().rev().chain(&self.ends);
        match steps.find(|step| step.verdict == "bad") {
            Some(bad) => {
                let short = bad.commit.get(..git::SHORT).unwrap_or(&bad.commit);
                format!(
                    "{short} ({}), or a commit before it that was skipped",
                    bad.subject
                )
            }
            None => "a commit that was skipped".to_owned(),
        }
    }

    /// Thing that the other one looks for and this one does not; none where both are one bisection.
    pub(super) fn differs_from(&self, other: &State) -> Option<&'static str> {
        let configuration = |state: &State| {
            let files = (state.fragments.clone(), state.digests.clone());
            (state.config.clone(), files)
        };
        let is_same = [
            ("program", self.program == other.program),
            ("good commit", self.good == other.good),
            ("bad commit", self.bad == other.bad),
            ("build command", self.build == other.build),
            ("patch", self.patches == other.patches),
            ("path", self.paths == other.paths),
            (
                "configuration of the kernel",
                configuration(self) == configuration(other),
            ),
        ];
        let mut differing = is_same.into_iter().filter(|(_, is_same)| !is_same);
        differing.next().map(|(what, _)| what)
    }
}

/// A commit that was judged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    pub(super) commit: String,
    pub(super) subject: String,
    /// `good`, `bad` or `skip`.
    pub(super) verdict: String,
    /// Comparison that the verdict is from, or the reason for which there is none.
    pub(super) why: String,
    /// Results directory, below that of the bisection.
    pub(super) results: Option<PathBuf>,
}
