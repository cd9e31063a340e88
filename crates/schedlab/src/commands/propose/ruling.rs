//! The answer to a proposal: accepted or not, by what, and what is left.

use model::printable::one_line;
use referee::{Answer, Books, Earlier, Finding, Outcome, Question, Registered};
use report::proof::{InForce, Proof, find_proof};
use report::{Comparison, Table, Verdict};
use results::ResultSet;
use serde::Serialize;
use std::fmt::Write;

/// Everything about one question.
#[derive(Debug, Clone, Serialize)]
pub struct Ruling {
    pub accepted: bool,
    /// One sentence.
    pub why: String,
    pub question: Question,
    pub answer: Answer,
    pub asked_before: Earlier,
    /// The same in a sentence; empty where it is asked for the first time.
    pub warning: String,
    pub proof: Proof,
    pub ledger: LedgerState,
}

/// The rest of the session after this question.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LedgerState {
    pub session: u32,
    /// Questions so far, with this one.
    pub asked: usize,
    pub accepted: usize,
    /// Error of the session, as a share.
    pub whole: f64,
    pub left: f64,
    /// Error rate of the next question; none where the session is at its end.
    pub next_price: Option<f64>,
    /// Questions that can follow if none of them is accepted.
    pub more_questions: u32,
}

impl Ruling {
    /// `is_whole`: measuring came to its own end.
    pub fn judge(
        registered: &Registered,
        results: &ResultSet,
        table: &Table,
        is_whole: bool,
    ) -> Ruling {
        let deciding: Vec<&Comparison> = table
            .all_comparisons()
            .filter(|c| c.deciding && !c.aa)
            .collect();
        let question = &registered.question;
        let paid_for = deciding.len() <= question.comparisons as usize;
        let (is_better, why) = match paid_for {
            true => weigh(&deciding, table.has_worse_events()),
            false => (
                false,
                format!(
                    "{} comparisons were measured and {} were paid for",
                    deciding.len(),
                    question.comparisons
                ),
            ),
        };
        let outcome = match (is_better, is_whole) {
            (true, _) => Outcome::Accepted,
            (false, true) => Outcome::NotAccepted,
            (false, false) if results.trials.is_empty() => Outcome::Withdrawn,
            (false, false) => Outcome::Interrupted,
        };
        Ruling {
            accepted: outcome == Outcome::Accepted,
            why,
            answer: Answer {
                session: question.session,
                number: question.number,
                at: String::new(),
                outcome,
                findings: deciding.iter().map(|c| found(c)).collect(),
                results: Some(results.dir.display().to_string()),
            },
            question: question.clone(),
            asked_before: registered.earlier,
            warning: warn_of_earlier(registered.earlier, question),
            proof: find_proof(results, table),
            ledger: LedgerState::default(),
        }
    }

    /// Fills in what is left of the session.
    pub fn enter_session(&mut self, books: &Books) {
        if let Some(state) = books.find_session(self.question.session) {
            self.ledger = LedgerState {
                session: state.session.session,
                asked: state.questions.len(),
                accepted: state.count_accepted(),
                whole: state.session.error,
                left: state.wealth.left(),
                next_price: state.wealth.next_price(),
                more_questions: state.wealth.count_questions(),
            };
        }
    }

    /// The answer for a person.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let word = self.answer.outcome.name().to_uppercase();
        let _ = writeln!(text, "{word}: {}", self.why);
        let _ = writeln!(text, "  {}", one_line(&self.question.words));
        for finding in &self.answer.findings {
            let _ = writeln!(text, "  {}", finding_text(finding));
        }
        text += &proof_text(&self.proof);
        text += &self.ledger.to_text(&self.question);
        if !self.warning.is_empty() {
            let _ = writeln!(text, "CAUTION: {}", self.warning);
        }
        if let Some(results) = &self.answer.results {
            let _ = writeln!(text, "\nResults  {}", one_line(results));
        }
        text
    }
}

/// Better in something and worse in nothing, and the reason.
fn weigh(deciding: &[&Comparison], has_worse_events: bool) -> (bool, String) {
    let with = |verdict| deciding.iter().find(move |c| c.verdict == verdict);
    let say = |c: &Comparison| {
        let cell = format!("{} {}", c.workload, c.load);
        format!("{} of {}", c.metric, one_line(&cell))
    };
    if let Some(worse) = with(Verdict::Worse) {
        return (false, format!("{} is worse", say(worse)));
    }
    if has_worse_events {
        return (false, "it has more of a rare event".to_owned());
    }
    if let Some(better) = with(Verdict::Better) {
        return (
            true,
            format!("{} is better, and nothing is worse", say(better)),
        );
    }
    let Some(open) = with(Verdict::Unknown) else {
        return match deciding.first() {
            Some(same) => (
                false,
                format!("{} is the same, as far as it matters", say(same)),
            ),
            None => (false, "nothing was compared".to_owned()),
        };
    };
    let more = match (open.blocks, open.blocks_needed) {
        (0, _) => "not one block of it counts".to_owned(),
        (blocks, Some(needed)) if needed as usize > blocks => {
            format!("{blocks} blocks were measured, about {needed} would be needed")
        }
        (blocks, _) => format!("{blocks} blocks do not show a difference"),
    };
    (
        false,
        format!("{} is not known to differ: {more}", say(open)),
    )
}

/// The comparisons that decide, as far as they are, a line for each.
pub fn findings_text(table: &Table) -> String {
    let deciding = table.all_comparisons().filter(|c| c.deciding && !c.aa);
    let lines = deciding.map(|c| finding_text(&found(c)) + "\n");
    lines.collect()
}

/// The comparisons that decide, for the ledger.
pub fn list_findings(table: &Table) -> Vec<Finding> {
    let deciding = table.all_comparisons().filter(|c| c.deciding && !c.aa);
    deciding.map(found).collect()
}

fn found(comparison: &Comparison) -> Finding {
    let difference = comparison.difference.as_ref();
    let (change, low, high) = match difference {
        Some(found) => (Some(found.value), found.low, found.high),
        None => (comparison.ratio, comparison.low, comparison.high),
    };
    Finding {
        cell: format!("{} {}", comparison.workload, comparison.load),
        metric: comparison.metric.clone(),
        verdict: comparison.verdict.as_str().to_owned(),
        change,
        low,
        high,
        difference_unit: difference.map(|_| comparison.unit.clone()),
        confidence: comparison.confidence,
        e_value: comparison.e_value,
        blocks: comparison.blocks,
    }
}

/// `wakeup 50% wakeup_p99: better, -12.3 % (-14.0 to -10.1), evidence 4e5 of 200, 80 blocks`
pub fn finding_text(finding: &Finding) -> String {
    let evidence = finding.e_value.map_or(String::new(), |e| {
        let deciding = 1.0 / (1.0 - finding.confidence);
        format!(", evidence {e:.1e} of {deciding:.0}")
    });
    format!(
        "{} {}: {}{}{evidence}, {} blocks",
        one_line(&finding.cell),
        finding.metric,
        finding.verdict,
        change_text(finding),
        finding.blocks
    )
}

/// `, -12.3 % (-14.0 to -10.1)`; empty where there is none.
fn change_text(finding: &Finding) -> String {
    let unit = finding.difference_unit.as_deref();
    let number = |value: f64| match unit {
        Some(unit) => report::signed_with_unit(value, unit),
        None => format!("{:+.1} %", (value - 1.0) * 100.0),
    };
    match (finding.change, finding.low, finding.high) {
        (Some(change), Some(low), Some(high)) => {
            format!(", {} ({} to {})", number(change), number(low), number(high))
        }
        (Some(change), ..) => format!(", {}", number(change)),
        _ => String::new(),
    }
}

fn proof_text(proof: &Proof) -> String {
    let mut text = format!("proof: {}", proof.trials);
    if proof.pairs > 0 {
        let _ = write!(
            text,
            "; {} pairs of windows, {} void",
            proof.pairs, proof.void_pairs
        );
    }
    text.push('\n');
    for arm in &proof.in_force {
        let _ = writeln!(text, "  {}", arm_text(arm));
    }
    for why in &proof.void {
        let _ = writeln!(text, "  void: {}", one_line(why));
    }
    text
}

fn arm_text(arm: &InForce) -> String {
    let found = match arm.found.is_empty() {
        true => "nothing was to be changed".to_owned(),
        false => arm.found.join("; "),
    };
    let text = format!(
        "{}: read {} times in {}: {found}",
        arm.arm,
        arm.readings,
        report::format_count(arm.trials, "trial")
    );
    one_line(&text).into_owned()
}

impl LedgerState {
    fn to_text(&self, question: &Question) -> String {
        let percent = |share: f64| format!("{:.3} %", 100.0 * share);
        let next = match self.next_price {
            Some(price) => format!(
                "the next question costs {}, {} more can be asked if none is accepted",
                percent(price),
                self.more_questions
            ),
            None => "nothing more can be asked in it".to_owned(),
        };
        format!(
            "ledger: question {} of session {}, registered before it was measured at {}; {} of {} \
             accepted; {} of {} left; {next}\n",
            question.number,
            self.session,
            percent(question.price),
            self.accepted,
            self.asked,
            percent(self.left),
            percent(self.whole)
        )
    }
}

/// The question with its place in the ledger, for the results and for who waits.
pub fn registered_text(registered: &Registered) -> String {
    let question = &registered.question;
    let mut text = format!(
        "Question {} of session {}: is {} better? Registered at {}, before it was measured, at an error \
         of {:.3} %.",
        question.number,
        question.session,
        one_line(&question.words),
        question.at,
        100.0 * question.price
    );
    let warning = warn_of_earlier(registered.earlier, question);
    if !warning.is_empty() {
        text.push(' ');
        text += &warning;
    }
    text
}

/// Sessions that begin anew after others found nothing have more error together than one.
fn warn_of_earlier(earlier: Earlier, question: &Question) -> String {
    let mut sentences = Vec::new();
    if earlier.in_this_session > 0 {
        let count = report::format_count(earlier.in_this_session, "time");
        sentences.push(format!(
            "The same was asked {count} before in this session."
        ));
    }
    let others = earlier.in_other_sessions;
    if others > 0 {
        sentences.push(format!(
            "This is the {} session on this question.",
            ordinal(others + 1)
        ));
    }
    if earlier.sessions_on_subject > 0 {
        let sessions = earlier.sessions_on_subject + 1;
        #[expect(clippy::cast_precision_loss, reason = "a number of sessions")]
        let error = (100.0 * referee::ERROR_OF_SESSION * sessions as f64).min(100.0);
        sentences.push(format!(
            "Session {} is the {} on the same work: the chance that one of them accepts something \
             that is not better is up to {error:.0} %.",
            question.session,
            ordinal(sessions)
        ));
    }
    if others + earlier.in_this_session > 0 {
        let accepted = earlier.accepted;
        sentences.push(format!("So far it was accepted {}.", times(accepted)));
    }
    sentences.join(" ")
}

fn times(count: usize) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

fn ordinal(number: usize) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            session: 3,
            number: 1,
            at: "now".to_owned(),
            question: "q".to_owned(),
            subject: "s".to_owned(),
            words: "nice=5 against default".to_owned(),
            price: 0.005,
            comparisons: 1,
            seed: 1,
        }
    }

    #[test]
    fn a_new_session_on_the_same_question_says_which_one_it_is() {
        let first = warn_of_earlier(Earlier::default(), &question());
        assert_eq!(first, "");
        let earlier = Earlier {
            in_this_session: 0,
            in_other_sessions: 2,
            accepted: 0,
            sessions_on_subject: 2,
        };
        let third = warn_of_earlier(earlier, &question());
        for said in [
            "This is the third session on this question.",
            "Session 3 is the third on the same work",
            "up to 15 %",
            "accepted never",
        ] {
            assert!(third.contains(said), "{said}: {third}");
        }
    }

    #[test]
    fn without_a_comparison_nothing_is_accepted() {
        assert_eq!(
            weigh(&[], false),
            (false, "nothing was compared".to_owned())
        );
    }
}
