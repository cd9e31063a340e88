//! The smallest count for which something holds, by doubling and halving.

/// The smallest count in `low + 1..=limit` with `holds(count)`, for a condition
/// that keeps holding once it does; `None` if it does not hold at `limit`.
pub(crate) fn smallest_count(low: u32, limit: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut below, mut above) = (
        low,
        low.saturating_mul(2).clamp(low + 1, limit.max(low + 1)),
    );
    while !holds(above) {
        if above >= limit {
            return None;
        }
        below = above;
        above = above.saturating_mul(2).min(limit);
    }
    while above - below > 1 {
        let middle = below.midpoint(above);
        if holds(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some(above)
}

#[cfg(test)]
mod tests {
    use super::smallest_count;

    #[test]
    fn every_answer_between_the_ends_is_found() {
        for answer in 3..=50 {
            assert_eq!(smallest_count(2, 50, |n| n >= answer), Some(answer));
        }
        assert_eq!(smallest_count(0, 50, |n| n >= 1), Some(1));
    }

    #[test]
    fn nothing_is_found_beyond_the_limit() {
        assert_eq!(smallest_count(2, 50, |n| n >= 51), None);
        assert_eq!(smallest_count(50, 50, |n| n >= 60), None);
    }
}
