//! Commands whose work others did: a client whose daemon works for it. An arm that changes the
//! client does not reach the work, so that nothing changes says nothing of the arm.

use model::Trial;
use model::readings::WORK_ELSEWHERE;

/// True where the agent marked the trial: others used more CPU time than its command.
pub fn is_work_elsewhere(trial: &Trial) -> bool {
    let mark = trial.metric(WORK_ELSEWHERE);
    mark.is_some_and(|mark| mark.value > 0.0)
}

/// True where most of these trials are marked; one of them may have met a busy neighbour.
pub fn is_most_work_elsewhere<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> bool {
    let (mut marked, mut all) = (0, 0);
    for trial in trials {
        all += 1;
        marked += usize::from(is_work_elsewhere(trial));
    }
    2 * marked > all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::trial;
    use model::{Better, Measurement};

    fn marked(mark: f64) -> Trial {
        let mut trial = trial(1, 0, 1.0);
        trial.result.metrics.push(Measurement {
            metric: WORK_ELSEWHERE.to_owned(),
            unit: "count".to_owned(),
            better: Better::Neither,
            value: mark,
            own: None,
        });
        trial
    }

    #[test]
    fn most_trials_must_be_marked() {
        let (others, own) = (marked(1.0), marked(0.0));
        assert!(is_most_work_elsewhere([&others, &others, &own]));
        assert!(!is_most_work_elsewhere([&others, &own]));
        assert!(!is_most_work_elsewhere([&trial(1, 0, 1.0)]));
        assert!(!is_most_work_elsewhere([]));
    }
}
