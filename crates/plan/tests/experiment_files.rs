//! Experiment files: what is right is understood, what is wrong is shown where it is.

mod named;

use miette::Diagnostic;
use model::{Class, Kind, Load, TargetSpec};
use named::parse_experiment;
use schedule::plan_blocks;
use std::collections::BTreeSet;
use vm::VmSpec;

const WHOLE: &str = r#"
name = "bpfland-or-eevdf"
question = "Does scx_bpfland cut wakeup tails?"
seed = 7
aa = true

[target]
kind = "vm"
kernel = "debian:sid"
cpus = 2
memory = "2G"

[[arm]]
name = "eevdf"
[[arm]]
name = "bpfland"
scheduler = "scx_bpfland"
args = ["--slice-us", "5000"]
[[arm]]
name = "short-slice"
tunables = { base_slice = "0.3ms", autogroup = false }
[[arm]]
name = "deadline"
policy = { class = "deadline", runtime = "2ms", period = "5ms" }

[[workload]]
kind = "wakeup"
loads = ["50%", 4, "2k/s"]
duration = "5s"
warmup = "1s"
[[workload]]
kind = "hackbench"
loads = [1, 4]
[[workload]]
kind = "command"
command = ["make", "-j8"]

[stop]
budget = "20m"
confidence = 0.95
smallest-effect = "2%"
max-blocks = 40
"#;

fn wrong(text: &str) -> (String, String, Option<usize>) {
    let error = parse_experiment("x.toml", text).expect_err("is wrong");
    let offset = error
        .labels()
        .and_then(|mut labels| labels.next())
        .map(|label| label.offset());
    let help = error.help().map(|h| h.to_string()).unwrap_or_default();
    (error.to_string(), help, offset)
}

#[test]
fn a_whole_file_is_understood() {
    let experiment = parse_experiment("x.toml", WHOLE).expect("is right");
    assert_eq!(experiment.seed, 7);
    assert_eq!(experiment.arms.len(), 5, "four and the A/A arm");
    assert_eq!(experiment.aa_arm.as_deref(), Some("A/A"));
    assert_eq!(experiment.stop.budget_ns, Some(1_200_000_000_000));
    let vm = VmSpec::from_target(&experiment.target).expect("the target is a vm");
    assert_eq!((vm.cpus, vm.memory_bytes), (2, 2 << 30));
    assert_eq!(experiment.arms[2].tunables["autogroup"], "off");
    let policy = experiment.arms[3].policy.as_ref().expect("has one");
    assert_eq!(
        (policy.class, policy.deadline_ns),
        (Class::Deadline, Some(5_000_000))
    );
    assert_eq!(experiment.workloads[0].loads[2], Load::RatePerSec(2000.0));
    let command = &experiment.workloads[2].kind;
    assert_eq!(command.params()["argv"][0], "make");
}

#[test]
fn an_unknown_key_is_answered_with_its_place_and_the_nearest() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"wakeup\"\nduratoin = \"5s\"\n";
    let (message, help, offset) = wrong(text);
    assert!(message.contains("duratoin"), "{message}");
    assert!(help.contains("`duration`"), "{help}");
    assert_eq!(offset, text.find("duratoin"));
}

#[test]
#[allow(clippy::too_many_lines)] // A table of cases.
fn a_key_of_the_kind_is_known_and_shown_where_it_is() {
    let arm = "[[arm]]\nname = \"a\"\n";
    for (keys, said, helped, at) in [
        (
            "kind = \"wakeup\"\nsleeep = \"1ms\"",
            "no key `sleeep`",
            "`sleep`",
            "sleeep",
        ),
        (
            "kind = \"wakeup\"\nsleep = \"1 parsec\"",
            "1 parsec",
            "",
            "\"1 parsec\"",
        ),
        (
            "kind = \"wakeup\"\nconnections = 2",
            "no key `connections`",
            "",
            "connections",
        ),
        (
            "kind = \"http\"\nconections = 2",
            "there is no key",
            "`connections`",
            "conections",
        ),
        (
            "kind = \"hackbench\"\nfds = 0",
            "`fds` must be at least 1",
            "",
            "0",
        ),
        (
            "kind = \"schbench\"\nargs = [\"-n\", 1]",
            "the number 1 stands where a text",
            "",
            "1]",
        ),
        (
            "kind = \"command\"\ncomand = [\"make\"]",
            "there is no key",
            "`command`",
            "comand",
        ),
        (
            "kind = \"command\"\ncommand = [\"\"]",
            "needs a program",
            "",
            "[\"\"]",
        ),
        (
            "kind = \"memcached\"\nplacment = []",
            "there is no key",
            "`placement`",
            "placment",
        ),
    ] {
        let text = format!("{arm}[[workload]]\n{keys}\n");
        let (message, help, offset) = wrong(&text);
        assert!(message.contains(said), "{message}");
        assert!(help.contains(helped), "{message}: {help}");
        assert_eq!(offset, text.find(at), "{text}{message}");
    }
}

#[test]
#[allow(clippy::too_many_lines)] // A table of cases.
fn a_misspelt_word_is_answered_with_the_nearest_wherever_it_stands() {
    let arm = "[[arm]]\nname = \"a\"\n";
    let http = "[[workload]]\nkind = \"http\"\n";
    let service = "[[workload.service]]\nname = \"x\"\ncommand = [\"x\"]\n";
    for (before, wrong_line, right) in [
        (arm, "policy = { class = \"fif\" }", "fifo"),
        (arm, "to = \"sever\"", "server"),
        ("[[workload]]\n", "kind = \"wakeupp\"", "wakeup"),
        (http, "arrivals = \"poison\"", "poisson"),
        (http, "antagonists = \"eech\"", "each"),
        (http, "load-on = \"contoller\"", "controller"),
        (http, "load-way = \"netwrok\"", "network"),
        (
            http,
            "loads = { find = \"mex\", slo = \"p95 < 1ms\" }",
            "max",
        ),
        (
            &format!("{http}{service}"),
            "stop-signal = \"temr\"",
            "TERM",
        ),
        (
            &format!("{http}[workload.server]\n"),
            "kind = \"nginxx\"",
            "nginx",
        ),
        (
            &format!("{http}[[workload.antagonist]]\n"),
            "kind = \"spiner\"",
            "spinner",
        ),
        (
            "[[workload]]\nkind = \"netperf\"\n",
            "test = \"tcp_rr\"",
            "TCP_RR",
        ),
        (
            "[[workload]]\nkind = \"command\"\ncommand = [\"x\"]\n[[workload.metric]]\n\
             name = \"x\"\nregex = \"(?<v>x)\"\n",
            "better = \"highr\"",
            "higher",
        ),
        ("[target]\n", "kind = \"lcal\"", "local"),
    ] {
        let (message, help, offset) = wrong(&format!("{before}{wrong_line}\n"));
        assert_eq!(help, format!("did you mean `{right}`?"), "{message}");
        for of_serde in ["unknown", "expected", "variant"] {
            assert!(!message.contains(of_serde), "{message}");
        }
        let line = before.len()..before.len() + wrong_line.len();
        assert!(
            offset.is_some_and(|offset| line.contains(&offset)),
            "{offset:?}: {message}"
        );
    }
}

#[test]
fn a_word_that_is_like_no_other_is_answered_with_all() {
    let (message, help, _) = wrong("[[workload]]\nkind = \"http\"\narrivals = \"zzz\"\n");
    assert_eq!(message, "the word `zzz` has no meaning here");
    assert!(help.starts_with("write one of `poisson`"), "{help}");
    let (message, ..) = wrong("seed = \"seven\"\n");
    let expected = "the text \"seven\" stands where a whole number from 0 on is expected";
    assert_eq!(message, expected);
}

#[test]
fn a_command_on_the_command_line_is_asked_for_after_two_dashes() {
    let error = named::parse_workload("command").expect_err("has none");
    let help = error.help().expect("helps").to_string();
    assert!(help.contains("-- make"), "{help}");
}

#[test]
fn an_unknown_key_at_the_top_is_answered_too() {
    let (message, help, _) = wrong("quesiton = \"?\"\n");
    assert!(message.contains("quesiton"), "{message}");
    assert!(help.contains("`question`"), "{help}");
}

#[test]
fn a_wrong_unit_is_shown_where_it_is() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"wakeup\"\nduration = \"5 parsecs\"\n";
    let (message, _, offset) = wrong(text);
    assert!(message.contains("5 parsecs"), "{message}");
    assert_eq!(offset, text.find("\"5 parsecs\""));
}

#[test]
fn a_metric_that_the_workload_does_not_measure_is_shown_where_it_is() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"hackbench\"\n\
                metrics = [\"hackbench_time\", \"hackbench_tiem\"]\n";
    let (message, help, offset) = wrong(text);
    assert!(message.contains("no metric `hackbench_tiem`"), "{message}");
    assert!(help.contains("`hackbench_time`"), "{help}");
    assert_eq!(offset, text.find("\"hackbench_tiem\""));
}

#[test]
fn metrics_that_decide_are_those_of_the_kind_unless_the_file_names_some() {
    let search = "loads = { find = \"max\", slo = \"p99 < 1ms\" }";
    for (workload, expected) in [
        ("kind = \"messaging\"", "hackbench_time"),
        ("kind = \"http\"", "request_p99"),
        (
            "kind = \"http\"\nmetrics = [\"service_p50\"]",
            "service_p50",
        ),
        (&format!("kind = \"http\"\n{search}"), "slo_rate"),
    ] {
        let text = format!("[[arm]]\nname = \"a\"\n[[workload]]\n{workload}\n");
        let experiment = parse_experiment("x.toml", &text).expect("is right");
        assert_eq!(experiment.workloads[0].metrics, [expected], "{workload}");
    }
}

#[test]
fn one_tunable_by_both_of_its_names_is_refused() {
    let tunables = "tunables = { base_slice = \"1ms\", base_slice_ns = \"2ms\" }";
    let (message, _, offset) = wrong(&format!("[[arm]]\nname = \"a\"\n{tunables}\n"));
    let both = "`base_slice=1ms` and `base_slice=2ms`";
    assert!(message.contains(both), "{message}");
    assert_eq!(offset, Some(30));
}

#[test]
fn two_arms_of_one_name_are_refused() {
    let (message, _, offset) = wrong("[[arm]]\nname = \"a\"\n[[arm]]\nname = \"a\"\n");
    assert!(message.contains("two arms"), "{message}");
    assert_eq!(offset, Some(34));
}

#[test]
fn what_makes_no_experiment_is_refused() {
    let arm = "[[arm]]\nname = \"a\"\n";
    let wakeup = "[[workload]]\nkind = \"wakeup\"\n";
    for (text, expected) in [
        (format!("{arm}{wakeup}loads = [0]\n"), "load of 0"),
        (format!("{arm}{wakeup}loads = []\n"), "no loads"),
        (format!("{arm}{wakeup}{wakeup}"), "two workloads"),
        (
            format!("{arm}{wakeup}loads = [2, 2]\n"),
            "two cells `wakeup 2`",
        ),
        (
            format!("{arm}[[workload]]\nkind = \"wakeupp\"\n"),
            "no workload `wakeupp`",
        ),
        (format!("{arm}[[workload]]\n"), "no kind"),
        (arm.to_owned(), "no workload"),
        (wakeup.to_owned(), "no arm"),
        (
            format!("{arm}kernel = \"debian:sid\"\n{wakeup}"),
            "machine that boots it",
        ),
        (
            format!("[stop]\nconfidence = 1.5\n{arm}{wakeup}"),
            "confidence",
        ),
        (
            format!("[stop]\nmax-blocks = 0\n{arm}{wakeup}"),
            "max-blocks",
        ),
        (
            format!("{arm}policy = {{ class = \"fifo\", priority = 100 }}\n{wakeup}"),
            "out of range",
        ),
        (
            format!("{arm}args = [\"x\"]\n{wakeup}"),
            "without a `scheduler`",
        ),
        (
            format!("[target]\nkind = \"moon\"\n{arm}{wakeup}"),
            "no target `moon`",
        ),
    ] {
        let (message, ..) = wrong(&text);
        assert!(message.contains(expected), "{text}\n→ {message}");
    }
}

#[test]
fn every_block_has_each_arm_of_each_cell_once_and_the_seed_decides_the_order() {
    let experiment = parse_experiment("x.toml", WHOLE).expect("is right");
    let first = plan_blocks(&experiment);
    assert_eq!(
        first,
        plan_blocks(&experiment),
        "the same seed gives the same plan"
    );
    let per_block = first.cells.len() * experiment.arms.len();
    for block in first.trials.chunks(per_block) {
        let places: BTreeSet<_> = block.iter().map(|t| (t.cell, t.arm)).collect();
        assert_eq!(places.len(), per_block);
        assert!(block.iter().all(|t| t.block == block[0].block));
    }
    let other = plan_blocks(&model::Experiment {
        seed: 8,
        ..experiment
    });
    assert_ne!(first.trials, other.trials);
}

#[test]
fn arms_with_kernels_of_their_own_are_grouped_by_boot_within_a_block() {
    let text = "[target]\nkind=\"vm\"\nkernel=\"debian:sid\"\n[[arm]]\nname=\"a\"\n[[arm]]\nname=\"b\"\nkernel=\"debian:trixie\"\n\
                [[arm]]\nname=\"c\"\n[[workload]]\nkind=\"wakeup\"\nloads=[1,2]\n";
    let experiment = parse_experiment("x.toml", text).expect("is right");
    let plan = plan_blocks(&experiment);
    for block in plan.trials.chunks(6) {
        let kernels: Vec<bool> = block.iter().map(|t| t.arm == 1).collect();
        let switches = kernels.windows(2).filter(|w| w[0] != w[1]).count();
        assert_eq!(switches, 1, "{kernels:?}");
    }
}

#[test]
fn a_snapshot_has_a_name_that_can_be_one() {
    let file = |reset: &str| {
        format!(
            "[[arm]]\nname=\"a\"\n[[workload]]\nkind=\"wakeup\"\n[target]\nkind=\"vm\"\nkernel=\"debian:sid\"\n\
             root=\"image:a.squashfs\"\nreset={reset}\n"
        )
    };
    let named = parse_experiment("x.toml", &file("{ snapshot = \"warm-1\" }")).expect("is right");
    let target = serde_json::to_value(&named.target).expect("JSON");
    assert_eq!(
        (&target["reset"], &target["snapshot"]),
        (&"snapshot".into(), &"warm-1".into())
    );
    let plain = parse_experiment("x.toml", &file("\"snapshot\"")).expect("is right");
    assert_eq!(plain.target.reset(), named.target.reset());
    let (message, help, _) = wrong(&file("{ snapshot = \"../warm\" }"));
    assert!(message.contains("this is not a name"), "{message}");
    assert!(help.contains("letters, digits"), "{help}");
    let (message, _, offset) = wrong(&file("{ snap = \"warm\" }"));
    assert!(message.contains("there is no key `snap` here"), "{message}");
    assert!(offset.is_some());
    let (message, ..) = wrong(&file("7"));
    assert!(message.contains("{ snapshot = \"NAME\" }"), "{message}");
    let (message, ..) = wrong(&file("\"daily\""));
    assert!(
        message.contains("the word `daily` has no meaning here"),
        "{message}"
    );
}

/// Two kernels, and two workloads of two loads each, on a guest that is started anew so often.
fn reset(reset: &str, top: &str) -> model::Experiment {
    let text = format!(
        "{top}[target]\nkind=\"vm\"\nkernel=\"debian:sid\"\nreset=\"{reset}\"\n[[arm]]\nname=\"a\"\n\
         [[arm]]\nname=\"b\"\nkernel=\"debian:trixie\"\n[[workload]]\nkind=\"wakeup\"\nloads=[1,2]\n\
         [[workload]]\nkind=\"hackbench\"\nloads=[1,2]\n"
    );
    parse_experiment("x.toml", &text).expect("is right")
}

#[test]
fn cells_of_a_workload_are_neighbours_where_the_machine_is_started_anew_for_it() {
    let experiment = reset("workload", "");
    let plan = plan_blocks(&experiment);
    for boot in plan.trials.chunks(4) {
        let workloads: Vec<usize> = boot.iter().map(|t| plan.cells[t.cell].workload).collect();
        let switches = workloads.windows(2).filter(|w| w[0] != w[1]).count();
        assert_eq!(switches, 1, "{workloads:?}");
    }
}

#[test]
fn the_guess_of_a_block_counts_starts_of_the_machine_and_pauses() {
    let between = |experiment: &model::Experiment| {
        let between = schedule::between_trials(experiment, &plan_blocks(experiment));
        (between.boots, between.pauses)
    };
    let boots = |of: &str| between(&reset(of, "")).0;
    assert_eq!(
        ["none", "block", "workload", "trial"].map(boots),
        [2, 2, 4, 8]
    );
    let with = reset("block", "pause = \"30s\"\n");
    assert_eq!(between(&with), (2, 8));
    let block_ns = |experiment| schedule::block_ns(experiment, &plan_blocks(experiment));
    let without = reset("block", "");
    assert_eq!(block_ns(&with) - block_ns(&without), 8 * 30_000_000_000);
    let more = block_ns(&reset("workload", "")) - block_ns(&without);
    assert_eq!(more, 2 * 7_000_000_000);
}

#[test]
fn restarts_and_pauses_that_cannot_be_are_refused_where_they_are() {
    let file = |top: &str, target: &str| {
        format!(
            "{top}[[arm]]\nname=\"a\"\n[[workload]]\nkind=\"wakeup\"\n{target}\n[stop]\nbudget=\"1m\"\n"
        )
    };
    let local = file("", "[target]\nkind=\"local\"\nreset=\"workload\"");
    let (message, help, offset) = wrong(&local);
    assert!(message.contains("is not restarted"), "{message}");
    assert!(help.contains("reboots = \"auto\""), "{help}");
    assert_eq!(offset, local.find("\"workload\""));
    let (message, help, _) = wrong(&file(
        "",
        "[target]\nkind=\"ssh\"\nhost=\"h\"\nreboots=\"kexec\"\nreset=\"snapshot\"",
    ));
    assert!(message.contains("goes on from no snapshot"), "{message}");
    assert!(help.contains("reset = \"workload\""), "{help}");
    let virtual_time =
        "[target]\nkind=\"vm\"\nkernel=\"debian:sid\"\nclock=\"virtual\"\nreset=\"workload\"";
    let (message, ..) = wrong(&file("", virtual_time));
    assert!(message.contains("has a boot for each trial"), "{message}");
    let long = file("pause = \"2m\"\n", "");
    let (message, help, offset) = wrong(&long);
    assert!(
        message.contains("a pause of 2m leaves nothing of a budget of 1m"),
        "{message}"
    );
    assert!(help.contains("a shorter pause"), "{help}");
    assert_eq!(offset, long.find("\"2m\""));
}

const SERVICE: &str = r#"
[[arm]]
name = "default"
[[workload]]
kind = "memcached"
loads = ["1k/s", "5k/s"]
gets = "90%"
value-size = "16B-1KiB"
load-cpus = "1"
[workload.server]
kind = "memcached"
threads = 2
cpus = "0"
weight = 200
[[workload.antagonist]]
kind = "stress-ng"
args = ["--cpu", "1"]
cpus = "0"
nice = 19
[[workload.antagonist]]
kind = "spinner"
"#;

#[test]
fn a_service_has_a_server_and_antagonists_with_their_places() {
    let experiment = parse_experiment("x.toml", SERVICE).expect("is right");
    let workload = &experiment.workloads[0];
    let params = workload.kind.params();
    assert_eq!(
        (&params["gets_percent"], &params["keys"]),
        (&90.0.into(), &10_000.into())
    );
    let client = workload.client.as_ref().expect("a client");
    assert_eq!(client.load_cpus.as_deref(), Some("1"));
    let server = workload.server.as_ref().expect("a server");
    assert_eq!(server.program.name(), "memcached");
    assert_eq!(server.placement.weight, Some(200));
    let names: Vec<&str> = workload.antagonists.iter().map(|a| &*a.name).collect();
    assert_eq!(names, ["stress-ng", "spinner"]);
    assert_eq!(workload.antagonists[0].placement.nice, Some(19));
}

#[test]
fn a_load_over_the_network_asks_no_service_at_the_loopback_address() {
    let file = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"http\"\nloads = [\"500/s\"]\nurl = \"http://127.0.0.1:{api.port}/\"\n\
                load-on = \"controller\"\nload-way = \"network\"\n[[workload.service]]\nname = \"api\"\n\
                command = [\"api\", \"{target.address}:{port}\"]\nports = [\"http\"]\n";
    assert!(wrong(file).0.contains("127.0.0.1 is the controller"));
    let tunnel = file.replace("load-way = \"network\"\n", "");
    assert!(plan::parse_experiment("x.toml", &tunnel).is_ok());
}

#[test]
fn what_makes_no_service_is_refused() {
    let wrong_of = |from: &str, to: &str| {
        assert!(SERVICE.contains(from));
        wrong(&SERVICE.replace(from, to)).0
    };
    assert!(wrong_of("\"1k/s\"", "4").contains("not a rate"));
    assert!(wrong_of("cpus = \"0\"", "cpus = \"zero\"").contains("list of CPUs"));
    assert!(wrong_of("weight = 200", "weight = 0").contains("1 to 10000"));
    assert!(wrong_of("weight = 200", "wieght = 200").contains("wieght"));
    assert!(
        wrong_of(
            "kind = \"spinner\"",
            "kind = \"stress-ng\"\nargs = [\"-c1\"]"
        )
        .contains("two")
    );
    assert!(wrong_of("load-cpus = \"1\"", "address = \"127.0.0.1\"").contains("elsewhere"));
    assert!(wrong_of("load-cpus = \"1\"", "load-way = \"network\"").contains("needs no way"));
    assert!(wrong_of("16B-1KiB", "big").contains("not a size"));
    assert!(wrong_of("threads = 2", "ready = { path = \"/\" }").contains("no `ready`"));
}

#[test]
fn a_service_is_spread_over_its_antagonists_and_placements() {
    let text = SERVICE.replacen(
        "kind = \"memcached\"\n",
        "kind = \"memcached\"\nantagonists = \"each\"\n",
        1,
    );
    let text = text.replacen(
        "[workload.server]",
        "[[workload.placement]]\nname = \"apart\"\nserver-cpus = \"50%-100%\"\n\
         [[workload.placement]]\nname = \"shared\"\nload-cpus = \"0\"\n[workload.server]",
        1,
    );
    let experiment = parse_experiment("x.toml", &text).expect("is right");
    let names: Vec<&str> = experiment.workloads.iter().map(|w| &*w.name).collect();
    assert_eq!(
        names,
        [
            "memcached apart",
            "memcached apart + stress-ng",
            "memcached apart + spinner",
            "memcached shared",
            "memcached shared + stress-ng",
            "memcached shared + spinner",
        ]
    );
    let beside = &experiment.workloads[1];
    let variant = beside.variant.as_ref().expect("a variant");
    assert_eq!(variant.of, "memcached");
    assert_eq!(variant.placement.as_deref(), Some("apart"));
    assert_eq!(variant.beside.as_deref(), Some("stress-ng"));
    assert_eq!(beside.antagonists.len(), 1);
    let server = beside.server.as_ref().expect("a server");
    assert_eq!(server.placement.cpus.as_deref(), Some("50%-100%"));
    let shared = experiment.workloads[3].client.as_ref().expect("a client");
    assert_eq!(shared.load_cpus.as_deref(), Some("0"));
}

#[test]
fn a_lone_service_has_nothing_to_be_beside() {
    let (message, help, _) =
        wrong("[[arm]]\nname = \"x\"\n[[workload]]\nkind = \"wakeup\"\nantagonists = \"each\"\n");
    assert!(message.contains("no antagonist"), "{message}");
    assert!(help.contains("[[workload.antagonist]]"), "{help}");
}

#[test]
fn a_service_without_a_server_gets_the_usual_one() {
    let server = |text: &str| {
        let workload = named::parse_workload(text).expect("is right");
        workload.server.expect("a server").program.name().to_owned()
    };
    assert_eq!(server("http:2k/s"), "echo");
    assert_eq!(server("memcached"), "memcached");
    let elsewhere =
        "[[arm]]\nname = \"x\"\n[[workload]]\nkind = \"http\"\nurl = \"http://127.0.0.1:8080/\"\n";
    let experiment = parse_experiment("x.toml", elsewhere).expect("is right");
    assert_eq!(experiment.workloads[0].server, None);
}

#[test]
fn a_policy_is_for_the_server_where_there_is_one() {
    let batch = "policy = { class = \"batch\" }";
    let of = |arm: &str| {
        let text = SERVICE.replacen("name = \"default\"", &format!("name = \"x\"\n{arm}"), 1);
        parse_experiment("x.toml", &text).expect("is right").arms[0].clone()
    };
    assert_eq!(of(batch).to, model::Role::Server);
    assert_eq!(of(batch).summary(), "batch (server)");
    assert_eq!(of(&format!("{batch}\nto = \"load\"")).to, model::Role::Load);
    let wakeup = WHOLE.replace("to = \"server\"", "");
    let arms = parse_experiment("x.toml", &wakeup).expect("is right").arms;
    assert!(arms.iter().all(|arm| arm.to == model::Role::Load));
}

#[test]
fn an_arm_can_set_the_weight_and_the_variables_of_the_server_also_in_a_grid() {
    let of = |arm: &str| SERVICE.replacen("name = \"default\"", &format!("name = \"w\"\n{arm}"), 1);
    let grid = of("for-each = { w = [100, 1000] }\nweight = \"{w}\"");
    let arms = parse_experiment("x.toml", &grid).expect("is right").arms;
    let weights: Vec<_> = arms.iter().map(|arm| arm.weight).collect();
    assert_eq!(weights, [Some(100), Some(1000)]);
    assert_eq!(arms[1].name, "w 1000");
    assert_eq!(arms[1].summary(), "weight=1000");
    let variables = of("for-each = { n = [1, 2] }\nenv = { GOMAXPROCS = \"{n}\" }");
    let arms = parse_experiment("x.toml", &variables).expect("a number in a text is one");
    assert_eq!(arms.arms[1].summary(), "env (GOMAXPROCS=2)");

    let heavy = of("weight = 20000");
    let (message, _, offset) = wrong(&heavy);
    assert!(message.contains("1 to 10000"), "{message}");
    assert_eq!(offset, heavy.find("20000"));
}

#[test]
fn a_weight_without_a_server_is_refused_with_what_it_is_for() {
    let text = "[[arm]]\nname = \"w\"\nweight = 500\n[[workload]]\nkind = \"wakeup\"\n";
    let (message, help, offset) = wrong(text);
    assert!(message.contains("cgroup weight of the server"), "{message}");
    assert!(message.contains("`wakeup` has no server"), "{message}");
    assert!(help.contains("nice"), "{help}");
    assert_eq!(offset, text.find("500"));
}

#[test]
fn a_wrong_value_of_a_service_is_shown_where_it_is() {
    let at = |from: &str, to: &str, wrong_value: &str| {
        assert!(SERVICE.contains(from));
        let text = SERVICE.replacen(from, to, 1);
        let (message, _, offset) = wrong(&text);
        let expected = text
            .find(to)
            .map(|at| at + to.find(wrong_value).expect("is in it"));
        assert_eq!(offset, expected, "{message}\n{text}");
    };
    at("loads = [\"1k/s\", \"5k/s\"]", "loads = [2000]", "[2000]");
    at("load-cpus = \"1\"", "load-cpus = \"one\"", "\"one\"");
    at("gets = \"90%\"", "duration = \"1ms\"", "\"1ms\"");
    at("gets = \"90%\"", "connections = 0", "0");
    at("threads = 2", "threads = 0", "0");
    at("threads = 2", "port = 80", "80");
    at("weight = 200", "weight = 20000", "20000");
    at("weight = 200", "quota = \"0%\"", "\"0%\"");
    at("weight = 200", "nice = 50", "50");
    at("cpus = \"0\"\nnice", "cpus = \"4-2\"\nnice", "\"4-2\"");
    at(
        "kind = \"spinner\"",
        "kind = \"spinner\"\n[[workload.placement]]\nname = \"a\"\nserver-cpus = \"x\"",
        "\"x\"",
    );
}

#[test]
fn a_wrong_rule_of_stopping_is_shown_where_it_is() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"wakeup\"\n[stop]\nconfidence = 1.5\n";
    let (_, _, offset) = wrong(text);
    assert_eq!(offset, text.find("1.5"));
}

#[test]
fn a_server_command_that_never_learns_its_port_is_refused_where_it_is() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"http\"\n[workload.server]\n\
                kind = \"command\"\ncommand = [\"python3\", \"{prot}\"]\n";
    let (message, help, offset) = wrong(text);
    assert!(message.contains("`{prot}`"), "{message}");
    assert!(help.contains("`{port}`"), "{help}");
    assert_eq!(offset, text.find("[\"python3"));
    let (message, ..) = wrong(&text.replace("{prot}", "8080"));
    assert!(message.contains("does not say `{port}`"), "{message}");
}

#[test]
fn few_blocks_at_most_are_few_at_least_too() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"wakeup\"\n[stop]\nmax-blocks = 2\n";
    let stop = parse_experiment("x.toml", text).unwrap().stop;
    assert_eq!((stop.min_blocks, stop.max_blocks), (2, 2));
}

#[test]
fn numbers_that_would_be_cut_or_wrap_are_refused_where_they_are() {
    let arm = "[[arm]]\nname = \"a\"\n";
    let hackbench = "[[workload]]\nkind = \"hackbench\"\n";
    let wakeup = "[[workload]]\nkind = \"wakeup\"\n";
    let http = "[[workload]]\nkind = \"http\"\n";
    for (text, value, said) in [
        (
            format!("{arm}{hackbench}message-size = \"5GiB\"\n"),
            "\"5GiB\"",
            "at most 4294967295 bytes",
        ),
        (
            format!("{arm}{wakeup}duration = \"600000h\"\n"),
            "\"600000h\"",
            "longer than a year",
        ),
        (
            format!("{arm}{wakeup}duration = \"5000000h\"\n"),
            "\"5000000h\"",
            "longer than a year",
        ),
        (
            format!("{arm}{wakeup}loads = [2, 99999999999]\n"),
            "99999999999",
            "the most is 1000000",
        ),
        (
            format!("{arm}{http}connections = 4000000000\n"),
            "4000000000",
            "`connections` is at most 1000000",
        ),
        (
            format!("[stop]\nbudget = \"99999h\"\n{arm}{wakeup}"),
            "\"99999h\"",
            "longer than a year",
        ),
    ] {
        let (message, _, offset) = wrong(&text);
        assert!(message.contains(said), "{message}");
        assert_eq!(offset, text.find(value), "{text}");
    }
}

#[test]
fn a_plan_that_no_machine_can_hold_is_refused() {
    let loads: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
    let text = format!(
        "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n[[workload]]\nkind = \"hackbench\"\n\
         loads = [{}]\n[stop]\nmax-blocks = 10000\n",
        loads.join(", ")
    );
    let (message, help, offset) = wrong(&text);
    assert!(
        message.contains("2 arms × 100 cells × 10000 blocks are 2000000 trials"),
        "{message}"
    );
    assert!(help.contains("max-blocks"), "{help}");
    assert_eq!(offset, text.find("10000"));
}

#[test]
fn an_arm_must_not_have_the_name_of_the_one_that_repeats_the_baseline() {
    let file = "aa = true\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"A/A\"\n\
                policy = { class = \"batch\" }\n[[workload]]\nkind = \"wakeup\"\n";
    let (message, help, _) = wrong(file);
    assert!(message.contains("an arm is called `A/A`"), "{message}");
    assert!(help.contains("another name"), "{help}");
}

#[test]
fn an_experiment_that_came_from_elsewhere_is_checked_as_a_file_is() {
    let whole = parse_experiment("x.toml", WHOLE).expect("is right");
    assert!(plan::check(&whole).is_ok());
    let said = |change: &dyn Fn(&mut model::Experiment)| {
        let mut changed = whole.clone();
        change(&mut changed);
        plan::check(&changed).expect_err("is wrong").to_string()
    };
    for (error, expected) in [
        (
            said(&|e| e.baseline = 99),
            "is 99, but there are only 5 arms",
        ),
        (said(&|e| e.stop.confidence = 2.0), "a confidence of 2"),
        (said(&|e| e.workloads[0].loads.clear()), "has no loads"),
        (
            said(&|e| e.workloads[1].duration_ns = u64::MAX),
            "longer than a year",
        ),
        (
            said(&|e| {
                let policy = e.arms[3].policy.as_mut().expect("has one");
                policy.period_ns = Some(1);
            }),
            "the times of `deadline` do not fit",
        ),
        (
            said(&|e| {
                let mut vm = VmSpec::from_target(&e.target).expect("the target is a vm");
                vm.cpus = u32::MAX;
                e.target = TargetSpec::from(&vm);
            }),
            "at most 4096 CPUs",
        ),
        (
            said(&|e| {
                let kind = e.workloads[2].kind.clone();
                e.workloads[2].kind = kind.with_param("argv", Vec::<String>::new());
            }),
            "workload `make`: a command needs a program",
        ),
        (
            said(&|e| e.workloads[2].kind = Kind::new("of-tomorrow")),
            "there is no workload `of-tomorrow`",
        ),
        (
            said(&|e| e.workloads[1].kind = Kind::new("hackbench").with_param("fds", "many")),
            "the parameters of the workload `hackbench`",
        ),
        (
            said(&|e| {
                e.workloads[1] = named::parse_workload("http").expect("is right");
                e.workloads[1].client = None;
            }),
            "has no client, but is of the kind `http`",
        ),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_collected_is_said_once_for_the_experiment() {
    let text = "collect = [\"delays\"]\n[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
                collect = []\n[[workload]]\nkind = \"command\"\ncommand = [\"true\"]\n";
    let experiment = parse_experiment("x.toml", text).expect("is right");
    assert_eq!(experiment.observe.collect, Some(vec!["delays".to_owned()]));
    let of_arms: Vec<_> = experiment.arms.iter().map(|arm| &arm.collect).collect();
    assert_eq!(of_arms, [&None, &Some(Vec::new())]);
    for (right, wrong, at) in [
        ("[\"delays\"]", "[\"delay\"]", 11),
        ("= []", "= [\"delay\"]", 70),
    ] {
        let text = text.replacen(right, wrong, 1);
        let error = parse_experiment("x.toml", &text).expect_err("is unknown");
        assert_eq!(error.to_string(), "there is no collector `delay`");
        let help = miette::Diagnostic::help(&error).expect("has help");
        assert!(help.to_string().contains("`delays`"), "{help}");
        let labels = miette::Diagnostic::labels(&error).expect("has a place");
        assert_eq!(labels.map(|label| label.offset()).collect::<Vec<_>>(), [at]);
    }
}

#[test]
fn a_misspelt_event_is_shown_where_it_stands_with_the_nearest() {
    let text = "perf = [\"cs\", \"LLC-load-mises\"]\n[[arm]]\nname = \"a\"\n\
                [[workload]]\nkind = \"command\"\ncommand = [\"true\"]\n";
    let error = parse_experiment("x.toml", text).expect_err("is misspelt");
    let help = miette::Diagnostic::help(&error).expect("has help");
    assert!(help.to_string().contains("`LLC-load-misses`"), "{help}");
    let labels = miette::Diagnostic::labels(&error).expect("has a place");
    assert_eq!(labels.map(|label| label.offset()).collect::<Vec<_>>(), [14]);
    let right = parse_experiment("x.toml", &text.replace("mises", "misses")).expect("is right");
    assert_eq!(right.observe.perf, ["cs", "LLC-load-misses"]);
}
