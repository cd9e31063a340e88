//! Loads that reach their services over a network: the target is in another one, and the cable between takes
//! its time.

use results::ResultSet;
use tests::{Bench, Cable, beside_others, expect_code, schedlab, stderr, stdout};

/// Time that a packet takes from one end to the other.
const ONE_WAY_S: f64 = 0.010;
const ROUND_TRIP_NS: f64 = 2e9 * ONE_WAY_S;

/// An experiment whose target is at the other end, with loads on this one.
fn experiment(bench: &Bench, cable: &Cable, address: &str, workloads: &str) -> String {
    let state = format!("SCHEDLAB_STATE_DIR={}", bench.path("far").display());
    let command = [cable.way_in(), vec!["env".to_owned(), state]].concat();
    let text = format!(
        "[target]\nkind = \"exec\"\ncommand = {command:?}\naddress = \"{address}\"\ncache = \"{}\"\n\
         [[arm]]\nname = \"default\"\n\
         {workloads}[stop]\nmin-blocks = 1\nmax-blocks = 1\n",
        bench.path("cache").display()
    );
    bench.file("network.toml", &text)
}

/// A load on this end that asks schedlab's own server at the other.
const HTTP: &str = r#"
[[workload]]
kind = "http"
loads = ["100/s"]
duration = "500ms"
warmup = "200ms"
connections = 8
metrics = ["request_p50"]
load-on = "controller"
load-way = "network"
"#;

/// A command on this end that connects to a service at the other, which listens at `AT`. The last service is
/// asked by nobody, and stays on loopback.
const COMMAND: &str = r#"
[[workload]]
kind = "command"
command = ["bash", "-c", """
  exec 3<>/dev/tcp/{target.address}/{api.port}
  printf 'GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3
  head -n 1 <&3"""]
load-on = "controller"
load-way = "network"
[[workload.service]]
name = "api"
command = ["SCHEDLAB", "serve", "--at", "AT:{port}"]
ports = ["http"]
[[workload.service]]
name = "store"
command = ["SCHEDLAB", "serve", "--at", "127.0.0.1:{port}"]
ports = ["main"]
"#;

fn command(at: &str) -> String {
    let schedlab = schedlab().display().to_string();
    COMMAND
        .replace("AT:", &format!("{at}:"))
        .replace("SCHEDLAB", &schedlab)
}

#[test]
fn a_load_asks_over_the_network_and_its_latency_has_the_length_of_the_cable() {
    let _beside = beside_others();
    let Some(cable) = Cable::lay(ONE_WAY_S) else {
        return;
    };
    let bench = Bench::default();
    let workloads = HTTP.to_owned() + &command("{target.address}");
    let file = experiment(&bench, &cable, &cable.address(), &workloads);
    let said = bench.run(&["run", &file, "-o", "out", "--quiet"]);
    expect_code(&said, 0);
    let way = format!("over the network to {}", cable.address());
    let text = stdout(&said);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(&way), "{text}");
    let set = ResultSet::read(&bench.path("out")).expect("results");
    assert_eq!(set.system.facts["load.way"], way);
    assert_eq!(set.trials.len(), 2);
    for trial in set.trials.iter().map(|stored| &stored.trial) {
        assert!(trial.is_ok(), "{:?}", trial.result.state);
        let all = &trial.result.metrics;
        let is_as_long = |name: &str| {
            let mut found = all.iter().filter(|m| m.metric == name);
            found.any(|found| found.value >= ROUND_TRIP_NS)
        };
        assert!(is_as_long("network_round_trip"), "{all:?}");
        let is_http = trial.cell.starts_with("http");
        assert!(!is_http || is_as_long("request_p50"), "{all:?}");
    }
}

#[test]
fn what_is_not_reached_over_the_network_is_told_before_the_first_trial() {
    let _beside = beside_others();
    let Some(cable) = Cable::lay(0.0) else {
        return;
    };
    let bench = Bench::default();
    let refused = |subcommand: &[&str], address: &str, workload: &str, why: &[&str]| {
        let file = experiment(&bench, &cable, address, workload);
        let said = bench.run(&[subcommand, &[file.as_str()]].concat());
        expect_code(&said, 3);
        let said = stderr(&said) + &stdout(&said);
        assert!(why.iter().all(|why| said.contains(why)), "{said}");
        assert!(said.contains(address), "{said}");
    };
    refused(
        &["check", "--yes"],
        "192.0.2.77",
        HTTP,
        &["cannot listen at", "ip address"],
    );
    let run = ["run", "-o", "out", "--quiet"];
    let at_home = command("127.0.0.1");
    refused(
        &run,
        &cable.address(),
        &at_home,
        &["api is not reached", "{target.address}"],
    );
    let here = cable.address();
    cable.cut();
    refused(
        &["check", "--yes"],
        &here,
        HTTP,
        &["does not reach", "firewall"],
    );
    let tunnel = HTTP.replace("load-way = \"network\"\n", "");
    let file = experiment(&bench, &cable, &cable.address(), &tunnel);
    let said = bench.run(&["check", &file, "--yes"]);
    expect_code(&said, 3);
    assert!(
        stderr(&said).contains("no ports are forwarded"),
        "{}",
        stderr(&said)
    );
}
