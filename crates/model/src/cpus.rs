//! CPU lists as the kernel and taskset(1) write them (`0-3,5`), and parts of whatever
//! CPUs there are (`50%-100%`).

/// The CPUs of a list, ascending and without repeats.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("`{text}` is not a list of CPUs; write \"0-3,5\"");
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| digits.trim().parse::<u32>().map_err(|_| wrong());
        let (low, high) = (number(low)?, number(high)?);
        // The kernel's own limit, and a bound for what a slip of the pen can cost.
        if low > high || high >= MOST_CPUS {
            return Err(wrong());
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The CPUs that a list names; of a part such as `0%-50%`, those of `available` in it,
/// and always at least one.
pub fn choose_cpus(text: &str, available: &[u32]) -> Result<Vec<u32>, String> {
    if !text.contains('%') {
        return parse_cpu_list(text);
    }
    let wrong = || format!("`{text}` is not a part of the CPUs; write \"0%-50%\"");
    let percent = |text: &str| {
        let digits = text.trim().strip_suffix('%')?;
        let percent = digits.parse::<f64>().ok()?;
        (0.0..=100.0).contains(&percent).then_some(percent)
    };
    let (low, high) = text.split_once('-').ok_or_else(wrong)?;
    let (low, high) = percent(low).zip(percent(high)).ok_or_else(wrong)?;
    if low >= high {
        return Err(wrong());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most the number of CPUs: the share is at most all of them"
    )]
    let place = |percent: f64| (percent / 100.0 * available.len() as f64).round() as usize;
    let first = place(low).min(available.len().saturating_sub(1));
    let end = place(high).max(first + 1).min(available.len());
    Ok(available.get(first..end).unwrap_or_default().to_vec())
}

/// `CONFIG_NR_CPUS` of the largest kernels.
const MOST_CPUS: u32 = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_cpus_are_put_in_order() {
        assert_eq!(parse_cpu_list("5,0-2, 1").unwrap(), [0, 1, 2, 5]);
        assert_eq!(parse_cpu_list("0\n").unwrap(), [0]);
    }

    #[test]
    fn a_part_of_the_cpus_is_never_empty() {
        let part = |text, cpus: &[u32]| choose_cpus(text, cpus).unwrap();
        assert_eq!(part("0%-50%", &[0, 1, 2, 5]), [0, 1]);
        assert_eq!(part("50%-100%", &[0, 1, 2, 5]), [2, 5]);
        assert_eq!(part("50%-100%", &[3]), [3]);
        assert_eq!(part("0%-10%", &[0, 1]), [0]);
        assert_eq!(part("1", &[0]), [1], "a list says what it says");
        for wrong in ["50%", "60%-50%", "0%-200%", "0-50%"] {
            assert!(choose_cpus(wrong, &[0, 1]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused_with_an_example() {
        for wrong in ["", "a", "3-1", "1,", "-1", "0-99999"] {
            let error = parse_cpu_list(wrong).unwrap_err();
            assert!(error.contains("0-3,5"), "{error}");
        }
    }
}
