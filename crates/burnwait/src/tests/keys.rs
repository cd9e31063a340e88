//! Keys of a workload and its sets: what they mean, and what is wrong with them.

use super::*;

#[test]
fn events_are_read_from_texts() {
    let load = read(json!({"set": [{"name": "C", "events": ["5 1ms", "10  20us"]}]})).unwrap();
    let expected = [(5, 1_000_000), (10, 20_000)];
    let events = load.sets[0].events.iter().map(|e| (e.kops, e.wait_ns));
    assert_eq!(events.collect::<Vec<_>>(), expected);
    assert_eq!(read(json!({})).unwrap().sets, sets::published_sets());
}

#[test]
fn what_is_wrong_with_a_set_is_said_at_its_place() {
    let key = |keys| read(keys).unwrap_err().key;
    for events in [json!(["x 1ms"]), json!(["5 soon"]), json!(["2x 1ms"])] {
        let keys = json!({"set": [{"name": "C", "events": events}]});
        assert_eq!(key(keys), "set.0.events.0");
    }
    assert_eq!(key(json!({"set": [{"events": ["5 1ms"]}]})), "set.0");
    assert_eq!(key(json!({"set": [{"name": "C"}]})), "set.0");
    let set = json!({"name": "C", "events": ["5 1ms"]});
    let twice = read(json!({"set": [set, set]})).unwrap();
    assert_eq!(twice.check().unwrap_err().key, "set.1.name");
    let idle = read(json!({"set": [{"name": "C", "events": ["0 1ms"]}]})).unwrap();
    assert_eq!(idle.check().unwrap_err().key, "set.0.events");
    let short = read(json!({"interval": "1ms"})).unwrap();
    assert_eq!(short.check().unwrap_err().key, "interval");
}

#[test]
fn a_wrong_weight_or_number_of_a_set_is_said_at_its_place() {
    let set = |key: &str, value: i64| {
        let set = json!({"name": "C", "events": ["5 1ms"], key: value});
        read(json!({ "set": [set] }))
            .unwrap()
            .check()
            .unwrap_err()
            .key
    };
    assert_eq!(set("nice", 20), "set.0.nice");
    assert_eq!(set("count", 0), "set.0.count");
}

#[test]
fn events_that_no_timer_could_wait_for_are_refused() {
    let with = |wait_ns, is_periodic| {
        let mut load = burnwait();
        let when = match is_periodic {
            true => sets::When::Every,
            false => sets::When::Waited,
        };
        load.sets[0].events = vec![sets::Event {
            when,
            ..sets::Event::with_wait(1, wait_ns)
        }];
        load.check().map_err(|invalid| invalid.what)
    };
    assert!(with(500, false).unwrap_err().contains("below 1us"));
    assert!(with(0, true).unwrap_err().contains("every 0s"));
    assert_eq!((with(0, false), with(1_000, true)), (Ok(()), Ok(())));
}

#[test]
fn threads_have_nice_values_processes_have_cgroups_and_guests_have_weights() {
    let key = |workers: &str, key: &str, value: u32| {
        let set = json!({"name": "C", "events": ["5 1ms"], key: value});
        let load = read(json!({ "workers": workers, "set": [set] })).unwrap();
        load.check().map_err(|invalid| invalid.key)
    };
    assert_eq!(key("guests", "weight", 512), Ok(()));
    assert_eq!(
        key("guests", "weight", 70_000),
        Err("set.0.weight".to_owned())
    );
    assert_eq!(key("guests", "cap", 101), Err("set.0.cap".to_owned()));
    assert_eq!(key("guests", "nice", 5), Err("set.0.nice".to_owned()));
    assert_eq!(
        key("threads", "weight", 512),
        Err("set.0.weight".to_owned())
    );
    assert_eq!(key("threads", "cap", 50), Err("set.0.cap".to_owned()));
    assert_eq!(key("processes", "weight", 512), Ok(()));
    assert_eq!(key("processes", "nice", 5), Ok(()));
    for wrong in [0, 10_001] {
        let found = key("processes", "weight", wrong);
        assert_eq!(found, Err("set.0.weight".to_owned()));
    }
    let both = json!({"name": "C", "events": ["5 1ms"], "weight": 200, "nice": 5});
    let both = read(json!({ "workers": "processes", "set": [both] })).unwrap();
    assert_eq!(both.check().unwrap_err().key, "set.0.nice");
    let quota = |workers: &str, quota: &str| {
        let set = json!({"name": "C", "events": ["5 1ms"], "quota": quota});
        let load = read(json!({ "workers": workers, "set": [set] }));
        load.and_then(|load| load.check())
            .map_err(|invalid| invalid.key)
    };
    assert_eq!(quota("processes", "50%"), Ok(()));
    assert_eq!(quota("processes", "0.5%"), Err("set.0.quota".to_owned()));
    assert_eq!(quota("threads", "50%"), Err("set.0.quota".to_owned()));
    let front = json!({"name": "front", "events": ["5 1ms"]});
    let back = json!({"name": "back", "events": ["5"], "after": "front"});
    let pipeline = read(json!({ "workers": "processes", "set": [front, back] })).unwrap();
    assert_eq!(pipeline.check().unwrap_err().key, "set.1.after");
}

#[test]
fn what_is_wrong_with_a_shape_is_said_at_its_place() {
    let of = |set: serde_json::Value| {
        let front = json!({"name": "front", "events": ["5 1ms"]});
        let load = read(json!({ "interval": "100ms", "set": [front, set] }));
        load.and_then(|load| load.check()).unwrap_err().key
    };
    let wait = json!({"name": "C", "events": ["5 1ms"], "after": "front"});
    assert_eq!(of(wait), "set.1.events");
    assert_eq!(of(json!({"name": "C", "events": ["5"]})), "set.1.events");
    let unknown = json!({"name": "C", "events": ["5"], "after": "back"});
    assert_eq!(of(unknown), "set.1.after");
    let fewer = json!({"name": "C", "events": ["5"], "after": "front", "count": 3});
    assert_eq!(of(fewer), "set.1.count");
    let half = json!({"name": "C", "events": ["5 1ms"], "on": "5ms"});
    assert_eq!(of(half), "set.1.on");
    let small = json!({"name": "C", "events": ["5 1ms"], "memory": "1KiB"});
    assert_eq!(of(small), "set.1.memory");
    let none = json!({"name": "C", "events": ["5 1ms"], "memory-percent": 5});
    assert_eq!(of(none), "set.1.memory-percent");
    let every = json!({"name": "C", "events": ["5 every 1ms"], "on": "5ms", "off": "5ms"});
    assert_eq!(of(every), "set.1.events");
    let more_than_a_cpu = json!({"name": "C", "events": ["3000 every 1ms"]});
    assert_eq!(of(more_than_a_cpu), "set.1.events");
    let together = json!({"name": "C", "events": ["600 every 1ms", "5x100 every 1ms"]});
    assert_eq!(of(together), "set.1.events");
    let all_of_it = json!({"set": [{"name": "C", "events": ["500 every 1ms", "5x100 every 1ms"]}]});
    assert_eq!(read(all_of_it).unwrap().check(), Ok(()));
}

#[test]
fn each_set_is_measured_alone_where_that_is_asked_for() {
    assert_eq!(burnwait().baselines(), []);
    let load = read(json!({
        "baselines": true,
        "set": [
            {"name": "front", "events": ["20 2ms"], "count": 4},
            {"name": "back", "events": ["10"], "after": "front", "count": 4},
            {"name": "C", "events": ["5 1ms"]},
        ],
    }))
    .unwrap();
    let found = load.baselines();
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["front", "C"]);
    let alone = KIND.work.open(found[0].1.params()).unwrap();
    assert_eq!(alone.check(), Ok(()));
    assert_eq!(alone.baselines(), []);
    let stored = serde_json::to_string(&found[0].1).unwrap();
    assert!(
        stored.contains("\"count\":1") && !stored.contains("\"C\""),
        "{stored}"
    );
}
