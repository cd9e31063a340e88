//! Pairs of a client and a server: the rate of each is kept apart from the others.
//!
//! Pairs of one trial are no repetitions: they share CPUs, and what one of them gains another
//! loses. So a trial has their sum and the slowest, and each rate is in its table.

use model::{Severity, TrialFile, Warning};
use std::fmt::Write;

/// The table of the pairs of a trial.
const FILE: &str = "pairs.csv";
/// Free pairs whose rates differ by this factor ran at different places. netperf's two of a
/// pair do 4 to 5 times as much on one CPU as on two.
const TWO_RATES: f64 = 2.0;

/// CPU of the client and of the server of every pair; `None`: the scheduler chooses.
pub type PairCpus = Option<[u32; 2]>;

/// A row for each pair: its rate, and the CPUs that its two are bound to or `free`.
pub fn table(metric: &str, rates: &[f64], cpus: PairCpus) -> TrialFile {
    let mut text = format!("pair,{metric},client_cpu,server_cpu\n");
    let [client, server] = match cpus {
        None => ["free", "free"].map(str::to_owned),
        Some(cpus) => cpus.map(|cpu| cpu.to_string()),
    };
    for (index, rate) in rates.iter().enumerate() {
        // A String takes all that is written.
        let _ = writeln!(text, "{},{rate:.2},{client},{server}", index + 1);
    }
    TrialFile {
        name: FILE.to_owned(),
        text,
    }
}

/// Warning about free pairs of one trial that ran at rates of their own.
pub fn two_rates(rates: &[f64], cpus: PairCpus) -> Option<Warning> {
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let factor = fastest / slowest;
    (cpus.is_none() && rates.len() > 1 && factor >= TWO_RATES).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "the fastest of the pairs did {factor:.1} times as much as the slowest: their two are \
             bound to no CPU, and share one in some pairs and not in others"
        ),
        remedy: "bind them (`pair-cpus = [0, 1]`), or read the rates of the pairs in pairs.csv"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_its_rate_and_its_place() {
        let free = table("requests_per_sec", &[1.5, 20.0], None);
        assert_eq!(free.name, "pairs.csv");
        let expected =
            "pair,requests_per_sec,client_cpu,server_cpu\n1,1.50,free,free\n2,20.00,free,free\n";
        assert_eq!(free.text, expected);
        assert!(
            table("x", &[3.0], Some([0, 1]))
                .text
                .ends_with("1,3.00,0,1\n")
        );
    }

    #[test]
    fn free_pairs_at_two_rates_are_said() {
        let said = two_rates(&[71_600.0, 13_700.0], None).unwrap();
        assert!(said.what.contains("5.2 times"), "{}", said.what);
        assert_eq!(two_rates(&[71_600.0, 13_700.0], Some([0, 1])), None);
        assert_eq!(two_rates(&[71_600.0, 61_000.0], None), None);
        assert_eq!(two_rates(&[71_600.0], None), None);
    }
}
