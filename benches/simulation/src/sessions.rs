//! Sessions of many questions: whoever tries twenty changes that change nothing finds a better one by
//! luck, unless each question pays for itself.

use crate::machine::{Machine, Noise};
use crate::protocol::{ALPHA, Call, Protocol, compare_at};
use crate::studies::{QUIET, Setup};
use crate::table::{Table, percent};
use stats::wealth::{OF_SESSION, Wealth};
use std::f64::consts::PI;

/// Proposals of a session.
const PROPOSALS: u32 = 20;
/// Sessions for each figure, of the comparisons that other tables have.
const PART: u32 = 10;

/// Rules by which a proposal is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// schedlab's ledger.
    Ledger,
    /// e-LOND, which controls the share of false acceptances among all.
    Elond,
    /// Each question at 5 %.
    Each,
    /// Three runs a side, accepted if the mean is 2 % better.
    LooksBetter,
}

/// The effects of the proposals of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    /// Every fifth proposal is 3 % better.
    EveryFifth,
    /// Fifteen that are 10 % better come before the twenty that change nothing.
    Padded,
}

impl Rule {
    const ALL: [Rule; 4] = [Rule::Ledger, Rule::Elond, Rule::Each, Rule::LooksBetter];

    fn name(self) -> &'static str {
        match self {
            Rule::Ledger => "ledger",
            Rule::Elond => "e-LOND",
            Rule::Each => "5 % each",
            Rule::LooksBetter => "looks better",
        }
    }
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Content::Nothing => "nothing changes",
            Content::EveryFifth => "every fifth +3 %",
            Content::Padded => "15 × +10 %, then nothing",
        }
    }

    fn effects(self) -> Vec<f64> {
        let nothing = (0..PROPOSALS).map(|_| 0.0);
        match self {
            Content::Nothing => nothing.collect(),
            Content::EveryFifth => (1..=PROPOSALS)
                .map(|n| if n.is_multiple_of(5) { 0.03 } else { 0.0 })
                .collect(),
            Content::Padded => (0..15).map(|_| 0.1).chain(nothing).collect(),
        }
    }
}

/// Error that is left under a rule.
struct Account {
    rule: Rule,
    wealth: Wealth,
    asked: u32,
    accepted: u32,
}

impl Account {
    fn new(rule: Rule) -> Account {
        Account {
            rule,
            wealth: Wealth::new_session(OF_SESSION),
            asked: 0,
            accepted: 0,
        }
    }

    /// Judges one proposal: accepted, and the blocks that it took. None where nothing can be asked.
    fn judge(&mut self, machine: &mut Machine) -> Option<(bool, u32)> {
        self.asked += 1;
        let alpha = match self.rule {
            Rule::Ledger => self.wealth.next_price()?,
            // The weights 6 / (pi t)² add up to one.
            Rule::Elond => {
                let weight = 6.0 / (PI * f64::from(self.asked)).powi(2);
                ALPHA * weight * f64::from(self.accepted + 1)
            }
            Rule::Each | Rule::LooksBetter => ALPHA,
        };
        let outcome = match self.rule {
            Rule::LooksBetter => Protocol::Percentage(3).compare(machine),
            _ => compare_at(machine, alpha),
        };
        let is_accepted = outcome.call == Call::Gain;
        self.accepted += u32::from(is_accepted);
        self.wealth.pay_price(alpha);
        if is_accepted {
            self.wealth.return_price(alpha);
        }
        Some((is_accepted, outcome.blocks))
    }
}

/// Sums over sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    sessions: u32,
    with_false: u32,
    real: u32,
    found: u32,
    asked: u32,
    blocks: u32,
}

fn sum_sessions(rule: Rule, content: Content, noise: Noise, setup: &Setup) -> Sums {
    let effects = content.effects();
    let mut sums = Sums::default();
    for session in 0..(setup.series / PART).max(1) {
        let mut account = Account::new(rule);
        let mut is_false = false;
        for (number, effect) in (0u32..).zip(&effects) {
            let stream = session * 64 + number;
            let mut machine = Machine::new(noise, QUIET, *effect, setup.seed, stream);
            let is_real = *effect > 0.0;
            sums.real += u32::from(is_real);
            let Some((is_accepted, blocks)) = account.judge(&mut machine) else {
                continue;
            };
            sums.asked += 1;
            sums.blocks += blocks;
            sums.found += u32::from(is_accepted && is_real);
            is_false |= is_accepted && !is_real;
        }
        sums.sessions += 1;
        sums.with_false += u32::from(is_false);
    }
    sums
}

/// Sessions of twenty proposals under each rule.
pub fn study(setup: &Setup) -> Table {
    let header = [
        "session",
        "noise",
        "rule",
        "accepts a false one",
        "real ones found",
        "blocks a question",
    ];
    let note = "Sessions of 20 proposals, sd 2 %, at most 40 blocks each; a tenth as many sessions as\n\
                comparisons elsewhere. Looks better: three runs a side, one arm after the other, and a mean\n\
                that is 2 % better. The ledger promises that a session accepts no false one in 95 %, e-LOND keeps\n\
                the share of false ones among all that are accepted.";
    let mut table = Table::new(
        "Sessions of many questions",
        header.map(str::to_owned).to_vec(),
        note,
    );
    for content in [Content::Nothing, Content::EveryFifth, Content::Padded] {
        for rule in Rule::ALL {
            table.push(row(rule, content, Noise::Normal, setup));
        }
    }
    for noise in [Noise::HeavyTails, Noise::Bursts, Noise::Drift, Noise::Step] {
        table.push(row(Rule::Ledger, Content::Nothing, noise, setup));
    }
    table
}

fn row(rule: Rule, content: Content, noise: Noise, setup: &Setup) -> Vec<String> {
    let sums = sum_sessions(rule, content, noise, setup);
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
    let found = match sums.real {
        0 => "-".to_owned(),
        real => percent(share(sums.found, real)),
    };
    vec![
        content.name().to_owned(),
        noise.name(),
        rule.name().to_owned(),
        percent(share(sums.with_false, sums.sessions)),
        found,
        format!("{:.1}", share(sums.blocks, sums.asked)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETUP: Setup = Setup {
        series: 2000,
        seed: 1,
    };

    fn sums(rule: Rule, content: Content) -> Sums {
        sum_sessions(rule, content, Noise::Normal, &SETUP)
    }

    #[test]
    fn a_session_with_a_ledger_accepts_nothing_that_changes_nothing_and_luck_does() {
        let ledger = sums(Rule::Ledger, Content::Nothing);
        assert!(ledger.with_false * 20 <= ledger.sessions, "{ledger:?}");
        for rule in [Rule::Each, Rule::LooksBetter] {
            let luck = sums(rule, Content::Nothing);
            assert!(luck.with_false * 10 > luck.sessions, "{rule:?} {luck:?}");
        }
    }

    #[test]
    fn real_ones_are_found_all_the_same_and_buy_no_false_ones() {
        let fifth = sums(Rule::Ledger, Content::EveryFifth);
        assert!(fifth.found * 10 > fifth.real * 7, "{fifth:?}");
        let padded = sums(Rule::Ledger, Content::Padded);
        assert!(padded.with_false * 20 <= padded.sessions, "{padded:?}");
    }
}
