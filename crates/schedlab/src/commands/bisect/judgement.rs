//! Judgement of a commit by its comparison with another one.

use git::Mark;
use report::{Comparison, Table, Verdict};

/// The result of a comparison of two commits.
pub(super) struct Judged {
    pub(super) mark: Mark,
    pub(super) why: String,
    /// Size of the worst change for the worse, as a share of the baseline.
    pub(super) change: Option<f64>,
}

/// Bad where anything is worse, good where all is decided and nothing is.
pub(super) fn judge(table: &Table) -> Judged {
    let deciding: Vec<&Comparison> = table.all_comparisons().filter(|c| c.deciding).collect();
    let worse = deciding.iter().filter(|c| c.verdict == Verdict::Worse);
    let size = |c: &&&Comparison| c.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let worst = worse.max_by(|a, b| size(a).total_cmp(&size(b)));
    if let Some(worst) = worst {
        return Judged {
            mark: Mark::Bad,
            why: in_words(worst),
            change: worst.ratio.map(|ratio| (ratio - 1.0).abs()),
        };
    }
    let open = deciding.iter().find(|c| c.verdict == Verdict::Unknown);
    let (mark, why) = match (open, deciding.first()) {
        (Some(open), _) if open.blocks == 0 => {
            let why = "no trial of it counts; its results directory has the reasons";
            (Mark::Skip, why.to_owned())
        }
        (Some(open), _) => (Mark::Skip, not_decided(open)),
        (None, Some(first)) => (Mark::Good, in_words(first)),
        (None, None) => (Mark::Skip, "nothing was measured".to_owned()),
    };
    Judged {
        mark,
        why,
        change: None,
    }
}

/// With what the report says of it: that others did most of the work makes no verdict of *same*.
fn not_decided(open: &Comparison) -> String {
    let notes = open.notes.iter().map(|note| format!("; {note}"));
    format!(
        "not decided: {}{}",
        in_words(open),
        notes.collect::<String>()
    )
}

/// `requests_per_sec worse, -10.2 % (-12.1 to -8.3)`
fn in_words(comparison: &Comparison) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    let change = match (comparison.ratio, comparison.low, comparison.high) {
        (Some(ratio), Some(low), Some(high)) => format!(
            ", {} % ({} to {})",
            percent(ratio),
            percent(low),
            percent(high)
        ),
        _ => String::new(),
    };
    format!(
        "{} {}{change}",
        comparison.metric,
        comparison.verdict.as_str()
    )
}

/// Why a build failed: the first line of its message, and the first error of a compiler that it quotes.
pub(super) fn reason_of_build(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let quoted = message.lines().skip(1).map(str::trim);
    let mut errors = quoted.filter(|line| line.contains("error: ") || line.contains("error["));
    // That cargo could not compile a crate is no reason.
    match errors
        .find(|line| !line.starts_with("error: failed to") && !line.starts_with("error: could not"))
    {
        Some(error) => format!("{first} {error}"),
        None => first.to_owned(),
    }
}
