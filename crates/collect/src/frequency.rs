//! Current speed of the CPUs: cpufreq's `scaling_cur_freq`, else `/proc/cpuinfo` (x86). Both
//! are an average since the last tick or the last reading: good for "changed by a tenth", not
//! for single percents.

use std::fs;
use std::path::Path;

/// Mean of all CPUs. `None` where the kernel does not tell (most guests do not).
pub fn mean_mhz(root: &Path) -> Option<f64> {
    mean(&from_cpufreq(root)).or_else(|| mean(&from_cpuinfo(root)))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn from_cpufreq(root: &Path) -> Vec<f64> {
    let Ok(policies) = fs::read_dir(root.join("sys/devices/system/cpu/cpufreq")) else {
        return Vec::new();
    };
    policies
        .filter_map(|policy| {
            let file = policy.ok()?.path().join("scaling_cur_freq");
            Some(crate::read_number::<f64>(&file)? / 1000.0)
        })
        .collect()
}

fn from_cpuinfo(root: &Path) -> Vec<f64> {
    let text = doors::read::kernel_text(root.join("proc/cpuinfo")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.trim() == "cpu MHz")
        .filter_map(|(_, value)| value.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn cpufreq_counts_in_kilohertz_and_comes_first() {
        let root = tree(&[
            (
                "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
                "2000000\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq",
                "3000000\n",
            ),
            ("proc/cpuinfo", "cpu MHz\t: 1.0\n"),
        ]);
        assert_eq!(mean_mhz(root.path()), Some(2500.0));
    }

    #[test]
    fn cpuinfo_is_asked_where_there_is_no_cpufreq() {
        let root = tree(&[(
            "proc/cpuinfo",
            "processor\t: 0\ncpu MHz\t\t: 2596.0\n\ncpu MHz\t\t: 2598.0\n",
        )]);
        assert_eq!(mean_mhz(root.path()), Some(2597.0));
        assert_eq!(mean_mhz(tree(&[]).path()), None);
    }
}
