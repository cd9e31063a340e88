//! "Did you mean …?"

/// The candidate most like `word`, if any is near enough to be a slip of the pen. Capital letters
/// are no difference. A word in which one letter is missing, wrong, too many or exchanged with the
/// next is nearer than any other: short words are alike by nothing else.
pub fn find_nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let is_one_slip = word.chars().nth(1).is_some()
            && candidate.chars().nth(1).is_some()
            && strsim::osa_distance(&word, &candidate) <= 1;
        f64::from(u8::from(is_one_slip)) + strsim::jaro_winkler(&word, &candidate)
    };
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Letters from which on a word is long enough for a slip to be told from another word.
const LONG_ENOUGH: usize = 6;

/// The candidate of which `word` is a slip of one or two letters; `None` for a word of its own.
pub fn slip_of<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let candidates = candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count() >= LONG_ENOUGH)
        .map(|candidate| {
            (
                strsim::osa_distance(&word, &candidate.to_lowercase()),
                candidate,
            )
        });
    let near = candidates.filter(|(slips, _)| (1..=2).contains(slips));
    near.min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_nearer_than_letters_in_common() {
        let commands = ["run", "kernel", "report", "restore", "plan"];
        assert_eq!(find_nearest("rn", commands), Some("run"));
        assert_eq!(find_nearest("rnu", commands), Some("run"));
        assert_eq!(find_nearest("Pln", commands), Some("plan"));
        assert_eq!(find_nearest("raprot", commands), Some("report"));
        assert_eq!(find_nearest("qqq", commands), None);
        assert_eq!(find_nearest("x", ["y"]), None);
    }

    #[test]
    fn a_slip_has_one_or_two_letters_wrong_and_is_not_the_word_itself() {
        let names = ["migration_cost", "latency", "cpus"];
        assert_eq!(slip_of("MIGRATON_COST", names), Some("migration_cost"));
        assert_eq!(slip_of("latecny", names), Some("latency"));
        assert_eq!(slip_of("latency", names), None);
        assert_eq!(slip_of("swappiness", names), None);
        assert_eq!(slip_of("cpu", names), None);
    }
}
