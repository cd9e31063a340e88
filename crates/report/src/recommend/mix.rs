//! The mix: weights that somebody gives to cells and metrics.

use super::RecommendError;
use super::parts::Part;

/// Names in an error, beyond which a list helps nobody.
const MOST_NAMES: usize = 12;

/// Weight of a cell, of a metric, or of both: `http p99=3`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name as it was written, with single spaces.
    key: String,
    /// Weight, not negative.
    weight: f64,
    /// Place where it was written: `--weigh, part 2`, or `mix.txt:3`.
    place: String,
}

/// Weights as they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mix {
    entries: Vec<Entry>,
}

impl Mix {
    /// Weights of an option: `'http p99=3, hackbench=1'`.
    pub fn parse_option(text: &str) -> Result<Mix, RecommendError> {
        let parts = text.split(',').enumerate();
        let place = |index: usize| format!("--weigh, part {}", index + 1);
        Mix::parse_parts(parts.map(|(index, part)| (place(index), part)))
    }

    /// The same weight for each of these names, which were written at this place.
    pub(crate) fn from_keys(place: &str, keys: &[String]) -> Mix {
        let entry = |key: &String| Entry {
            key: key.clone(),
            weight: 1.0,
            place: place.to_owned(),
        };
        Mix {
            entries: keys.iter().map(entry).collect(),
        }
    }

    /// Weights of a file: one on each line, `#` begins a comment.
    pub fn parse_file(name: &str, text: &str) -> Result<Mix, RecommendError> {
        let lines = text.lines().enumerate();
        let lines = lines.map(|(index, line)| {
            let written = line.split('#').next().unwrap_or_default();
            (format!("{name}:{}", index + 1), written)
        });
        let mix = Mix::parse_parts(lines)?;
        match mix.entries.is_empty() {
            true => Err(RecommendError::NoWeights(name.to_owned())),
            false => Ok(mix),
        }
    }

    fn parse_parts<'a>(
        parts: impl Iterator<Item = (String, &'a str)>,
    ) -> Result<Mix, RecommendError> {
        let written = parts.filter(|(_, part)| !part.trim().is_empty());
        let entries = written.map(|(place, part)| Entry::parse(place, part));
        let entries = entries.collect::<Result<Vec<Entry>, _>>()?;
        let total: f64 = entries.iter().map(|entry| entry.weight).sum();
        if !entries.is_empty() && total <= 0.0 {
            let place = entries[0].place.clone();
            return Err(RecommendError::SumOfZero(place));
        }
        Ok(Mix { entries })
    }

    /// Weights of the parts, in their order. Without entries all cells weigh the same, and the deciding
    /// metrics of a cell share its weight.
    pub(crate) fn weigh_parts(&self, parts: &[Part]) -> Result<Vec<f64>, RecommendError> {
        if self.entries.is_empty() {
            return Ok(weigh_evenly(parts));
        }
        let mut weights = vec![0.0; parts.len()];
        for entry in &self.entries {
            let found = entry.find_parts(parts)?;
            for index in &found {
                weights[*index] += entry.weight / found.len() as f64;
            }
        }
        Ok(weights)
    }
}

/// A latency of an arm that was overloaded is compared with nothing, and then decides nothing.
fn decides(part: &Part) -> bool {
    part.deciding && part.arms.iter().any(|arm| !arm.blocks.is_empty())
}

fn weigh_evenly(parts: &[Part]) -> Vec<f64> {
    let of_cell = |part: &Part| {
        let beside = parts.iter().filter(|p| decides(p) && p.cell == part.cell);
        1.0 / beside.count().max(1) as f64
    };
    let weight = |part: &Part| match decides(part) {
        true => of_cell(part),
        false => 0.0,
    };
    parts.iter().map(weight).collect()
}

impl Entry {
    fn parse(place: String, text: &str) -> Result<Entry, RecommendError> {
        let bad = |what: &str| RecommendError::BadWeight {
            place: place.clone(),
            what: format!("`{}` {what}", text.trim()),
        };
        let (key, number) = text.rsplit_once('=').ok_or_else(|| bad("has no weight"))?;
        let words: Vec<&str> = key.split_whitespace().collect();
        if words.is_empty() {
            return Err(bad("names no cell"));
        }
        let weight: f64 = number
            .trim()
            .parse()
            .map_err(|_| bad("has a weight that is no number"))?;
        if !weight.is_finite() || weight < 0.0 {
            return Err(bad("has a weight that is not 0 or above"));
        }
        Ok(Entry {
            key: words.join(" "),
            weight,
            place,
        })
    }

    /// The parts that the entry names: the deciding metrics of a cell or of all cells of a workload, or one
    /// metric.
    fn find_parts(&self, parts: &[Part]) -> Result<Vec<usize>, RecommendError> {
        find_named(&self.key, &self.place, parts)
    }
}

/// Positions of the parts that a key names, which was written at this place.
pub(crate) fn find_named(
    key: &str,
    place: &str,
    parts: &[Part],
) -> Result<Vec<usize>, RecommendError> {
    for finds in [names_exactly, names_in_short] {
        let indices = parts.iter().enumerate();
        let found = indices.filter(|(_, part)| finds(key, part));
        let found: Vec<usize> = found.map(|(index, _)| index).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(RecommendError::UnknownCell {
        place: place.to_owned(),
        key: key.to_owned(),
        nearest: nearest_name(key, parts),
        known: list_names(parts),
    })
}

/// The rest of the key after the name of the part's cell or workload, once for each.
fn rests<'a>(key: &'a str, part: &'a Part) -> impl Iterator<Item = &'a str> {
    let heads = [part.cell.as_str(), part.workload.as_str()].into_iter();
    heads
        .filter_map(|head| key.strip_prefix(head))
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
        .map(str::trim)
}

fn names_exactly(key: &str, part: &Part) -> bool {
    let of_cell = rests(key, part).any(|rest| match rest {
        "" => part.deciding,
        metric => metric == part.metric,
    });
    of_cell || key == part.metric
}

/// `p99` for `request_p99`.
fn names_in_short(key: &str, part: &Part) -> bool {
    let is_end = |short: &str| {
        let head = part.metric.strip_suffix(short);
        !short.is_empty() && head.is_some_and(|head| head.ends_with('_'))
    };
    rests(key, part).any(is_end) || is_end(key)
}

fn nearest_name(key: &str, parts: &[Part]) -> Option<String> {
    let cells = parts.iter().map(|part| part.cell.as_str());
    let workloads = parts.iter().map(|part| part.workload.as_str());
    let metrics = parts.iter().map(|part| part.metric.as_str());
    model::find_nearest(key, cells.chain(workloads).chain(metrics)).map(str::to_owned)
}

/// Cells with the metrics that decide them.
fn list_names(parts: &[Part]) -> String {
    let deciding = parts.iter().filter(|part| part.deciding);
    let names = deciding.map(|part| format!("{} {}", part.cell, part.metric));
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recommend::parts::ArmGains;

    fn part(cell: &str, workload: &str, metric: &str, deciding: bool) -> Part {
        Part {
            cell: cell.to_owned(),
            workload: workload.to_owned(),
            metric: metric.to_owned(),
            better: model::Better::Lower,
            deciding,
            arms: vec![ArmGains {
                arm: "batch".to_owned(),
                blocks: vec![((0, 1), 0.1)],
                note: None,
            }],
        }
    }

    fn parts() -> Vec<Part> {
        vec![
            part("http 50%", "http", "request_p99", true),
            part("http 50%", "http", "request_p50", false),
            part("http 100%", "http", "request_p99", true),
            part("hackbench 4", "hackbench", "throughput", true),
        ]
    }

    fn weights(text: &str) -> Vec<f64> {
        let mix = Mix::parse_option(text).unwrap();
        mix.weigh_parts(&parts()).unwrap()
    }

    #[test]
    fn a_name_is_a_cell_a_workload_or_a_metric_in_full_or_in_short() {
        assert_eq!(weights("http p99=3, hackbench=1"), [1.5, 0.0, 1.5, 1.0]);
        assert_eq!(weights("http 50%=2"), [2.0, 0.0, 0.0, 0.0]);
        assert_eq!(weights("http  50% request_p50 = 2"), [0.0, 2.0, 0.0, 0.0]);
        assert_eq!(weights("throughput=1,p50=0.5"), [0.0, 0.5, 0.0, 1.0]);
        assert_eq!(weights("http=1,http 50%=1"), [1.5, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn without_weights_all_cells_weigh_the_same() {
        let even = Mix::default().weigh_parts(&parts()).unwrap();
        assert_eq!(even, [1.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn what_cannot_be_a_mix_is_refused_with_its_place() {
        let said = |text: &str| Mix::parse_option(text).unwrap_err().to_string();
        assert!(said("http=0, hackbench=0").contains("sum to 0"));
        assert!(said("http=1, hackbench").contains("--weigh, part 2: `hackbench` has no weight"));
        assert!(said("http=-1").contains("not 0 or above"));
        assert!(said("http=NaN").contains("not 0 or above"));
        assert!(said("http=much").contains("no number"));
        assert!(said("=3").contains("names no cell"));
        let file = Mix::parse_file("m.txt", "# what matters\nhttp = 1\nhackbench\n");
        assert!(file.unwrap_err().to_string().starts_with("m.txt:3: "));
        assert!(Mix::parse_file("m.txt", "# nothing\n").is_err());
        let unknown = Mix::parse_option("hackbnech=1").unwrap();
        let error = unknown.weigh_parts(&parts()).unwrap_err();
        assert!(
            error.remedy().contains("did you mean `hackbench`"),
            "{error:?}"
        );
        assert!(error.remedy().contains("http 50% request_p99"), "{error:?}");
    }
}
