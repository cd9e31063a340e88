//! Pressure stall information: `/proc/pressure/*` and `*.pressure` of a cgroup
//! (Documentation/accounting/psi.rst).

use std::path::Path;

/// Stall time since boot (or since the cgroup was made).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalled {
    /// At least one task waited.
    pub some_ns: u64,
    /// All tasks waited at once.
    pub full_ns: u64,
}

/// A resource that tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Time on a CPU.
    Cpu,
    /// Memory: reclaim, swapping, and pages that are read again.
    Memory,
    /// Input and output of block devices.
    Io,
}

impl Resource {
    fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Io => "io",
        }
    }
}

/// Pressure on the whole system. `None` where the kernel keeps no PSI (`psi=0`).
pub fn read(root: &Path, resource: Resource) -> Option<Stalled> {
    let path = root.join("proc/pressure").join(resource.name());
    parse(&doors::read::kernel_text(path).ok()?)
}

fn parse(text: &str) -> Option<Stalled> {
    Some(Stalled {
        some_ns: total_ns(text, "some")?,
        // Absent for `cpu` before 5.13.
        full_ns: total_ns(text, "full").unwrap_or(0),
    })
}

fn total_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(kind))?;
    let total = line
        .split_ascii_whitespace()
        .find_map(|field| field.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    const CPU: &str = "some avg10=95.25 avg60=58.41 avg300=35.18 total=186505926\n\
                       full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

    #[test]
    fn totals_are_read_in_nanoseconds() {
        let root = tree(&[("proc/pressure/cpu", CPU)]);
        let stalled = read(root.path(), Resource::Cpu).unwrap();
        assert_eq!((stalled.some_ns, stalled.full_ns), (186_505_926_000, 7_000));
    }

    #[test]
    fn a_kernel_without_psi_reads_as_none() {
        assert_eq!(read(tree(&[]).path(), Resource::Cpu), None);
    }

    #[test]
    fn an_old_kernel_without_the_full_line_is_read() {
        let stalled = parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n").unwrap();
        assert_eq!((stalled.some_ns, stalled.full_ns), (5_000, 0));
    }
}
