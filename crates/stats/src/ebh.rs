//! e-BH: which of many calls survive at a stated false discovery rate.
//!
//! Wang and Ramdas, "False discovery rate control with e-values" (2022): of `m`
//! hypotheses, reject those with the `k` largest e-values, for the largest `k`
//! with `k · e_(k) ≥ m / alpha`. The expected share of false calls among the
//! calls is at most `alpha` **whatever the dependence** between the e-values,
//! which the cells of one machine, measured against one baseline, do have.

/// For each e-value, in the order given, whether its call survives at `alpha`.
pub fn find_survivors(e_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut descending = e_values.to_vec();
    descending.sort_by(|a, b| b.total_cmp(a));
    let needed = e_values.len() as f64 / alpha;
    let kept = (1..=descending.len())
        .rev()
        .find(|&k| k as f64 * descending[k - 1] >= needed);
    match kept {
        Some(k) => e_values.iter().map(|&e| e >= descending[k - 1]).collect(),
        None => vec![false; e_values.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::find_survivors;
    use proptest::prelude::*;

    #[test]
    fn a_lone_comparison_needs_one_over_alpha() {
        assert_eq!(find_survivors(&[20.0], 0.05), [true]);
        assert_eq!(find_survivors(&[19.9], 0.05), [false]);
        assert!(find_survivors(&[], 0.05).is_empty());
    }

    #[test]
    fn a_single_strong_call_among_many_must_pay_for_all_of_them() {
        assert_eq!(find_survivors(&[1.0, 79.0, 1.0, 1.0], 0.05), [false; 4]);
        assert_eq!(
            find_survivors(&[1.0, 80.0, 1.0, 1.0], 0.05),
            [false, true, false, false]
        );
    }

    #[test]
    fn many_moderate_calls_support_each_other() {
        // m / alpha = 100: 4 · 26 ≥ 100 although 26 alone is far below 100.
        let kept = find_survivors(&[26.0, 0.3, 30.0, 27.0, 400.0], 0.05);
        assert_eq!(kept, [true, false, true, true, true]);
    }

    #[test]
    fn a_later_rank_can_rescue_the_earlier_ones() {
        // Ranks 1 and 2 fail on their own (1 · 50, 2 · 45 < 100), rank 3 passes.
        let kept = find_survivors(&[50.0, 45.0, 40.0, 1.0, 1.0], 0.05);
        assert_eq!(kept, [true, true, true, false, false]);
    }

    #[test]
    fn it_agrees_with_scipy_on_the_inverses() {
        // scipy 1.17.1: stats.false_discovery_control(1 / e, method="bh") <= 0.05, with
        // p = 1 where e is below it.
        let e_values = [3.0, 412.0, 55.0, 0.7, 61.0, 18.0, 150.0, 1.2, 44.0, 27.0];
        let kept: Vec<usize> = find_survivors(&e_values, 0.05)
            .iter()
            .enumerate()
            .filter_map(|(index, survives)| survives.then_some(index))
            .collect();
        assert_eq!(kept, [1, 2, 4, 6, 8]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_benjamini_hochberg_on_the_inverses(
            e_values in prop::collection::vec(0.1..1e4f64, 1..40),
        ) {
            // BH on p = 1/e, written from its own definition.
            let m = e_values.len() as f64;
            let threshold = e_values
                .iter()
                .map(|e| 1.0 / e)
                .filter(|p| {
                    let rank = e_values.iter().filter(|&&e| 1.0 / e <= *p).count();
                    *p <= 0.05 * rank as f64 / m
                })
                .fold(0.0, f64::max);
            let expected: Vec<bool> = e_values.iter().map(|e| 1.0 / e <= threshold).collect();
            prop_assert_eq!(find_survivors(&e_values, 0.05), expected);
        }

        #[test]
        fn more_evidence_never_loses_a_call(
            mut e_values in prop::collection::vec(0.1..1e3f64, 1..20), raised in 0..20usize,
        ) {
            let before = find_survivors(&e_values, 0.05);
            let raised = raised % e_values.len();
            e_values[raised] *= 10.0;
            let after = find_survivors(&e_values, 0.05);
            prop_assert!(before.iter().zip(&after).all(|(before, after)| !before || *after));
        }
    }
}
