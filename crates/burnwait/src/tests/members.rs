//! Tests of which worker a row of a table is.

use super::of_guests::{guest_of, job_of_guests, record_of};
use super::*;

/// Two sets of two workers.
fn load() -> BurnWait {
    read(json!({
        "workers": "guests",
        "interval": "300ms",
        "set": [{"name": "b", "events": ["200 0us"]}, {"name": "a", "events": ["200 0us"]}],
    }))
    .unwrap()
}

/// A trial whose workers are recorded in this order, by set and number. All figures of a worker, and the
/// name of its guest, tell which one it is.
fn recorded(order: &[(usize, usize)], in_guests: bool) -> Parsed {
    let load = load();
    let job = job_of_guests(&load, None);
    let records = order.iter().map(|&(set, number)| {
        let kops = 1_000 + 100 * set as u64 + number as u64;
        let mut record = record_of(Member { set, number }, 256, &[kops]);
        record.standing.cpus = vec![0];
        record
    });
    let guest = |(set, number): &(usize, usize)| guests::OfGuest {
        name: format!("guest-{set}-{number}"),
        cap: 0,
        cpu_seconds: 0.1,
        steal_ns: 0,
        clock_ns: 0,
        made: guests::AsMade {
            soft_cpus: "all".to_owned(),
            reserved: None,
        },
    };
    let seen = guests::Seen {
        cpus: 1,
        others: Vec::new(),
        cpu_percent: 67.0,
        guests: order.iter().map(guest).collect(),
    };
    let seen = in_guests.then_some(seen);
    let opened = std::time::SystemTime::now();
    figures::compute_figures(&load, &job, records.collect(), opened, seen).unwrap()
}

#[test]
fn other_domains_that_ran_in_the_pool_are_told() {
    let load = load();
    let seen = |percent| guests::Seen {
        cpus: 1,
        cpu_percent: 67.0,
        guests: vec![guest_of(0, None)],
        others: vec![("database".to_owned(), percent)],
    };
    let told = |percent| {
        let record = record_of(Member { set: 0, number: 0 }, 256, &[1_000]);
        let (job, opened) = (job_of_guests(&load, None), std::time::SystemTime::now());
        figures::compute_figures(&load, &job, vec![record], opened, Some(seen(percent))).unwrap()
    };
    let is_told = |percent| {
        let mut warnings = told(percent).warnings.into_iter();
        warnings.any(|warning| warning.what.ends_with("database (40 % of a CPU)"))
    };
    assert_eq!((is_told(40.0), is_told(1.0)), (true, false));
}

/// First columns of the rows of a table.
fn columns<const N: usize>(parsed: &Parsed, name: &str) -> Vec<[String; N]> {
    let rows = file(parsed, name).lines().skip(1);
    let cells = rows.map(|row| -> [String; N] {
        let mut cells = row.split(',').map(str::to_owned);
        std::array::from_fn(|_| cells.next().unwrap())
    });
    cells.collect()
}

#[test]
fn a_row_is_the_same_worker_whichever_started_or_ended_first() {
    let rows = |order: &[(usize, usize)]| columns::<4>(&recorded(order, false), "workers.csv");
    let expected = [
        ["0", "b", "0", "1000"],
        ["1", "b", "0", "1001"],
        ["2", "a", "0", "1100"],
        ["3", "a", "0", "1101"],
    ];
    assert_eq!(rows(&[(0, 0), (0, 1), (1, 0), (1, 1)]), expected);
    assert_eq!(rows(&[(1, 1), (0, 1), (1, 0), (0, 0)]), expected);
}

#[test]
fn a_guest_stands_beside_its_worker() {
    // As the seed has them made where the second set is the first to start.
    let parsed = recorded(&[(1, 0), (0, 0), (1, 1), (0, 1)], true);
    let workers = columns::<4>(&parsed, "workers.csv");
    let done: Vec<&str> = workers.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(done, ["1000", "1001", "1100", "1101"]);
    let expected = [
        ["0", "b", "guest-0-0"],
        ["1", "b", "guest-0-1"],
        ["2", "a", "guest-1-0"],
        ["3", "a", "guest-1-1"],
    ];
    assert_eq!(columns::<3>(&parsed, "guests.csv"), expected);
}
