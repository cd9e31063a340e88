//! Where a function changes its sign, with few looks at it.

/// Looks after which no digit is worth another one.
const MOST_LOOKS: u32 = 100;

/// A point and what the function is there.
pub(crate) type Point = (f64, f64);

/// The ends of a range of at most `tolerance` over which `f` changes its sign, within a range whose ends have
/// different signs (0 counts as the sign of the second). Both stay on their sides.
///
/// False position with the weights of Illinois (Dowell and Jarratt 1971), and a halving wherever
/// two steps do not narrow the range by more than that: a function with jumps takes twice the halvings.
pub(crate) fn narrow_crossing(
    first: Point,
    second: Point,
    tolerance: f64,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let is_first = |value: f64| value != 0.0 && value.signum() == first.1.signum();
    let (mut one, mut other) = (first, second);
    let mut last_side = None;
    let mut width_before = f64::INFINITY;
    for look in 0..MOST_LOOKS {
        let width = (other.0 - one.0).abs();
        let middle = f64::midpoint(one.0, other.0);
        if width <= tolerance || middle == one.0 || middle == other.0 {
            break;
        }
        let by_line = one.0 - one.1 * (other.0 - one.0) / (other.1 - one.1);
        let is_slow = look % 2 == 0 && width > 0.4 * width_before;
        if look % 2 == 0 {
            width_before = width;
        }
        // So far from either end that two looks can close the range around a point that is met well.
        let margin = 0.4 * tolerance;
        let (low, high) = (one.0.min(other.0) + margin, one.0.max(other.0) - margin);
        let at = match by_line.is_finite() && !is_slow && low < high {
            true => by_line.clamp(low, high),
            false => middle,
        };
        let value = f(at);
        let side = is_first(value);
        let weight = if last_side == Some(side) { 0.5 } else { 1.0 };
        match side {
            true => {
                one = (at, value);
                other.1 *= weight;
            }
            false => {
                other = (at, value);
                one.1 *= weight;
            }
        }
        last_side = Some(side);
    }
    (one.0, other.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    fn narrow(low: f64, high: f64, tolerance: f64, f: impl Fn(f64) -> f64) -> (f64, f64, u32) {
        let looks = Cell::new(0);
        let counted = |x| {
            looks.set(looks.get() + 1);
            f(x)
        };
        let (one, other) = narrow_crossing((low, f(low)), (high, f(high)), tolerance, counted);
        (one, other, looks.get())
    }

    #[test]
    fn a_smooth_function_takes_few_looks_and_both_ends_stay_on_their_sides() {
        let f = |x: f64| x.powi(3) - 2.0;
        let (low, high, looks) = narrow(0.0, 3.0, 1e-9, f);
        assert!(
            f(low) < 0.0 && f(high) >= 0.0 && high - low <= 1e-9,
            "{low} {high}"
        );
        assert!(looks < 20, "{looks}");
        // A root that is met is of the second end.
        let (low, high, _) = narrow(-1.0, 2.0, 1e-9, |x| x);
        assert!(low < 0.0 && (0.0..1e-9).contains(&high), "{low} {high}");
    }

    proptest! {
        #[test]
        fn a_jump_is_found_wherever_it_is(jump in 0.0..1.0f64, scale in 1e-6..1e6f64) {
            let f = |x: f64| if x < jump { -scale } else { 1.0 };
            let (low, high, looks) = narrow(-1.0, 2.0, 1e-9, f);
            prop_assert!(low < jump && jump <= high && high - low <= 1e-9, "{} {}", low, high);
            prop_assert!(looks <= MOST_LOOKS, "{}", looks);
        }
    }
}
