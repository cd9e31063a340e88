//! CPU lists as the kernel and taskset(1) write them: `0-3,5`.

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
    fn what_is_no_list_is_refused_with_an_example() {
        for wrong in ["", "a", "3-1", "1,", "-1", "0-99999"] {
            let error = parse_cpu_list(wrong).unwrap_err();
            assert!(error.contains("0-3,5"), "{error}");
        }
    }
}
