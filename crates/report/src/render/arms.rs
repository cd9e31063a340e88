//! Arms in words: what each of them is, what all have in common, and which of them is to be taken.

use crate::table::across::rivals::verdict_among_all;
use crate::table::{ArmInfo, Comparison, Table, Verdict};
use crate::words;

/// Sentences on how the arms compare with each other; more metrics than these are in JSON.
const MOST_METRICS: usize = 3;

/// Definition of each arm whose name does not say all: `Arm rusty: scx_rusty -k (scx_rusty 1.1.4,
/// sha256 0123456789ab)`.
pub fn define_arms(table: &Table) -> Vec<String> {
    table
        .arms
        .iter()
        .filter(|arm| !arm.aa)
        .filter_map(|arm| Some((arm, define_arm(table, arm)?)))
        .map(|(arm, what)| format!("{} {}: {what}", label(arm), arm.name))
        .collect()
}

fn label(arm: &ArmInfo) -> &'static str {
    match arm.baseline {
        true => "Baseline",
        false => "Arm",
    }
}

/// Definition of an arm beyond its name and beyond what all arms have; none where there is nothing to add.
pub fn define_arm(table: &Table, arm: &ArmInfo) -> Option<String> {
    let common = &table.experiment.in_all_arms;
    let parts = arm.summary.split(" + ");
    let parts: Vec<&str> = parts
        .filter(|part| !common.iter().any(|all| all == part))
        .collect();
    let own = match parts.is_empty() {
        true => "default".to_owned(),
        false => parts.join(" + "),
    };
    let programs = match arm.programs.is_empty() {
        true => String::new(),
        false => format!(" ({})", arm.programs.join("; ")),
    };
    let is_known = own == arm.name || own == "default";
    match (arm.aa, is_known && programs.is_empty()) {
        (true, _) => Some("the baseline once more, A/A".to_owned()),
        (false, true) => None,
        (false, false) => Some(format!("{own}{programs}")),
    }
}

/// Settings that all arms have alike, and what the answer does not hold for.
pub fn in_all(table: &Table) -> Option<String> {
    let settings = &table.experiment.in_all_arms;
    if settings.is_empty() {
        return None;
    }
    let settings_of_all = format!("In all arms: {}.", settings.join(", "));
    let is_off = |setting: &String| ["autogroup=off", "autogroup=0"].contains(&setting.as_str());
    match settings.iter().any(is_off) && table.arms.iter().any(is_nice) {
        true => Some(format!(
            "{settings_of_all} Where autogroup is on, or where the processes are in different cgroups \
             or units, nice values do not count between them: use cpu.weight there."
        )),
        false => Some(settings_of_all),
    }
}

fn is_nice(arm: &ArmInfo) -> bool {
    arm.summary.contains("nice=")
}

/// How the arms compare with each other, a sentence for each deciding metric of a cell: `Among the arms,
/// in p99 of requests: nice19 and idle cannot be told apart; both are better than batch.`
pub fn describe_ranking(table: &Table) -> Vec<String> {
    let between = &table.across.between;
    let of_one = |a: &Comparison, b: &Comparison| {
        (&a.workload, &a.load, &a.metric) == (&b.workload, &b.load, &b.metric)
    };
    let mut groups: Vec<Vec<&Comparison>> = Vec::new();
    for c in between {
        match groups.iter_mut().find(|group| of_one(group[0], c)) {
            Some(group) => group.push(c),
            None => groups.push(vec![c]),
        }
    }
    let more = groups.len().saturating_sub(MOST_METRICS);
    groups.truncate(MOST_METRICS);
    let several = table.cells.len() > 1;
    let said = groups.iter().map(|group| {
        let first = group[0];
        let place = match several {
            true => format!(" in {} {}", first.workload, first.load),
            false => String::new(),
        };
        let what = words::metric_name(&first.metric);
        let smallest = table.experiment.smallest_effect;
        format!(
            "Among the arms, {what}{place}: {}.",
            Group(group).in_words(smallest)
        )
    });
    let mut said: Vec<String> = said.collect();
    said.extend((more > 0).then(|| {
        format!("{more} more comparisons of this kind are in the JSON report (`between`).")
    }));
    said
}

/// The pairs of one metric in one cell.
struct Group<'a, 'b>(&'b [&'a Comparison]);

impl<'a> Group<'a, '_> {
    fn in_words(&self, smallest: f64) -> String {
        let open = self.alike(Verdict::Unknown);
        let mut said: Vec<String> = open
            .iter()
            .map(|arms| format!("{} cannot be told apart", listed(arms)))
            .collect();
        let same = self.alike(Verdict::Same);
        let within = self.0[0].smallest_effect(smallest);
        said.extend(
            same.iter()
                .map(|arms| format!("{} are the same within {within}", listed(arms))),
        );
        for (arms, beaten) in self.beating() {
            let who = match (said.last(), open.last()) {
                (Some(_), Some(last)) if *last == arms && said.len() == 1 => match arms.len() {
                    2 => "both are".to_owned(),
                    _ => "all are".to_owned(),
                },
                _ if arms.len() == 1 => format!("{} is", arms[0]),
                _ => format!("{} are", listed(&arms)),
            };
            said.push(format!("{who} better than {}", listed(&beaten)));
        }
        said.join("; ")
    }

    fn arms(&self) -> Vec<&'a str> {
        let mut arms: Vec<&str> = Vec::new();
        for name in self.0.iter().flat_map(|c| [&c.baseline, &c.arm]) {
            if !arms.contains(&name.as_str()) {
                arms.push(name);
            }
        }
        arms
    }

    fn verdict(&self, arm: &str, other: &str) -> Option<Verdict> {
        self.0.iter().find_map(|c| {
            match (
                c.arm == arm && c.baseline == other,
                c.arm == other && c.baseline == arm,
            ) {
                (true, _) => Some(verdict_among_all(c)),
                (_, true) => Some(match verdict_among_all(c) {
                    Verdict::Better => Verdict::Worse,
                    Verdict::Worse => Verdict::Better,
                    even => even,
                }),
                _ => None,
            }
        })
    }

    /// Sets of arms of which any two have this verdict; each such pair is in one at least.
    fn alike(&self, verdict: Verdict) -> Vec<Vec<&'a str>> {
        let arms = self.arms();
        let is_alike = |a: &str, b: &str| self.verdict(a, b) == Some(verdict);
        let mut sets: Vec<Vec<&str>> = Vec::new();
        for (at, a) in arms.iter().enumerate() {
            for b in arms.iter().skip(at + 1).filter(|b| is_alike(a, b)) {
                if sets.iter().any(|set| set.contains(a) && set.contains(b)) {
                    continue;
                }
                let fits = |set: &&mut Vec<&str>| {
                    set.contains(a) && set.iter().all(|member| is_alike(member, b))
                };
                match sets.iter_mut().find(fits) {
                    Some(set) => set.push(b),
                    None => sets.push(vec![a, b]),
                }
            }
        }
        sets
    }

    /// Arms that are better than others, those that beat the same ones together.
    fn beating(&self) -> Vec<(Vec<&'a str>, Vec<&'a str>)> {
        let arms = self.arms();
        let mut found: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for arm in &arms {
            let is_beaten = |other: &&&str| self.verdict(arm, other) == Some(Verdict::Better);
            let beaten: Vec<&str> = arms.iter().filter(is_beaten).copied().collect();
            if beaten.is_empty() {
                continue;
            }
            match found.iter_mut().find(|(_, others)| *others == beaten) {
                Some((with, _)) => with.push(arm),
                None => found.push((vec![arm], beaten)),
            }
        }
        found
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
