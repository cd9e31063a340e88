//! What is made of the records of workers that are guests.

use super::*;

/// A job in guests of which each wants a whole CPU.
pub(super) fn job_of_guests(load: &BurnWait, place: Option<load::GuestsIn>) -> Job {
    let mut job = testing::job(KIND.with_params(load));
    job.guests = place;
    let whole_cpu = baseline::Want {
        kops_per_sec: 1_000_000,
        cpu_ns_per_sec: 1_000_000_000,
        ..Default::default()
    };
    for set in &load.sets {
        whole_cpu.store(&set.name, &mut job.calibration);
    }
    job
}

/// Record of a worker of this weight, with its work in each interval.
pub(super) fn record_of(member: Member, weight: u32, kops: &[u64]) -> worker::Record {
    let interval = |kops: &u64| worker::Interval {
        kops: *kops,
        ..Default::default()
    };
    worker::Record {
        member,
        standing: worker::Standing {
            weight,
            cpus: Vec::new(),
        },
        in_turns: Vec::new(),
        intervals: kops.iter().map(interval).collect(),
        lateness: load::recording::Recorder::new(300_000_000, 1_000_000_000).unwrap(),
        deadlines: 0,
        missed: 0,
        longest_wait_ns: 0,
    }
}

/// A guest with this cap and reservation.
pub(super) fn guest_of(cap: u32, reserved: Option<xen::Reservation>) -> guests::OfGuest {
    guests::OfGuest {
        name: "g".to_owned(),
        cap,
        cpu_seconds: 0.1,
        steal_ns: 150_000_000,
        clock_ns: 4_000_000,
        made: guests::AsMade {
            soft_cpus: "0-1,4".to_owned(),
            reserved,
        },
    }
}

/// A trial of two guests on one CPU, each of which wants all of it, with weight, cap, and the work in
/// each interval.
fn of_guests(
    load: &BurnWait,
    place: Option<load::GuestsIn>,
    each: [(u32, u32, &[u64]); 2],
) -> Parsed {
    let job = job_of_guests(load, place);
    let record = |(set, (weight, _, kops)): (usize, &(u32, u32, &[u64]))| {
        record_of(Member { set, number: 0 }, *weight, kops)
    };
    let reserved = job.guests.as_ref().and_then(load::GuestsIn::reservation);
    let seen = guests::Seen {
        cpus: 1,
        others: Vec::new(),
        cpu_percent: 67.0,
        guests: each
            .iter()
            .map(|(_, cap, _)| guest_of(*cap, reserved))
            .collect(),
    };
    let records = each.iter().enumerate().map(record).collect();
    let opened = std::time::SystemTime::now();
    figures::compute_figures(load, &job, records, opened, Some(seen)).unwrap()
}

#[test]
fn the_usual_time_limit_grows_with_the_guests_that_boot() {
    let sets = json!([{"name": "a", "events": ["200 0us"]}, {"name": "b", "events": ["200 0us"], "count": 1}]);
    let starts_within = |workers: &str| {
        let load = read(json!({ "workers": workers, "set": sets.clone() })).unwrap();
        load.starts_within(model::Load::Count(4)).as_secs()
    };
    assert_eq!(starts_within("guests"), 5 * 60);
    assert_eq!(starts_within("threads"), 0);
}

#[test]
fn a_worker_with_nothing_due_does_not_starve() {
    let set = json!([{"name": "a", "events": ["200 0us"]}]);
    let load = read(json!({ "workers": "guests", "interval": "100ms", "set": set })).unwrap();
    let figures_of = |idle_ns: [u64; 3]| {
        let mut record = record_of(Member { set: 0, number: 0 }, 256, &[0, 0, 50_000]);
        for (interval, idle_ns) in record.intervals.iter_mut().zip(idle_ns) {
            interval.idle_ns = idle_ns;
        }
        let seen = guests::Seen {
            cpus: 1,
            others: Vec::new(),
            cpu_percent: 10.0,
            guests: vec![guest_of(0, None)],
        };
        let opened = std::time::SystemTime::now();
        let job = job_of_guests(&load, None);
        figures::compute_figures(&load, &job, vec![record], opened, Some(seen)).unwrap()
    };
    let (ms, starved) = (1_000_000, "starved_percent");
    let near = |parsed: &Parsed, name: &str, expected: f64| {
        assert!((value(parsed, name) - expected).abs() < 1e-6, "{name}");
    };
    let always_due = figures_of([0; 3]);
    near(&always_due, starved, 200.0 / 3.0);
    near(&always_due, "worst_interval_percent", 0.0);
    let off_in_two = figures_of([100 * ms, 100 * ms, 0]);
    near(&off_in_two, starved, 0.0);
    near(&off_in_two, "worst_interval_percent", 50.0);
    near(&figures_of([90 * ms, 0, 0]), starved, 100.0 / 3.0);
    let table = file(&off_in_two, "workers.csv");
    assert!(
        table.contains("0,a,0,0,0,0,1000000.0,256,100000000\n"),
        "{table}"
    );
}

#[test]
fn guests_are_entitled_by_weight_and_cap_and_have_a_table_of_their_own() {
    let load = read(json!({
        "workers": "guests",
        "interval": "100ms",
        "set": [
            {"name": "heavy", "events": ["200 0us"], "weight": 512},
            {"name": "capped", "events": ["200 0us"], "cap": 10},
        ],
    }))
    .unwrap();
    assert_eq!(load.check(), Ok(()));
    // Each gets what it is due: of one CPU, 10 % are the capped one's and the rest the other's.
    let parsed = of_guests(
        &load,
        None,
        [(512, 0, &[90_000; 3]), (256, 10, &[10_000; 3])],
    );
    assert!((value(&parsed, "fairness_percent") - 100.0).abs() < 1e-6);
    assert_eq!(value(&parsed, "cpu_percent"), 67.0);
    assert!((value(&parsed, "guests_steal_percent") - 100.0).abs() < 1e-6);
    let table = file(&parsed, "guests.csv");
    assert!(
        table.contains("1,capped,g,256,10,0.1,150000000,4000000,\"0-1,4\",,,\n"),
        "{table}"
    );
}

#[test]
fn a_budget_limits_what_a_guest_is_entitled_to_unless_it_may_have_more() {
    let load = read(json!({
        "workers": "guests",
        "interval": "100ms",
        "set": [{"name": "a", "events": ["200 0us"]}, {"name": "b", "events": ["200 0us"]}],
    }))
    .unwrap();
    let shortfall = |extratime| {
        let place = load::GuestsIn {
            reservation: Some((2_500, 10_000)),
            extratime,
            ..load::GuestsIn::pool("lab")
        };
        // A quarter of the CPU each.
        let parsed = of_guests(
            &load,
            Some(place),
            [(256, 0, &[25_000; 3]), (256, 0, &[25_000; 3])],
        );
        let table = file(&parsed, "guests.csv").to_owned();
        (value(&parsed, "shortfall_percent"), table)
    };
    let (limited, table) = shortfall(Some(false));
    assert!(limited.abs() < 1e-6, "{limited}");
    assert!(table.contains(",2500,10000,false\n"), "{table}");
    let (more, table) = shortfall(None);
    assert!((more - 50.0).abs() < 1e-6, "{more}");
    assert!(table.contains(",2500,10000,true\n"), "{table}");
}

#[test]
fn intervals_without_work_are_counted_and_the_last_one_only_if_it_is_whole() {
    let load = |interval: &str| {
        let sets =
            json!([{"name": "a", "events": ["200 0us"]}, {"name": "b", "events": ["200 0us"]}]);
        read(json!({ "workers": "guests", "interval": interval, "set": sets })).unwrap()
    };
    let thirds = of_guests(
        &load("100ms"),
        None,
        [(256, 0, &[0, 60_000, 60_000]), (256, 0, &[50_000; 3])],
    );
    assert!((value(&thirds, "starved_percent") - 100.0 / 6.0).abs() < 1e-6);
    // The window of 300 ms has an interval of 200 ms and half a one.
    let parts = of_guests(
        &load("200ms"),
        None,
        [(256, 0, &[100_000, 0]), (256, 0, &[100_000, 50_000])],
    );
    assert_eq!(value(&parts, "starved_percent"), 0.0);
    assert_eq!(value(&parts, "worst_interval_percent"), 100.0);
    let table = file(&parts, "sets.csv");
    let least = |row: usize| table.lines().nth(row).unwrap().split(',').nth(8).unwrap();
    assert_eq!(
        (least(1), least(2)),
        ("500000.000", "500000.000"),
        "{table}"
    );
}
