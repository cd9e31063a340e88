//! The conclusion in sentences: what an arm is better and worse in, by how much, and how
//! long what is open would take.
//!
//! A metric that is worse is named whether it decides or not: whoever asked about latency wants to
//! know what it costs.

use crate::quantity::{
    describe_difference, describe_differences, difference_in_unit, format_count, format_rough_time,
    signed_with_unit,
};
use crate::render::events::describe_call;
use crate::table::across::EventComparison;
use crate::table::across::neighbour_cost::{self, Paid};
use crate::table::explanation::Change;
use crate::table::{CellTable, Comparison, Table, Tally, Verdict};
use crate::words;
use model::Better;

/// Comparisons of one kind that are named; more are counted.
const MOST_NAMED: usize = 3;

/// One sentence for each arm: `rusty is better: p99 of wakeups 44 % lower (30 to 56 %);
/// not decided: requests per second, about 4 minutes more would.`
pub fn arm_sentences(table: &Table) -> Vec<String> {
    let said = table.tallies.iter().map(|tally| arm_sentence(table, tally));
    said.collect()
}

/// The sentence of one arm.
pub fn arm_sentence(table: &Table, tally: &Tally) -> String {
    sentence_parts(table, tally).join(" ")
}

/// The sentence of one arm in its parts: what is better, what is worse, and so on.
pub fn sentence_parts(table: &Table, tally: &Tally) -> Vec<String> {
    match (tally.aa, tally.total()) {
        (true, _) => vec![words::aa_sentence(tally)],
        (false, 0) if table.across.events.is_empty() => vec![words::tally_line(tally)],
        (false, _) => Conclusion::of(table, &tally.arm).parts(tally),
    }
}

/// A comparison and the cell in which it was made.
#[derive(Clone, Copy)]
struct Found<'a> {
    cell: &'a CellTable,
    comparison: &'a Comparison,
}

struct Conclusion<'a> {
    table: &'a Table,
    deciding: Vec<Found<'a>>,
    further: Vec<Found<'a>>,
}

impl<'a> Conclusion<'a> {
    fn of(table: &'a Table, arm: &str) -> Self {
        let all = table.cells.iter().flat_map(|cell| {
            let comparisons = cell.comparisons.iter();
            comparisons.map(move |comparison| Found { cell, comparison })
        });
        let of_arm = all.filter(|found| found.comparison.arm == arm);
        let (deciding, further) = of_arm.partition(|found| found.comparison.deciding);
        Conclusion {
            table,
            deciding,
            further,
        }
    }

    fn parts(&self, tally: &Tally) -> Vec<String> {
        let worse_events = self.events(&tally.arm, Verdict::Worse);
        let better = match worse_events.is_some() {
            true => self.label_beside_events(),
            false => "better",
        };
        let better = self.group(better, &self.deciding, Verdict::Better);
        let worse_events = worse_events.map(|said| match better.is_some() {
            true => format!("but {said}"),
            false => format!("worse in events: {said}"),
        });
        let mut parts: Vec<String> = [
            better,
            worse_events,
            self.events(&tally.arm, Verdict::Better)
                .map(|said| format!("better in events: {said}")),
            self.group("worse", &self.deciding, Verdict::Worse),
            self.group(
                "worse in metrics that do not decide",
                &self.further,
                Verdict::Worse,
            ),
            self.group("the same", &self.deciding, Verdict::Same),
            self.without_difference(),
            self.open(),
            self.not_compared(),
            self.paid(&tally.arm, neighbour_cost::CPU_TIME, "CPU time"),
            self.paid(&tally.arm, neighbour_cost::WORK, "work"),
            match tally.cells_not_measured {
                0 => None,
                cells => Some(format!("{} not measured", format_count(cells, "cell"))),
            },
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            parts.push(words::tally_line(tally));
            return parts;
        }
        let is_known = |f: &Found| f.comparison.verdict != Verdict::Unknown;
        let says = match self.deciding.iter().any(is_known)
            || ["worse", "better in events"]
                .iter()
                .any(|word| parts[0].starts_with(word))
        {
            true => " is",
            false => ":",
        };
        parts[0] = format!("{}{says} {}", tally.arm, parts[0]);
        let last = parts.len() - 1;
        for (index, part) in parts.iter_mut().enumerate() {
            part.push(if index == last { '.' } else { ';' });
        }
        parts
    }

    /// Events in which an arm is called so: `thrown out 8 times in 50 minutes, where default never was`.
    fn events(&self, arm: &str, verdict: Verdict) -> Option<String> {
        let all = self.table.across.events.iter();
        let found = all.filter(|c| c.arm == arm && !c.aa && c.verdict == verdict);
        let found: Vec<&EventComparison> = found.collect();
        let several = self.table.cells.len() > 1;
        let named = found.iter().take(MOST_NAMED).map(|c| match several {
            true => format!("{} in {}", describe_call(c), c.cell),
            false => describe_call(c),
        });
        let mut said: Vec<String> = named.collect();
        let more = found.len().saturating_sub(MOST_NAMED);
        said.extend((more > 0).then(|| format!("and {more} more")));
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// The label of what is better where events are worse: an arm may be faster and freeze.
    fn label_beside_events(&self) -> &'static str {
        let better = self.deciding.iter().map(|found| found.comparison);
        let mut better = better.filter(|c| c.verdict == Verdict::Better);
        let is_speed = |c: &Comparison| ["ns", "s", "1/s"].contains(&c.unit.as_str());
        match better.all(is_speed) {
            true => "faster and worse",
            false => "better and worse",
        }
    }

    /// `better: p99 of wakeups 44 % lower (30 to 56 %)`; with more than can be named,
    /// the largest: `better, in 12 of 28: …, and 8 more`.
    fn group(&self, label: &str, of: &[Found], verdict: Verdict) -> Option<String> {
        let mut found: Vec<Found> = of.to_vec();
        found.retain(|f| f.comparison.verdict == verdict);
        let label = match found.len() > MOST_NAMED {
            true => format!("{label}, in {} of {}", found.len(), of.len()),
            false => label.to_owned(),
        };
        self.named(&label, found, |found| {
            let mut size = match verdict {
                Verdict::Same => String::new(),
                _ => format!(" {}", sized(found.comparison)),
            };
            size.push_str(words::reach(found.comparison));
            self.named_metric(found, &size)
        })
    }

    /// Comparisons in which nothing was seen, and how large a difference may be that was not: `no difference was
    /// found in 3 minutes; if there is one, it is at most: p99 of wakeups 12 % higher or 4.0 % lower`.
    fn without_difference(&self) -> Option<String> {
        let found: Vec<Found> = self.undecided().filter(is_without_difference).collect();
        let (ns, time) = (self.table.took_ns as f64, more_time(&found));
        let took = match self.table.took_ns {
            0 => String::new(),
            _ => format!(" in {}", format_rough_time(ns)),
        };
        let of = found.len();
        let label = format!("no difference was found{took}; if there is one, it is at most");
        let named = self.named(&label, found, |found| {
            let most = at_most(found.comparison).unwrap_or_default();
            self.named_metric(found, &format!(" {most}"))
        })?;
        Some(with_time(named, time, of))
    }

    fn open(&self) -> Option<String> {
        let open = self
            .undecided()
            .filter(|found| !is_without_difference(found));
        let open: Vec<Found> = open.collect();
        let (time, of) = (more_time(&open), open.len());
        let named = self.named("not decided", open, |found| {
            let c = found.comparison;
            let span = span(c);
            let was = c
                .withdrawn
                .map(|was| format!("earlier blocks alone said {}", was.as_str()));
            let said: Vec<String> = span.into_iter().chain(was).collect();
            let said = match said.is_empty() {
                true => String::new(),
                false => format!(" ({})", said.join("; ")),
            };
            self.named_metric(found, &said)
        })?;
        Some(with_time(named, time, of))
    }

    fn undecided(&self) -> impl Iterator<Item = Found<'a>> {
        let is_open = |c: &Comparison| c.verdict == Verdict::Unknown && c.blocks > 0;
        let deciding = self.deciding.iter().copied();
        deciding.filter(move |found| is_open(found.comparison))
    }

    fn not_compared(&self) -> Option<String> {
        let without = self.deciding.iter().filter(|f| f.comparison.blocks == 0);
        let measured = without.filter(|f| {
            let names = [&f.comparison.arm, &f.comparison.baseline];
            let lost = &f.cell.not_measured;
            !lost.iter().any(|lost| names.contains(&&lost.arm))
        });
        let found = measured.copied().collect();
        self.named("not compared", found, |found| self.named_metric(found, ""))
    }

    /// Costs of the antagonists under the arm: `CPU time of the antagonists: 0.36 % lower (1.2 % lower to
    /// 0.5 % higher)`.
    fn paid(&self, arm: &str, metric: &str, what: &str) -> Option<String> {
        let all = self.table.across.paid.iter();
        let of_metric = all.filter(|paid| paid.metric == metric);
        let of_arm: Vec<&Paid> = of_metric.filter(|paid| paid.arm == arm).collect();
        let several = self.table.cells.len() > 1;
        let said = of_arm.iter().take(MOST_NAMED).filter_map(|paid| {
            let place = match several {
                true => format!(" in {}", paid.cell),
                false => String::new(),
            };
            Some(format!("{}{place}", paid_in_words(&paid.change)?))
        });
        let mut said: Vec<String> = said.collect();
        let left = of_arm.len().saturating_sub(MOST_NAMED);
        said.extend((left > 0 && !said.is_empty()).then(|| format!("and {left} more")));
        (!said.is_empty()).then(|| format!("{what} of the antagonists: {}", said.join(", ")))
    }

    fn named(
        &self,
        label: &str,
        mut found: Vec<Found>,
        phrase: impl Fn(&Found) -> String,
    ) -> Option<String> {
        let all = found.len();
        if all > MOST_NAMED {
            let size = |f: &Found| f.comparison.change_size();
            found.sort_by(|a, b| size(b).total_cmp(&size(a)));
            found.truncate(MOST_NAMED);
        }
        let mut phrases: Vec<String> = found.iter().map(phrase).collect();
        phrases.extend((all > MOST_NAMED).then(|| format!("and {} more", all - MOST_NAMED)));
        (all > 0).then(|| format!("{label}: {}", phrases.join(", ")))
    }

    /// Name of the metric and what is said of it, with the cell where the metric alone does not
    /// say which is meant.
    fn named_metric(&self, found: &Found, said: &str) -> String {
        let metric = &found.comparison.metric;
        let has = |cell: &&CellTable| cell.comparisons.iter().any(|c| c.metric == *metric);
        match self.table.cells.iter().filter(has).count() {
            1 => format!("{}{said}", words::metric_name(metric)),
            _ => format!(
                "{}{said} in {}",
                words::metric_name(metric),
                found.cell.name
            ),
        }
    }
}

/// Change of a time in words; differences, which only a time of 0 leads to, are not said.
fn paid_in_words(change: &Change) -> Option<String> {
    let Change::Ratio(estimate) = change else {
        return None;
    };
    let by = describe_difference(estimate.mean);
    Some(match estimate.interval {
        Some((low, high)) => format!("{by} ({})", describe_differences(low, high)),
        None => by,
    })
}

/// `44 % lower (30 to 56 %)`, with the star of a call that does not hold among the others.
fn sized(c: &Comparison) -> String {
    let star = match c.survives_ebh {
        Some(false) => "*",
        _ => "",
    };
    let by = match &c.difference {
        Some(found) => difference_in_unit(found.value, &c.unit),
        None => c.ratio.map_or_else(String::new, describe_difference),
    };
    match span(c) {
        Some(span) => format!("{by} ({span}){star}"),
        None => format!("{by}{star}"),
    }
}

/// Ends of the interval of a comparison that leaves open in which direction it goes, the higher one first: `12 %
/// higher or 4.0 % lower`. None where it does not, and where there is no interval.
fn at_most(c: &Comparison) -> Option<String> {
    let [low, high] = match &c.difference {
        Some(found) => {
            let (low, high) = found.low.zip(found.high)?;
            (low < 0.0 && high > 0.0)
                .then(|| [low, high].map(|end| difference_in_unit(end, &c.unit)))
        }
        None => {
            let (low, high) = c.low.zip(c.high)?;
            (low < 1.0 && high > 1.0).then(|| [low, high].map(describe_difference))
        }
    }?;
    Some(format!("{high} or {low}"))
}

/// Nothing was seen, and nothing taken back.
fn is_without_difference(found: &Found) -> bool {
    found.comparison.withdrawn.is_none() && at_most(found.comparison).is_some()
}

fn with_time(named: String, time: Option<(String, usize)>, of: usize) -> String {
    match time {
        Some((time, 1)) if of == 1 => format!("{named}; {time} would decide it"),
        Some((time, known)) if known == of => format!("{named}; {time} would decide them"),
        Some((time, known)) => format!("{named}; {time} would decide {known} of them"),
        None => named,
    }
}

/// Interval of a change in words: `30 to 56 %`, or `-219 us to -181 us`.
fn span(c: &Comparison) -> Option<String> {
    match &c.difference {
        Some(found) => found.low.zip(found.high).map(|ends| {
            let [low, high] = [ends.0, ends.1].map(|end| signed_with_unit(end, &c.unit));
            format!("{low} to {high}")
        }),
        None => c
            .low
            .zip(c.high)
            .map(|(low, high)| describe_differences(low, high)),
    }
}

/// Time that the slowest open comparison takes, and the number of comparisons for which this
/// can be told: `about 4 minutes more`, 2.
fn more_time(open: &[Found]) -> Option<(String, usize)> {
    let times = open.iter();
    let times = times.filter_map(|found| words::more_time(found.comparison));
    let times: Vec<words::MoreTime> = times.collect();
    let slowest = times.iter().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let about = match times.iter().any(|time| time.at_least) {
        true => format!("more than {} more", format_rough_time(slowest.ns)),
        false => format!("about {} more", format_rough_time(slowest.ns)),
    };
    Some((about, times.len()))
}

/// Better comparisons of all arms that do not decide, the largest first, each with its cell. The
/// worse ones are in the sentences.
pub fn better_beside(table: &Table) -> Vec<(&CellTable, &Comparison)> {
    let mut found: Vec<(&CellTable, &Comparison)> = table
        .cells
        .iter()
        .flat_map(|cell| cell.further_comparisons().map(move |c| (cell, c)))
        .filter(|(_, c)| !c.aa && c.verdict == Verdict::Better && c.better != Better::Neither)
        .collect();
    found.sort_by(|(_, a), (_, b)| b.change_size().total_cmp(&a.change_size()));
    found
}
