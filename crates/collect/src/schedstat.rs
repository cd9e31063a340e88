//! `/proc/schedstat` (Documentation/scheduler/sched-stats.rst), versions 15, 16 and 17: what the
//! scheduler did on each CPU, and its load balancing in each domain of it. Counts since boot.

use std::fmt;
use std::path::Path;

/// The versions of the format that are known: Linux 2.6.39 to 6.9, to 6.14, and from 6.15 on.
pub const VERSIONS: [u32; 3] = [15, 16, 17];

/// Columns of a CPU, in the order of the file.
pub const CPU_COLUMNS: [&str; 9] = [
    "yields",
    "legacy",
    "schedules",
    "idle_schedules",
    "wakeups",
    "local_wakeups",
    "run_ns",
    "wait_ns",
    "timeslices",
];

const BALANCING: [&str; 8] = [
    "lb_count",
    "lb_balanced",
    "lb_failed",
    "lb_imbalance",
    "lb_gained",
    "lb_hot_gained",
    "lb_nobusyq",
    "lb_nobusyg",
];
/// The part of `lb_imbalance` from version 17 on.
const IMBALANCES: [&str; 4] = [
    "lb_imbalance_load",
    "lb_imbalance_util",
    "lb_imbalance_task",
    "lb_imbalance_misfit",
];
const OTHERS: [&str; 12] = [
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "sbe_count",
    "sbe_balanced",
    "sbe_pushed",
    "sbf_count",
    "sbf_balanced",
    "sbf_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
    "ttwu_move_balance",
];

/// One reading of the file, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Version of the format.
    pub version: u32,
    /// Columns of every domain, named as in the kernel (`idle_lb_count`, `alb_count`).
    pub domain_columns: Vec<String>,
    /// The CPUs that were online.
    pub cpus: Vec<Cpu>,
}

/// One CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Values of [`CPU_COLUMNS`].
    pub values: Vec<u64>,
    /// Its domains, the smallest first.
    pub domains: Vec<Domain>,
}

/// One scheduling domain of a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Domain {
    /// Number of the domain; 0 is the smallest.
    pub level: u32,
    /// Name (`SMT`, `MC`, `PKG`), which versions before 17 do not tell.
    pub name: String,
    /// Its CPUs, as a mask in hexadecimal.
    pub mask: String,
    /// Values of [`Schedstat::domain_columns`].
    pub values: Vec<u64>,
}

/// Why there is no reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// The kernel has no such file.
    Missing,
    /// The format is of another version.
    Version(String),
    /// A line is not as that version has it.
    Line(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Missing => {
                f.write_str("this kernel has no /proc/schedstat (CONFIG_SCHEDSTATS)")
            }
            Unread::Version(found) => write!(
                f,
                "/proc/schedstat has version {found}, and only 15 to 17 are known"
            ),
            Unread::Line(line) => write!(f, "/proc/schedstat has the line `{line}`"),
        }
    }
}

/// Reads the file now.
pub fn read(root: &Path) -> Result<Schedstat, Unread> {
    let text = doors::read::kernel_text(root.join("proc/schedstat"));
    parse(&text.map_err(|_| Unread::Missing)?)
}

fn parse(text: &str) -> Result<Schedstat, Unread> {
    let first = text.lines().next().unwrap_or_default();
    let found = first.strip_prefix("version ").unwrap_or_default().trim();
    let version = found.parse().ok().filter(|found| VERSIONS.contains(found));
    let version = version.ok_or_else(|| Unread::Version(found.to_owned()))?;
    let mut read = Schedstat {
        version,
        domain_columns: domain_columns(version),
        cpus: Vec::new(),
    };
    for line in text.lines().skip(1) {
        let wrong = || Unread::Line(line.to_owned());
        let mut words = line.split_ascii_whitespace();
        let Some(head) = words.next() else {
            continue;
        };
        if let Some(number) = head.strip_prefix("cpu") {
            read.cpus.push(Cpu {
                cpu: number.parse().map_err(|_| wrong())?,
                values: numbers(words, CPU_COLUMNS.len()).ok_or_else(wrong)?,
                domains: Vec::new(),
            });
        } else if let Some(number) = head.strip_prefix("domain") {
            let name = match version {
                17.. => words.next().ok_or_else(wrong)?,
                _ => "",
            };
            let domain = Domain {
                level: number.parse().map_err(|_| wrong())?,
                name: name.to_owned(),
                mask: words.next().ok_or_else(wrong)?.to_owned(),
                values: numbers(words, read.domain_columns.len()).ok_or_else(wrong)?,
            };
            read.cpus.last_mut().ok_or_else(wrong)?.domains.push(domain);
        }
    }
    Ok(read)
}

/// Exactly as many as there are columns: another number would mean other columns.
fn numbers<'a>(words: impl Iterator<Item = &'a str>, columns: usize) -> Option<Vec<u64>> {
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == columns)
}

/// `enum cpu_idle_type`, whose first two changed places with version 16.
fn domain_columns(version: u32) -> Vec<String> {
    let idle_types = match version {
        15 => ["idle", "busy", "newidle"],
        _ => ["busy", "idle", "newidle"],
    };
    let mut columns = Vec::new();
    for idle_type in idle_types {
        for column in BALANCING {
            match column {
                "lb_imbalance" if version >= 17 => {
                    columns.extend(IMBALANCES.map(|part| format!("{idle_type}_{part}")));
                }
                _ => columns.push(format!("{idle_type}_{column}")),
            }
        }
    }
    columns.extend(OTHERS.map(str::to_owned));
    columns
}

impl Schedstat {
    /// Counts since `earlier`, of the CPUs and domains that both have.
    pub fn counts_since(&self, earlier: &Schedstat) -> Schedstat {
        let cpus = self.cpus.iter().filter_map(|now| {
            let before = earlier.cpus.iter().find(|cpu| cpu.cpu == now.cpu)?;
            let domains = now.domains.iter().filter_map(|domain| {
                let same =
                    |other: &&Domain| other.level == domain.level && other.mask == domain.mask;
                let before = before.domains.iter().find(same)?;
                Some(Domain {
                    values: differences(&domain.values, &before.values),
                    ..domain.clone()
                })
            });
            Some(Cpu {
                cpu: now.cpu,
                values: differences(&now.values, &before.values),
                domains: domains.collect(),
            })
        });
        Schedstat {
            cpus: cpus.collect(),
            ..self.clone()
        }
    }

    /// Sum over all CPUs of one of [`CPU_COLUMNS`].
    pub fn sum_of_cpus(&self, column: &str) -> u64 {
        let at = CPU_COLUMNS.iter().position(|name| *name == column);
        let value = |cpu: &Cpu| at.and_then(|at| cpu.values.get(at)).copied();
        self.cpus.iter().filter_map(value).sum()
    }

    /// Sum over all domains of the columns with this name, for all kinds of idle time:
    /// `lb_gained` is `idle_lb_gained`, `busy_lb_gained` and `newidle_lb_gained`.
    pub fn sum_of_domains(&self, column: &str) -> u64 {
        let is_of = |name: &str| {
            let rest = name.strip_suffix(column);
            rest.is_some_and(|kind| ["", "idle_", "busy_", "newidle_"].contains(&kind))
        };
        let columns = self.domain_columns.iter().enumerate();
        let wanted: Vec<usize> = columns
            .filter_map(|(at, name)| is_of(name).then_some(at))
            .collect();
        let domains = self.cpus.iter().flat_map(|cpu| &cpu.domains);
        let value = |domain: &Domain| -> u64 {
            let values = wanted.iter().filter_map(|at| domain.values.get(*at));
            values.sum()
        };
        domains.map(value).sum()
    }

    /// A row for each CPU, and one for each of its domains, as CSV.
    pub fn to_csv(&self) -> String {
        let mut head = vec!["cpu", "domain", "name", "mask"];
        head.extend(CPU_COLUMNS.iter().filter(|name| **name != "legacy"));
        head.extend(self.domain_columns.iter().map(String::as_str));
        let mut text = head.join(",") + "\n";
        let empty = |n| vec![String::new(); n];
        for cpu in &self.cpus {
            let mut row = vec![cpu.cpu.to_string()];
            row.extend(empty(3));
            let values = cpu.values.iter().zip(CPU_COLUMNS);
            let values = values.filter(|(_, name)| *name != "legacy");
            row.extend(values.map(|(value, _)| value.to_string()));
            row.extend(empty(self.domain_columns.len()));
            text += &(row.join(",") + "\n");
            for domain in &cpu.domains {
                let mask = domain.mask.replace(',', "");
                let mut row = vec![cpu.cpu.to_string(), domain.level.to_string()];
                row.extend([domain.name.clone(), mask]);
                row.extend(empty(CPU_COLUMNS.len() - 1));
                row.extend(domain.values.iter().map(u64::to_string));
                text += &(row.join(",") + "\n");
            }
        }
        text
    }
}

/// Some of the kernel's counters have 32 bits and begin anew.
fn differences(now: &[u64], before: &[u64]) -> Vec<u64> {
    const WRAP: u64 = 1 << 32;
    let difference = |(now, before): (&u64, &u64)| match now.checked_sub(*before) {
        Some(difference) => difference,
        None => (now + WRAP).saturating_sub(*before),
    };
    now.iter().zip(before).map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    /// A machine with one CPU and one domain whose n-th column is n times `times`.
    fn file(version: u32, times: u64) -> String {
        let columns = domain_columns(version).len() as u64;
        let numbers = |n: u64| {
            let numbers: Vec<String> = (1..=n).map(|n| (n * times).to_string()).collect();
            numbers.join(" ")
        };
        let name = if version >= 17 { "MC " } else { "" };
        format!(
            "version {version}\ntimestamp 4294892296\ncpu0 {}\ndomain0 {name}3 {}\n",
            numbers(9),
            numbers(columns)
        )
    }

    fn of(version: u32, times: u64) -> Schedstat {
        let root = tree(&[("proc/schedstat", &file(version, times))]);
        read(root.path()).unwrap()
    }

    #[test]
    fn every_version_is_read_with_its_own_columns() {
        for (version, columns, name) in [(15, 36, ""), (16, 36, ""), (17, 45, "MC")] {
            let read = of(version, 1);
            assert_eq!(read.domain_columns.len(), columns);
            let domain = &read.cpus[0].domains[0];
            assert_eq!((domain.name.as_str(), domain.mask.as_str()), (name, "3"));
            assert_eq!(read.sum_of_cpus("wait_ns"), 8);
            let last = u64::try_from(columns).unwrap();
            assert_eq!(read.sum_of_domains("ttwu_move_balance"), last);
        }
        // lb_gained is the fifth of eight, and the eighth of eleven.
        assert_eq!(of(16, 1).sum_of_domains("lb_gained"), 5 + 13 + 21);
        assert_eq!(of(17, 1).sum_of_domains("lb_gained"), 8 + 19 + 30);
    }

    #[test]
    fn the_first_columns_changed_places_with_version_16() {
        assert_eq!(of(15, 1).domain_columns[0], "idle_lb_count");
        assert_eq!(of(16, 1).domain_columns[0], "busy_lb_count");
    }

    #[test]
    fn differences_survive_a_counter_that_begins_anew() {
        let within = of(17, 3).counts_since(&of(17, 1));
        assert_eq!(within, of(17, 2));
        assert_eq!(differences(&[5], &[u64::from(u32::MAX)]), [6]);
    }

    #[test]
    fn another_version_or_another_number_of_columns_is_not_guessed() {
        let unread = |text: &str| read(tree(&[("proc/schedstat", text)]).path()).unwrap_err();
        assert_eq!(unread("version 99\n"), Unread::Version("99".to_owned()));
        let line = "cpu0 1 2 3";
        let text = format!("version 17\ntimestamp 1\n{line}\n");
        assert_eq!(unread(&text), Unread::Line(line.to_owned()));
        assert_eq!(read(tree(&[]).path()), Err(Unread::Missing));
    }

    #[test]
    fn a_table_has_a_row_for_each_cpu_and_domain() {
        let text = of(17, 1).to_csv();
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        assert_eq!(rows[1][..5], ["0", "", "", "", "1"]);
        assert_eq!(rows[2][..5], ["0", "0", "MC", "3", ""]);
        let at = |name| rows[0].iter().position(|head| *head == name).unwrap();
        assert_eq!(rows[1][at("timeslices")], "9");
        assert_eq!(rows[2][at("busy_lb_count")], "1");
    }
}
