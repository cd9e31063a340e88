//! The goal of a race: what counts, and the constraints that a winner has to hold.
//!
//! `minimise request_p99 where requests_per_sec >= 0.98`: figures behind a constraint are ratios to the
//! baseline. `must-not-worsen` is the constraint that a metric is not worse by more than what matters.

use crate::recommend::mix::find_named;
use crate::recommend::parts::Part;
use crate::recommend::{Mix, RecommendError};
use model::Better;

const FORM: &str = "write `minimise METRIC where METRIC >= RATIO`: minimise request_p99 where requests_per_sec >= 0.98";
/// Signs of constraints, with the form of each.
type Sign = (&'static str, fn(f64) -> Form);

const OBJECTIVE: &str = "objective";
const MUST_NOT_WORSEN: &str = "must-not-worsen";

/// Goal of a race.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Goal {
    mix: Mix,
    objectives: Vec<Objective>,
    bounds: Vec<Bound>,
}

/// A metric to make better, with the direction that somebody means.
#[derive(Debug, Clone, PartialEq)]
struct Objective {
    key: String,
    means: Better,
}

/// A constraint as it was written.
#[derive(Debug, Clone, PartialEq)]
struct Bound {
    key: String,
    form: Form,
}

/// A metric that a cell of an experiment may have.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownMetric {
    /// Name of the cell.
    pub cell: String,
    /// Name of its workload.
    pub workload: String,
    /// Name of the metric.
    pub metric: String,
    /// The experiment names it as its question.
    pub deciding: bool,
}

impl KnownMetric {
    fn to_part(&self) -> Part {
        Part {
            cell: self.cell.clone(),
            workload: self.workload.clone(),
            metric: self.metric.clone(),
            better: Better::Neither,
            deciding: self.deciding,
            arms: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    NotWorse,
    AtLeast(f64),
    AtMost(f64),
}

/// A constraint on one metric of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constraint {
    /// Position of the part.
    pub part: usize,
    /// `>= 0.98`.
    pub wanted: String,
    /// Least gain, a logarithm.
    pub floor: f64,
}

impl Goal {
    /// A goal of weights or of an objective, and of metrics that must not get worse.
    pub fn new(
        mix: Mix,
        objective: Option<&str>,
        must_not_worsen: &[String],
    ) -> Result<Goal, RecommendError> {
        let mut goal = Goal {
            mix,
            ..Goal::default()
        };
        if let Some(text) = objective {
            if goal.mix != Mix::default() {
                let what = "weights and an objective both say what counts";
                return Err(bad(OBJECTIVE, what, "give one of them"));
            }
            goal.read_objective(text)?;
        }
        let not_worse = must_not_worsen.iter().map(|key| Bound {
            key: join_words(key),
            form: Form::NotWorse,
        });
        goal.bounds.extend(not_worse);
        match goal.bounds.iter().any(|bound| bound.key.is_empty()) {
            true => Err(bad(MUST_NOT_WORSEN, "a name is empty", FORM)),
            false => Ok(goal),
        }
    }

    fn read_objective(&mut self, text: &str) -> Result<(), RecommendError> {
        let (wanted, bounds) = match text.split_once(" where ") {
            Some((wanted, bounds)) => (wanted, Some(bounds)),
            None => (text, None),
        };
        let mut means = None;
        for part in wanted.split(',') {
            let (verb, key) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
            let key = match verb {
                "minimise" | "minimize" => (means.insert(Better::Lower), key).1,
                "maximise" | "maximize" => (means.insert(Better::Higher), key).1,
                _ => part,
            };
            let key = join_words(key);
            let (Some(means), false) = (means, key.is_empty()) else {
                let what = format!("`{}` does not say what to make better", part.trim());
                return Err(bad(OBJECTIVE, &what, FORM));
            };
            self.objectives.push(Objective { key, means });
        }
        let keys: Vec<String> = self.objectives.iter().map(|o| o.key.clone()).collect();
        self.mix = Mix::from_keys(OBJECTIVE, &keys);
        let bounds = bounds.map(|bounds| bounds.replace(" and ", ","));
        for part in bounds.iter().flat_map(|bounds| bounds.split(',')) {
            self.bounds.push(Bound::parse(part)?);
        }
        Ok(())
    }

    /// Checks that something has each name of the goal, before anything is measured: `known` has the metrics that
    /// there may be. A name that is in no trial is found only by the results.
    pub fn check_names(&self, known: &[KnownMetric]) -> Result<(), RecommendError> {
        let parts: Vec<Part> = known.iter().map(KnownMetric::to_part).collect();
        for objective in &self.objectives {
            find_named(&objective.key, OBJECTIVE, &parts)?;
        }
        for bound in &self.bounds {
            find_named(&bound.key, bound.place(), &parts)?;
        }
        self.mix.weigh_parts(&parts).map(|_| ())
    }

    pub(super) fn weigh_parts(&self, parts: &[Part]) -> Result<Vec<f64>, RecommendError> {
        for objective in &self.objectives {
            for index in find_named(&objective.key, OBJECTIVE, parts)? {
                check_direction(&parts[index], objective.means)?;
            }
        }
        self.mix.weigh_parts(parts)
    }

    /// True if this metric alone counts, where it is the only one that decides.
    pub fn is_about(&self, metric: &str) -> bool {
        let objectives = self.objectives.iter();
        let is_weighed = !self.objectives.is_empty() || self.mix == Mix::default();
        self.bounds.is_empty() && is_weighed && objectives.map(|o| &o.key).all(|key| key == metric)
    }

    /// Names of the objectives with the parts of each, where there are several.
    pub(super) fn split_objectives(
        &self,
        parts: &[Part],
    ) -> Result<Vec<(String, Vec<usize>)>, RecommendError> {
        let several = self.objectives.iter().filter(|_| self.objectives.len() > 1);
        let named = several.map(|objective| {
            let found = find_named(&objective.key, OBJECTIVE, parts)?;
            Ok((objective.key.clone(), found))
        });
        named.collect()
    }

    /// All constraints. `smallest_effect`: worse by no more than this is not worse.
    pub(super) fn find_constraints(
        &self,
        parts: &[Part],
        smallest_effect: f64,
    ) -> Result<Vec<Constraint>, RecommendError> {
        let mut found = Vec::new();
        for bound in &self.bounds {
            for part in find_named(&bound.key, bound.place(), parts)? {
                found.push(bound.on_part(part, &parts[part], smallest_effect)?);
            }
        }
        Ok(found)
    }
}

impl Bound {
    fn parse(text: &str) -> Result<Bound, RecommendError> {
        let text = text.trim();
        let signs: [Sign; 4] = [
            (">=", Form::AtLeast),
            ("\u{2265}", Form::AtLeast),
            ("<=", Form::AtMost),
            ("\u{2264}", Form::AtMost),
        ];
        let mut split = signs.iter().filter_map(|(sign, form)| {
            let (key, number) = text.split_once(sign)?;
            Some((join_words(key), number.trim(), form))
        });
        let Some((key, number, form)) = split.next().filter(|(key, ..)| !key.is_empty()) else {
            let what = format!("`{text}` is no constraint");
            return Err(bad(OBJECTIVE, &what, FORM));
        };
        let ratio: Option<f64> = number.parse().ok();
        match ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            Some(ratio) => Ok(Bound {
                key,
                form: form(ratio),
            }),
            None => {
                let what = format!("`{number}` is no ratio to the baseline");
                Err(bad(OBJECTIVE, &what, FORM))
            }
        }
    }

    fn place(&self) -> &'static str {
        match self.form {
            Form::NotWorse => MUST_NOT_WORSEN,
            Form::AtLeast(_) | Form::AtMost(_) => OBJECTIVE,
        }
    }

    fn on_part(
        &self,
        index: usize,
        part: &Part,
        smallest_effect: f64,
    ) -> Result<Constraint, RecommendError> {
        let (means, wanted, floor) = match self.form {
            Form::NotWorse => (
                part.better,
                "not worse".to_owned(),
                -smallest_effect.ln_1p(),
            ),
            Form::AtLeast(ratio) => (Better::Higher, format!(">= {ratio}"), ratio.ln()),
            Form::AtMost(ratio) => (Better::Lower, format!("<= {ratio}"), -ratio.ln()),
        };
        check_direction(part, means)?;
        Ok(Constraint {
            part: index,
            wanted,
            floor,
        })
    }
}

fn check_direction(part: &Part, means: Better) -> Result<(), RecommendError> {
    let metric = &part.metric;
    let (what, remedy) = match part.better {
        Better::Neither => (
            format!("{metric} only explains: no direction of it is better"),
            "name a metric that is better in one direction".to_owned(),
        ),
        better if better == means => return Ok(()),
        Better::Lower => (
            format!("{metric} is better where it is lower"),
            format!("write `minimise {metric}` or `{metric} <= RATIO`"),
        ),
        Better::Higher => (
            format!("{metric} is better where it is higher"),
            format!("write `maximise {metric}` or `{metric} >= RATIO`"),
        ),
    };
    Err(bad(OBJECTIVE, &what, &remedy))
}

fn bad(place: &str, what: &str, remedy: &str) -> RecommendError {
    RecommendError::BadGoal {
        place: place.to_owned(),
        what: what.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn join_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(metric: &str, better: Better) -> Part {
        Part {
            cell: "http 50%".to_owned(),
            workload: "http".to_owned(),
            metric: metric.to_owned(),
            better,
            deciding: true,
            arms: Vec::new(),
        }
    }

    fn parts() -> Vec<Part> {
        vec![
            part("request_p99", Better::Lower),
            part("requests_per_sec", Better::Higher),
            part("migrations", Better::Neither),
        ]
    }

    fn goal(objective: &str) -> Result<Goal, RecommendError> {
        Goal::new(Mix::default(), Some(objective), &[])
    }

    #[test]
    fn an_objective_has_metrics_and_constraints_that_are_ratios() {
        let goal = goal("minimise p99 where requests_per_sec ≥ 0.98 and p99 <= 1.1").unwrap();
        assert_eq!(goal.weigh_parts(&parts()).unwrap(), [1.0, 0.0, 0.0]);
        let found = goal.find_constraints(&parts(), 0.02).unwrap();
        let found: Vec<(usize, &str, f64)> = found
            .iter()
            .map(|c| (c.part, c.wanted.as_str(), c.floor))
            .collect();
        assert_eq!(
            found,
            [(1, ">= 0.98", 0.98_f64.ln()), (0, "<= 1.1", -1.1_f64.ln())]
        );
    }

    #[test]
    fn a_goal_is_about_one_metric_if_it_names_no_other_and_no_constraint() {
        assert!(Goal::default().is_about("request_p99"));
        let is_about = |objective| goal(objective).unwrap().is_about("request_p99");
        assert!(is_about("minimise request_p99"));
        assert!(!is_about("minimise request_p50"));
        assert!(!is_about("minimise request_p99, maximise requests_per_sec"));
        assert!(!is_about(
            "minimise request_p99 where requests_per_sec >= 0.98"
        ));
    }

    #[test]
    fn what_must_not_worsen_may_lose_what_does_not_matter() {
        let names = ["request_p99".to_owned()];
        let goal = Goal::new(Mix::default(), None, &names).unwrap();
        let found = goal.find_constraints(&parts(), 0.02).unwrap();
        assert_eq!(found[0].floor, -0.02_f64.ln_1p());
        assert_eq!(goal.split_objectives(&parts()).unwrap(), []);
    }

    #[test]
    fn two_objectives_are_kept_apart() {
        let goal = goal("minimise request_p99, maximise requests_per_sec").unwrap();
        let found = goal.split_objectives(&parts()).unwrap();
        assert_eq!(
            found,
            [
                ("request_p99".to_owned(), vec![0]),
                ("requests_per_sec".to_owned(), vec![1])
            ]
        );
    }

    #[test]
    fn what_is_no_goal_is_refused() {
        let said = |text: &str| {
            let refused = goal(text).and_then(|goal| {
                goal.weigh_parts(&parts())?;
                goal.find_constraints(&parts(), 0.02)
            });
            refused.unwrap_err().to_string()
        };
        assert!(said("request_p99").contains("does not say what to make better"));
        assert!(said("minimise").contains("does not say what to make better"));
        assert!(said("maximise p99").contains("request_p99 is better where it is lower"));
        assert!(said("minimise p99 where p99 >= 1").contains("better where it is lower"));
        assert!(said("minimise p99 where requests_per_sec").contains("is no constraint"));
        assert!(said("minimise p99 where requests_per_sec >= 98%").contains("is no ratio"));
        assert!(said("minimise p99 where requests_per_sec >= 0").contains("is no ratio"));
        assert!(said("minimise migrations").contains("only explains"));
        assert!(said("minimise p98").contains("no cell or metric is called `p98`"));
        let both = Goal::new(
            Mix::parse_option("http=1").unwrap(),
            Some("minimise p99"),
            &[],
        );
        assert!(
            both.unwrap_err()
                .to_string()
                .contains("both say what counts")
        );
    }
}
