use super::*;
use serde_json::json;

mod keys;
mod members;
mod of_guests;

fn burnwait() -> BurnWait {
    BurnWait {
        sets: sets::published_sets(),
        workers: Workers::Threads,
        interval_ns: 100_000_000,
        baselines: false,
    }
}

#[test]
fn antagonists_take_part_and_are_not_judged() {
    let sets = |role: &str| {
        json!({"interval": "100ms", "set": [
            {"name": "judged", "events": ["20 2ms"], "count": 1},
            {"name": "hogs", "events": ["200 0us"], "count": 6, "role": role},
        ]})
    };
    let load = read(sets("antagonist")).unwrap();
    assert_eq!(load.check(), Ok(()));
    let job = calibrated(&load, 1);
    let parsed = testing::generate(&load, &job).unwrap();
    // What the one worker did, of which the table has the same.
    let (work, rates) = (value(&parsed, "work_per_sec"), rates(&parsed));
    assert!((work - rates["judged"]).abs() < 0.01, "{work} {rates:?}");
    assert!(rates["hogs"] > work, "{rates:?}");
    // One of a kind is as fair as can be.
    assert!((value(&parsed, "fairness_percent") - 100.0).abs() < 1e-6);
    let together = read(sets("load")).unwrap();
    let judged = testing::generate(&together, &job).unwrap();
    assert!(value(&judged, "work_per_sec") > work);
    let nobody = json!({"set": [{"name": "C", "events": ["5 1ms"], "role": "antagonist"}]});
    assert_eq!(read(nobody).unwrap().check().unwrap_err().key, "set");
}

fn calibrated(load: &BurnWait, count: u64) -> Job {
    let mut job = testing::job(KIND.with_params(load));
    job.load = Load::Count(count);
    job.calibration = load.calibrate(&job, &mut testing::run).unwrap();
    job
}

fn value(parsed: &Parsed, name: &str) -> f64 {
    let mut metrics = parsed.metrics.iter();
    let metric = metrics.find(|m| m.metric == name);
    metric
        .unwrap_or_else(|| panic!("{name} in {:?}", parsed.metrics))
        .value
}

fn file<'a>(parsed: &'a Parsed, name: &str) -> &'a str {
    let mut files = parsed.files.iter();
    &files.find(|file| file.name == name).unwrap().text
}

#[test]
fn what_a_worker_wants_alone_is_calibrated_for_each_set() {
    let job = calibrated(&burnwait(), 1);
    for set in ["A", "B"] {
        let want = baseline::Want::from_calibration(set, &job.calibration).unwrap();
        // 70 of 270 us, and 100 of about 400 us, on a machine of its own. Other work makes both the
        // waits and the work longer.
        assert!((0.02..1.05).contains(&want.cpus()), "{set}: {want:?}");
        assert!(want.kops_per_sec > 1_000, "{set}: {want:?}");
    }
}

#[test]
fn the_unit_of_another_workload_is_that_of_this_one() {
    let load = burnwait();
    let mut job = testing::job(KIND.with_params(&load));
    let known = (OPERATIONS_PER_KOP.to_owned(), 77);
    job.calibration.values.extend([known]);
    let found = load.calibrate(&job, &mut testing::run).unwrap();
    assert_eq!(found.values[OPERATIONS_PER_KOP], 77);
    // Its own demand is found all the same.
    assert!(baseline::Want::from_calibration("A", &found).is_some());
}

#[test]
fn many_workers_share_the_cpus_and_every_one_is_in_the_tables() {
    let load = burnwait();
    let cpus = load::allowed_cpus().len() as u64;
    let count = 4 * cpus;
    let parsed = testing::generate(&load, &calibrated(&load, count)).unwrap();
    let fairness = value(&parsed, "fairness_percent");
    assert!(0.0 < fairness && fairness <= 100.0 + 1e-9, "{fairness}");
    let (worst, interval) = (
        value(&parsed, "worst_worker_percent"),
        value(&parsed, "worst_interval_percent"),
    );
    assert!(interval <= worst * 1.05, "{interval} and {worst}");
    assert!(value(&parsed, "latency_cost") > 0.0);
    // They want about twice the CPUs that there are.
    let used = value(&parsed, "cpu_percent");
    assert!(used <= 110.0 * cpus as f64, "{used}");
    assert_eq!(file(&parsed, "sets.csv").lines().count(), 3);
    let rows = file(&parsed, "workers.csv").lines().skip(1);
    let rows: Vec<&str> = rows.map(|row| row.split(',').nth(1).unwrap()).collect();
    assert_eq!(rows.len() as u64, 2 * count * 3, "workers and intervals");
    // They start one of each set by turns, and end as they come.
    assert!(rows.is_sorted(), "{rows:?}");
}

#[test]
fn the_totals_of_the_tables_are_the_work_that_was_done() {
    let load = burnwait();
    let parsed = testing::generate(&load, &calibrated(&load, 2)).unwrap();
    let column =
        |line: &str, index: usize| -> f64 { line.split(',').nth(index).unwrap().parse().unwrap() };
    let sets: f64 = file(&parsed, "sets.csv")
        .lines()
        .skip(1)
        .map(|line| column(line, 2))
        .sum();
    let workers = file(&parsed, "workers.csv").lines().skip(1);
    let workers: f64 = workers.map(|line| column(line, 3)).sum::<f64>() / 0.3;
    let rate = value(&parsed, "work_per_sec");
    assert!((sets - rate).abs() < 0.01 && (workers - rate).abs() < 0.01);
}

#[test]
fn a_trial_that_was_not_calibrated_says_so() {
    let job = testing::job(KIND.with_params(&burnwait()));
    let error = testing::generate(&burnwait(), &job).unwrap_err();
    assert!(error.to_string().contains("not calibrated"), "{error}");
}

fn read(keys: serde_json::Value) -> Result<BurnWait, Invalid> {
    let mut keys = Keys::new(keys.as_object().cloned().unwrap());
    let load = BurnWait::read(&mut keys);
    keys.into_fault().map_or(Ok(load), Err)
}

#[test]
fn sets_may_have_a_weight_and_a_number_of_their_own() {
    // More than any machine of tests serves, however busy it was while they were alone.
    const MANY: u64 = 60;
    let load = read(json!({
        "interval": "100ms",
        "set": [
            {"name": "heavy", "events": ["200 0us"], "count": 1},
            {"name": "light", "events": ["200 0us"], "nice": 10},
        ],
    }))
    .unwrap();
    let parsed = testing::generate(&load, &calibrated(&load, MANY)).unwrap();
    let rows = file(&parsed, "workers.csv").lines().skip(1);
    let mut workers = std::collections::BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let due: f64 = cells[6].parse().unwrap();
        workers.insert(
            cells[0].to_owned(),
            (cells[1].to_owned(), due, cells[7].to_owned()),
        );
    }
    let of = |set: &str| workers.values().filter(|w| w.0 == set).collect::<Vec<_>>();
    let (heavy, light) = (of("heavy"), of("light"));
    assert_eq!((heavy.len() as u64, light.len() as u64), (1, MANY));
    assert_eq!((heavy[0].2.as_str(), light[0].2.as_str()), ("1024", "110"));
    // All want a whole CPU. The heavy one is entitled to more than each of the light ones.
    assert!(heavy[0].1 > light[0].1, "{workers:?}");
}

#[test]
fn periodic_events_that_take_longer_than_their_period_miss_every_deadline() {
    let event = sets::Event {
        when: sets::When::Every,
        ..sets::Event::with_wait(3_000, 1_000_000)
    };
    let mut load = burnwait();
    load.sets.truncate(1);
    load.sets[0].events = vec![event];
    let parsed = testing::generate(&load, &calibrated(&load, 1)).unwrap();
    let missed = value(&parsed, "miss_percent");
    assert!((99.0..=100.0).contains(&missed), "{missed}");
}

#[test]
fn the_memory_of_all_workers_has_what_each_of_them_records() {
    const GIB: u64 = 1 << 30;
    let load = burnwait();
    let mut job = testing::job(KIND.with_params(&load));
    job.load = Load::Count(4_000);
    job.workload.duration_ns = 60_000_000_000;
    let (workers, bytes) = load.needs(&job);
    assert_eq!(workers, 8_000);
    // About 2 MiB each, where the buffers alone are 500 MiB.
    assert!((15 * GIB..25 * GIB).contains(&bytes), "{bytes}");
}

#[test]
fn company_costs_a_multiple_of_the_lateness_alone_of_the_set_where_it_is_highest() {
    let load = burnwait();
    let mut job = testing::job(KIND.with_params(&load));
    let late = |set, late_ns: &[u64]| {
        let mut lateness = load::recording::Recorder::new(300_000_000, 1_000_000_000).unwrap();
        let (begin_ns, end_ns) = (0, 300_000_000);
        lateness.open(load::recording::Window { begin_ns, end_ns });
        late_ns.iter().for_each(|ns| lateness.record(5, *ns));
        worker::Record {
            member: Member { set, number: 0 },
            standing: worker::Standing::default(),
            intervals: Vec::new(),
            in_turns: Vec::new(),
            lateness,
            deadlines: 0,
            missed: 0,
            longest_wait_ns: 0,
        }
    };
    // A: 40 us on average; B: 300 us; and one of B that nothing was due of.
    let records = [
        late(0, &[20_000, 60_000]),
        late(1, &[300_000]),
        late(1, &[]),
    ];
    assert_eq!(figures::latency_cost(&load, &job, &records), None);
    let mut alone = |set: &str, late_ns| {
        let want = baseline::Want {
            late_ns: Some(late_ns),
            ..Default::default()
        };
        want.store(set, &mut job.calibration);
        figures::latency_cost(&load, &job, &records).unwrap()
    };
    let near = |cost: f64, expected: f64| {
        assert!(
            (cost / expected - 1.0).abs() < 0.001,
            "{cost} and {expected}"
        );
    };
    near(alone("A", 4_000), 10.0);
    near(alone("B", 100_000), 10.0);
    near(alone("B", 5_000), 60.0);
    // No clock tells less than a microsecond apart.
    near(alone("B", 7), 300.0);
}

#[test]
fn the_seed_says_which_set_is_the_first_to_start() {
    let load = burnwait();
    let order = |seed| {
        let mut job = testing::job(KIND.with_params(&load));
        job.load = Load::Count(2);
        job.seed = seed;
        load.order(&job)
    };
    let sets = |seed| order(seed).iter().map(|m| m.set).collect::<Vec<_>>();
    assert_eq!(sets(4), [0, 1, 0, 1]);
    assert_eq!(sets(7), [1, 0, 1, 0]);
    // Whichever starts first, all have their numbers within their sets.
    let numbers = |seed| order(seed).iter().map(|m| m.number).collect::<Vec<_>>();
    assert_eq!(numbers(4), [0, 0, 1, 1]);
    assert_eq!(numbers(7), numbers(4));
}

#[test]
fn sets_in_cgroups_are_entitled_to_what_their_groups_are() {
    let set = |name: &str, key: &str, value: serde_json::Value| json!({"name": name, "events": ["500 0us"], key: value});
    let load = read(json!({
        "workers": "processes",
        "set": [
            set("heavy", "weight", json!(300)),
            set("light", "nice", json!(0)),
            set("limited", "quota", json!("20%")),
        ],
    }))
    .unwrap();
    let standing = worker::Standing {
        weight: weight::USUAL,
        cpus: vec![0, 1],
    };
    // One worker of the heavy set, two of the light one, four of the limited one, on two CPUs. All
    // want a whole one.
    let workers: Vec<(usize, &worker::Standing)> =
        [0, 1, 1, 2, 2, 2, 2].map(|set| (set, &standing)).into();
    let ask = entitlement::Ask {
        want: 1.0,
        weight: 1024.0,
        cpus: &[0, 1],
    };
    let shares = figures::shares_in_groups(&load, &workers, &[ask; 7]);
    // The quota leaves 1.8 CPUs. Three quarters of them are more than one worker can use, so the
    // light set has 0.8, for two.
    let expected = [1.0, 0.4, 0.4, 0.05, 0.05, 0.05, 0.05];
    for (share, expected) in shares.iter().zip(expected) {
        assert!((share - expected).abs() < 1e-9, "{shares:?}");
    }
}

/// Rates of the sets, from the classic table: workers, and thousands of operations in a second.
fn rates(parsed: &Parsed) -> std::collections::BTreeMap<String, f64> {
    let rows = file(parsed, "sets.csv").lines().skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.split(',').collect();
        (cells[0].to_owned(), cells[2].parse().unwrap())
    })
    .collect()
}

#[test]
fn a_pipeline_does_as_many_of_the_second_as_of_the_first() {
    let load = read(json!({
        "interval": "100ms",
        "set": [
            {"name": "front", "events": ["20 2ms"]},
            {"name": "back", "events": ["10", "2x5"], "after": "front"},
        ],
    }))
    .unwrap();
    assert_eq!(load.check(), Ok(()));
    let parsed = testing::generate(&load, &calibrated(&load, 2)).unwrap();
    let rates = rates(&parsed);
    // 20 each time here and there; the last of the window may be on its way.
    let ratio = rates["back"] / rates["front"];
    assert!((0.9..1.1).contains(&ratio), "{rates:?}");
}

#[test]
fn work_is_done_in_the_on_times_only_and_bursts_are_due_at_once() {
    let load = read(json!({
        "interval": "10ms",
        "set": [
            {"name": "half", "events": ["5 1ms"], "on": "20ms", "off": "20ms"},
            {"name": "always", "events": ["5 1ms"]},
            {"name": "burst", "events": ["50x5 20ms"]},
            {"name": "random", "events": ["5 random 1ms"]},
        ],
    }))
    .unwrap();
    assert_eq!(load.check(), Ok(()));
    let job = calibrated(&load, 1);
    let want = |set: &str| {
        baseline::Want::from_calibration(set, &job.calibration)
            .unwrap()
            .kops_per_sec as f64
    };
    let half = want("half") / want("always");
    assert!((0.3..0.7).contains(&half), "{half}");
    // The draws change when it works and not how much.
    let random = want("random") / want("always");
    assert!((0.7..1.3).contains(&random), "{random}");
    let parsed = testing::generate(&load, &job).unwrap();
    // The last piece of a burst waits for all others of it: 49 times 5 us at least.
    let lateness = value(&parsed, "lateness_p90");
    assert!(lateness > 49.0 * 5_000.0 * 0.5, "{lateness}");
}

#[test]
fn a_window_of_few_cycles_is_refused() {
    let problems = |set: serde_json::Value| {
        let load = read(json!({ "interval": "100ms", "set": [set] })).unwrap();
        assert_eq!(load.check(), Ok(()));
        // Its window is 300 ms.
        load.require(&testing::job(KIND.with_params(&load)))
    };
    let often = json!({"name": "often", "events": ["70 90ms"]});
    assert_eq!(problems(often), []);
    let rare = json!({"name": "rare", "events": ["70 110ms"]});
    let on_and_off = json!({"name": "rare", "events": ["5 1ms"], "on": "10ms", "off": "100ms"});
    for set in [rare, on_and_off] {
        let found = problems(set);
        assert!(found[0].what.contains("the set rare"), "{found:?}");
    }
}

#[test]
fn an_interval_has_two_of_the_longest_pieces_as_long_as_they_last_among_all_workers() {
    let set = json!({"name": "long", "events": ["10000 0s"]});
    let load = read(json!({ "interval": "50ms", "set": [set] })).unwrap();
    let mut job = testing::job(KIND.with_params(&load));
    job.cpus = 2;
    let mut problems = |workers| {
        job.load = Load::Count(workers);
        load.require(&job)
    };
    assert_eq!(problems(5), []);
    let found = problems(6);
    let says = "takes 30ms or more, with 3 workers for each CPU";
    assert!(found[0].what.contains(says), "{found:?}");
}

#[test]
fn times_on_and_off_begin_with_on() {
    let cycle = sets::Cycle {
        on_ns: 20,
        off_ns: 30,
    };
    let due = [0, 19, 20, 49, 50, 75].map(|at| cycle.next_due_ns(1_000, 1_000 + at) - 1_000);
    assert_eq!(due, [0, 19, 50, 50, 50, 100]);
}

#[test]
fn the_rate_of_reads_is_calibrated_where_a_set_works_on_memory() {
    let load = read(json!({
        "interval": "100ms",
        "set": [
            {"name": "plain", "events": ["500 1ms"]},
            {"name": "memory", "events": ["500 1ms"], "memory": "4MiB", "memory-percent": 50},
        ],
    }))
    .unwrap();
    assert_eq!(load.check(), Ok(()));
    let job = calibrated(&load, 1);
    let want = |set: &str| baseline::Want::from_calibration(set, &job.calibration).unwrap();
    let (plain, memory) = (want("plain"), want("memory"));
    assert!(
        plain.reads_per_ms == 0 && memory.reads_per_ms > 100,
        "{memory:?}"
    );
    assert!(
        plain.cpu_ns_per_sec > 0 && memory.cpu_ns_per_sec > 0,
        "{plain:?} {memory:?}"
    );
    testing::generate(&load, &job).unwrap();
}

#[test]
fn workers_are_where_their_set_places_them_and_are_entitled_to_that() {
    let cpus = load::allowed_cpus();
    let load = read(json!({
        "interval": "100ms",
        "set": [
            {"name": "kept", "events": ["200 0us"], "cpus": cpus[0].to_string(), "count": 2},
            {"name": "free", "events": ["200 0us"], "count": 1},
        ],
    }))
    .unwrap();
    let job = calibrated(&load, 1);
    let parsed = testing::generate(&load, &job).unwrap();
    let wants = |set: &str| baseline::Want::from_calibration(set, &job.calibration).unwrap();
    let share = |set: &str| -> f64 {
        let mut rows = file(&parsed, "workers.csv").lines();
        let row = rows.find(|row| row.split(',').nth(1) == Some(set)).unwrap();
        let due: f64 = row.split(',').nth(6).unwrap().parse().unwrap();
        due * wants(set).cpus() / wants(set).kops_per_sec as f64
    };
    let (kept, free) = (wants("kept").cpus().min(1.0), wants("free").cpus().min(1.0));
    // On one CPU all three share it, and what one does not want goes to the others.
    if cpus.len() > 1 {
        assert!((share("kept") - kept.min(0.5)).abs() < 0.01, "{kept}");
        assert!((share("free") - free).abs() < 0.01, "{free}");
    } else {
        assert!(share("kept") <= 0.5 && share("free") <= free);
    }
    let set = json!({"name": "C", "events": ["5 1ms"], "cpus": "8000"});
    let moon = read(json!({"interval": "100ms", "set": [set]})).unwrap();
    let problems = moon.require(&testing::job(KIND.with_params(&moon)));
    assert!(problems[0].what.contains("CPU 8000"), "{problems:?}");
}

#[test]
fn work_and_fairness_are_counted_in_each_turn_and_in_its_halves() {
    let load = burnwait();
    let mut job = calibrated(&load, 2);
    let lengths = model::InPlace::new(100_000_000);
    let turn = |arm| model::Turn { arm, pair: 0 };
    job.turns = Some(model::Turns {
        lengths,
        order: [0, 1, 1, 0].map(turn).into(),
    });
    let parsed = testing::generate(&load, &job).unwrap();
    assert_eq!(parsed.turns.len(), 4);
    for turn in &parsed.turns {
        let figure = |name: &str| turn.whole[name];
        let fairness = figure("fairness_percent");
        assert!(0.0 < fairness && fairness <= 100.0 + 1e-9, "{turn:?}");
        assert!(figure("worst_worker_percent") > 0.0, "{turn:?}");
        // Work of both halves is that of the window, and there is some of each.
        let halves = turn.halves.each_ref().map(|half| half["work_per_sec"]);
        let mean = halves.iter().sum::<f64>() / 2.0;
        assert!((mean - figure("work_per_sec")).abs() < 1e-6, "{turn:?}");
        assert!(halves[0] > 0.0 && halves[1] > 0.0, "{turn:?}");
        assert!(figure("lateness_p50") > 0.0, "{turn:?}");
        assert!(figure("cpu_percent") > 0.0, "{turn:?}");
        assert!(!turn.whole.contains_key("worst_interval_percent"));
    }
    let names: Vec<&str> = parsed.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["arm-0/lateness.hlog", "arm-1/lateness.hlog"]);
}
