use super::*;

const SAMPLE: &str = r#"{"Input": {
    "WorkerPresets": {
        "A": {"Args": ["burnwait", "70", "200000"]},
        "B": {"Args": ["burnwait", "10", "300000", "burnwait", "20", "300000"]}},
    "SimpleMatrix": {"Schedulers": ["default", "batch"], "Workers": ["A", "B"], "Count": [1, 4]}},
    "WorkerType": 0, "RunConfig": {"Cpus": [0, 1]}}"#;

fn read(text: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.bench");
    std::fs::write(&path, text).unwrap();
    experiment_text(&path).map_err(|e| e.to_string())
}

fn table(text: &str) -> toml::Table {
    text.parse().unwrap()
}

#[test]
fn a_matrix_is_planned_as_the_tool_plans_it() {
    let table = table(&read(SAMPLE).unwrap());
    let names = |key: &str| -> Vec<String> {
        let all = table[key].as_array().unwrap().iter();
        all.map(|t| t["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("arm"), ["default", "batch"]);
    assert_eq!(names("workload"), ["A-baseline", "B-baseline", "A-B"]);
    let together = &table["workload"][2];
    assert_eq!(
        together["set"][1]["events"][1].as_str(),
        Some("20 300000ns")
    );
    assert_eq!(together["loads"].as_array().unwrap().len(), 2);
    assert_eq!(table["arm"][0]["cpus"].as_str(), Some("0,1"));
}

#[test]
fn runs_that_were_planned_are_repeated() {
    let run = |scheduler: &str, count: u32| {
        format!(
            r#"{{"Label": "x", "RuntimeSeconds": 3, "Scheduler": "{scheduler}", "WorkerSets":
             [{{"Params": {{"Args": ["burnwait", "70", "200000"]}}, "Count": {count}}}]}}"#
        )
    };
    let runs = [run("default", 1), run("scx_rusty", 1), run("default", 2)].join(",");
    let table = table(&read(&format!(r#"{{"Runs": [{runs}]}}"#)).unwrap());
    assert_eq!(table["arm"].as_array().unwrap().len(), 2);
    assert_eq!(table["arm"][1]["scheduler"].as_str(), Some("scx_rusty"));
    let workloads = table["workload"].as_array().unwrap();
    assert_eq!(workloads.len(), 2);
    assert_eq!(workloads[0]["duration"].as_str(), Some("3s"));
    assert_eq!(workloads[1]["loads"][0].as_integer(), Some(2));
}

#[test]
fn schedulers_of_xen_make_guests_of_the_workers() {
    let text = SAMPLE
        .replace("\"default\", \"batch\"", "\"credit\", \"credit2\"")
        .replace(
            "\"Cpus\": [0, 1]",
            "\"Cpus\": [1, 2], \"NumaDisable\": false",
        );
    let table = table(&read(&text).unwrap());
    let target = table["target"].as_table().unwrap();
    assert_eq!(target["kind"].as_str(), Some("xen"));
    // 4 of each of two presets, at 256 MiB, and dom0.
    assert_eq!(
        (target["cpus"].as_integer(), target["memory"].as_str()),
        (Some(3), Some("3G"))
    );
    let pool = &table["arm"][1]["hypervisor-scheduler"];
    assert_eq!(pool["scheduler"].as_str(), Some("credit2"));
    assert_eq!(pool["cpus"].as_str(), Some("1,2"));
    assert!(table["arm"][1].get("cpus").is_none());
    assert!(pool.get("numa-placement").is_none());
    assert_eq!(table["workload"][2]["workers"].as_str(), Some("guests"));
}

#[test]
fn a_file_that_the_tool_has_written_is_read_as_the_one_it_was_given() {
    let written = SAMPLE
        .replace(
            "\"burnwait\", \"70\"",
            "\"kHZ\", \"2261062\", \"burnwait\", \"70\"",
        )
        .replace("[1, 4]", "[1, 4], \"NumaDisable\": null");
    assert_eq!(read(&written), read(SAMPLE));
    let none = SAMPLE.replace("[\"default\", \"batch\"]", "null");
    assert_eq!(
        table(&read(&none).unwrap())["arm"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // One worker of a lone preset is its baseline, and not planned twice.
    let lone = SAMPLE.replace("[\"A\", \"B\"]", "[\"A\"]");
    let table = table(&read(&lone).unwrap());
    let loads = |index: usize| table["workload"][index]["loads"].as_array().unwrap().len();
    assert_eq!((loads(0), loads(1)), (1, 1));
}

#[test]
fn what_is_not_read_is_refused_and_not_passed_over() {
    let run = |more: &str| {
        format!(
            r#"{{"Runs": [{{"WorkerSets": [{{"Params": {{"Args": ["burnwait", "70", "200000"]}},
            "Count": 1}}], {more}}}]}}"#
        )
    };
    let error = read(&run(r#""SoftAffinity": "1-2""#)).unwrap_err();
    assert!(error.contains("SoftAffinity `1-2`"), "{error}");
    assert!(read(&run(r#""SoftAffinity": """#)).is_ok());
}

#[test]
fn runs_have_their_own_cpus_and_pool_which_are_the_same_for_all() {
    let runs = |of_all: &str, places: &[&str]| {
        let sets =
            r#""WorkerSets": [{"Params": {"Args": ["burnwait", "70", "200000"]}, "Count": 1}]"#;
        let runs = places
            .iter()
            .map(|place| format!(r#"{{{sets}, "Scheduler": "credit2", {place}}}"#));
        let runs: Vec<String> = runs.collect();
        let runs = runs.join(",");
        read(&format!(
            r#"{{"RunConfig": {{{of_all}}}, "Runs": [{runs}]}}"#
        ))
    };
    let of_all = r#""Cpus": [2, 3], "Pool": "lab""#;
    let pool = |text: &str| {
        let pool = &table(text)["arm"][0]["hypervisor-scheduler"];
        let part = |name: &str| {
            pool.get(name)
                .and_then(toml::Value::as_str)
                .map(str::to_owned)
        };
        (part("cpus"), part("pool"))
    };
    let some = |text: &str| Some(text.to_owned());
    let own = runs(
        of_all,
        &[r#""Cpus": [4, 5]"#, r#""RunConfig": {"Cpus": [4, 5]}"#],
    )
    .unwrap();
    assert_eq!(pool(&own), (some("4,5"), some("lab")));
    let own = runs("", &[r#""Cpus": [1], "Pool": "mine""#]).unwrap();
    assert_eq!(pool(&own), (some("1"), some("mine")));
    let of_file = runs(of_all, &[r#""Cpus": null, "Pool": """#]).unwrap();
    assert_eq!(pool(&of_file), (some("2,3"), some("lab")));
    for place in [
        r#""Cpus": [4]"#,
        r#""Pool": "mine""#,
        r#""RunConfig": {"Cpus": [4]}"#,
    ] {
        let error = runs(of_all, &[r#""Cpus": [2, 3]"#, place]).unwrap_err();
        assert!(error.contains("a run has the Cpus [2, 3]"), "{error}");
    }
}

#[test]
fn guests_need_a_scheduler_of_xen() {
    let guests = SAMPLE.replace("\"WorkerType\": 0", "\"WorkerType\": 1");
    for names in ["null", "[\"default\"]", "[]"] {
        let text = guests.replace("[\"default\", \"batch\"]", names);
        let error = read(&text).unwrap_err();
        assert!(error.contains("guests of Xen"), "{names}: {error}");
    }
    let named = guests.replace("\"default\", \"batch\"", "\"credit\"");
    let table = table(&read(&named).unwrap());
    assert_eq!(table["target"]["kind"].as_str(), Some("xen"));
}

#[test]
fn arms_of_xen_are_with_and_without_nodes_of_the_toolstacks_choice() {
    let text = SAMPLE
        .replace("\"default\", \"batch\"", "\"credit\", \"credit2\"")
        .replace("[1, 4]", "[1, 4], \"NumaDisable\": [false, true]");
    let table = table(&read(&text).unwrap());
    let arms = table["arm"].as_array().unwrap().iter();
    let arms: Vec<(&str, Option<bool>)> = arms
        .map(|arm| {
            let off = arm["hypervisor-scheduler"].get("numa-placement");
            (
                arm["name"].as_str().unwrap(),
                off.and_then(toml::Value::as_bool),
            )
        })
        .collect();
    let target = &table["target"];
    assert_eq!(target["cpus"].as_integer(), Some(2));
    assert_eq!(target["topology"]["numa-nodes"].as_integer(), Some(2));
    let off = Some(false);
    assert_eq!(
        arms,
        [
            ("credit", None),
            ("credit NumaOff", off),
            ("credit2", None),
            ("credit2 NumaOff", off)
        ]
    );
}

#[test]
fn bad_files_are_refused_with_what_is_wrong() {
    let with = |from: &str, to: &str| read(&SAMPLE.replace(from, to)).unwrap_err();
    let truncated = read(&SAMPLE[..SAMPLE.len() / 2]).unwrap_err();
    assert!(truncated.contains("line"), "{truncated}");
    for (from, to, says) in [
        ("\"batch\"", "\"credit2\"", "and `default`, which is not"),
        ("\"batch\"", "\"arinc653\"", "no scheduler"),
        ("\"batch\"", "\"fast\"", "no scheduler"),
        ("\"200000\"", "\"200\"", "below what timers resolve"),
        ("[1, 4]", "[1, 0]", "cannot be started"),
        ("[1, 4]", "[1000000]", "cannot be started"),
        ("[\"A\", \"B\"]", "[\"A\", \"C\"]", "not in WorkerPresets"),
        ("\"70\", \"200000\"", "\"70\"", "end within an event"),
        ("\"burnwait\", \"70\"", "\"burn\", \"70\"", "is no event"),
        ("[1, 4]", "[1, 4], \"NumaDisable\": [true]", "NumaDisable"),
    ] {
        let error = with(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
    assert!(read("{}").unwrap_err().contains("neither Runs nor"));
}

#[test]
fn a_small_file_asks_for_no_large_experiment() {
    let list = |text: &str, count: usize| vec![text; count].join(",");
    let matrix = |presets: &str, workers: &str, more: &str| {
        read(&format!(
            r#"{{"Input": {{"WorkerPresets": {{{presets}}}, "SimpleMatrix": {{"Workers": [{workers}],
            "Count": [1], {more} "Schedulers": ["default"]}}}}}}"#
        ))
    };
    let one = r#""A": {"Args": ["burnwait", "70", "200000"]}"#;
    assert!(matrix(one, r#""A""#, "").is_ok());
    // The same worker is a worker for each time that it is named.
    let error = matrix(one, &list(r#""A""#, 400_000), "").unwrap_err();
    assert!(error.contains("too long"), "{error}");
    let words = list(r#""burnwait", "70", "200000""#, 100_000);
    let many_words = format!(r#""A": {{"Args": [{words}]}}"#);
    let error = matrix(&many_words, &list(r#""A""#, 100), "").unwrap_err();
    assert!(error.contains("too long"), "{error}");
    let presets: Vec<String> = (0..1001)
        .map(|n| one.replace('A', &n.to_string()))
        .collect();
    let error = matrix(&presets.join(","), r#""1""#, "").unwrap_err();
    assert!(error.contains("more than 1000 WorkerPresets"), "{error}");
    // Millions of pairs of a scheduler with or without nodes are two.
    let off = format!(r#""NumaDisable": [{}],"#, list("false", 100_000));
    assert_eq!(matrix(one, r#""A""#, &off), matrix(one, r#""A""#, ""));
}

#[test]
fn runs_of_more_cells_than_an_experiment_has_are_refused() {
    let run = |kops: usize| {
        format!(
            r#"{{"WorkerSets": [{{"Params": {{"Args": ["burnwait", "{kops}", "200000"]}}, "Count": 1}}]}}"#
        )
    };
    let all = |runs: Vec<String>| read(&format!(r#"{{"Runs": [{}]}}"#, runs.join(",")));
    let error = all((1..5_000).map(run).collect()).unwrap_err();
    assert!(error.contains("more than 1000 cells"), "{error}");
    assert!(
        all(vec![run(7); 5_000]).is_ok(),
        "the same cell again and again"
    );
}
