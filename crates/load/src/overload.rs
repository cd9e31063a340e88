//! Was a load on a schedule more than what serves it could do?

/// Below this share of the offered rate the load is an overload.
const ACHIEVED_ENOUGH_PERCENT: f64 = 99.0;

/// Requests that were done, in percent of those that were offered.
pub fn achieved_percent(offered: u64, done: u64) -> f64 {
    percent(done, offered)
}

/// Were fewer requests done than offered? A backlog of at most `in_flight`, one for each
/// worker or connection, is the edge of the window.
pub fn is_overload(offered: u64, done: u64, in_flight: u32) -> bool {
    let backlog = offered.saturating_sub(done);
    achieved_percent(offered, done) < ACHIEVED_ENOUGH_PERCENT && backlog > u64::from(in_flight)
}

/// A part in percent of a whole; of nothing it is of one.
pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
