//! A bisection as a person reads it.

use super::{State, Step};
use git::Next;
use std::fmt::Write;

/// The answer, the path that led to it, and how sure it is.
pub fn answer_text(state: &State, next: &Next) -> String {
    let mut text = String::new();
    let _ = match (next, &state.again) {
        (Next::First(first), Some(again)) => {
            writeln!(text, "The first bad commit is {first}\n  {}", again.subject)
        }
        _ => writeln!(
            text,
            "Which commit is the first bad one is not known: {}.",
            state.name_suspects()
        ),
    };
    let _ = writeln!(
        text,
        "\nbisected {} commits; changes of less than {:.1} % count as the same",
        state.commits,
        state.smallest_effect * 100.0
    );
    let ends = state.ends.iter().map(|step| ("both ends", step));
    let steps = state.steps.iter().map(|step| ("", step));
    let again = state.again.iter().map(|step| ("with its parent", step));
    for (what, step) in ends.chain(steps).chain(again) {
        let _ = writeln!(text, "  {}", line(what, step));
    }
    let _ = writeln!(
        text,
        "\nEach commit was compared with the good one, in turns in one run. All calls of the path \
         hold together with {} %:\neach was made at as much more. A skipped commit says nothing.",
        (state.confidence * 1e5).round() / 1e3
    );
    if let Some(again) = state.again.as_ref().filter(|again| again.verdict != "bad") {
        let _ = writeln!(
            text,
            "\nCAUTION: beside its own parent the commit was not found to be worse ({}): look at \
             both, or run the steps again with a larger --budget.",
            again.why
        );
    }
    text
}

fn line(what: &str, step: &Step) -> String {
    let short = step.commit.get(..git::SHORT).unwrap_or(&step.commit);
    let what = match what {
        "" => String::new(),
        what => format!(" [{what}]"),
    };
    format!(
        "{short}  {:<4}  {}{what}: {}",
        step.verdict, step.subject, step.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(verdict: &str) -> Step {
        Step {
            commit: "0123456789abcdef".to_owned(),
            subject: "balance less often".to_owned(),
            verdict: verdict.to_owned(),
            why: "requests_per_sec worse, -10.0 % (-12.0 to -8.0)".to_owned(),
            results: None,
        }
    }

    fn state(again: &str) -> State {
        State {
            program: "scx_rusty".to_owned(),
            build: None,
            config: None,
            fragments: Vec::new(),
            patches: Vec::new(),
            paths: Vec::new(),
            digests: Vec::new(),
            good: "a".to_owned(),
            bad: "b".to_owned(),
            commits: 32,
            confidence: 0.95,
            smallest_effect: 0.05,
            ends: Some(step("bad")),
            steps: vec![step("bad")],
            again: Some(step(again)),
        }
    }

    #[test]
    fn the_answer_comes_first_and_a_doubt_of_it_is_said() {
        let first = Next::First("0123456789abcdef".to_owned());
        let sure = answer_text(&state("bad"), &first);
        let begin = "The first bad commit is 0123456789abcdef\n  balance less often\n";
        assert!(sure.starts_with(begin), "{sure}");
        assert!(!sure.contains("CAUTION"), "{sure}");
        assert!(answer_text(&state("good"), &first).contains("CAUTION"));
        let none = answer_text(&state("bad"), &Next::OnlySkipped);
        assert!(
            none.contains("is not known: 0123456789ab (balance less often), or"),
            "{none}"
        );
    }
}
