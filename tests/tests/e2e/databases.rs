//! The ready-made experiments of experiments/databases, with the real databases, in a shortened form: one
//! block of what takes about a second.

#![allow(clippy::disallowed_methods)]

use crate::presets::{expect_metric, measure, shorten};
use std::path::PathBuf;
use tests::{beside_others, skipped, with_lock_of_runs};

/// A workload, its metric, and the unit.
type Row = (&'static str, &'static str, &'static str);

const POSTGRESQL: [&str; 3] = ["pgbench", "psql", "unshare"];
const REDIS: [&str; 3] = ["redis-server", "redis-benchmark", "taskset"];
const SHORT_POSTGRESQL: [(&str, &str); 2] =
    [("--time=15", "--time=2"), ("--scale=10", "--scale=1")];
const SHORT_REDIS: [(&str, &str); 2] = [("\"300000\"", "\"20000\""), ("99999", "999")];
const SHORT_MARIADB: [(&str, &str); 2] = [
    ("--time=15", "--time=2"),
    ("--table-size=100000", "--table-size=1000"),
];
const SHORT_ROCKSDB: [(&str, &str); 2] = [
    ("--duration=10", "--duration=1"),
    ("--num=500000", "--num=20000"),
];
const SHORT_SQLITE: [(&str, &str); 2] = [("i < 200000", "i < 2000"), ("i < 5000", "i < 50")];
const OF_SQLITE: [Row; 2] = [("sqlite", "wall_time", "s"), ("sqlite", "cpu_time", "s")];
const OF_RATE: [Row; 2] = [
    ("rate", "transaction_p50", "us"),
    ("rate", "transaction_p99", "us"),
];
const OF_SINGLE: [Row; 4] = [
    ("single", "sets_per_sec", "1/s"),
    ("single", "set_p99", "ms"),
    ("single", "gets_per_sec", "1/s"),
    ("single", "get_p99", "ms"),
];
const OF_CLOSED: [Row; 3] = [
    ("closed", "transactions_per_sec", "1/s"),
    ("closed", "transaction_p50", "us"),
    ("closed", "transaction_p99", "us"),
];
const OF_PIPELINED: [Row; 2] = [
    ("pipelined", "gets_per_sec", "1/s"),
    ("pipelined", "get_p99", "ms"),
];
const OF_MARIADB: [Row; 4] = [
    ("closed", "transactions_per_sec", "1/s"),
    ("closed", "transaction_p99", "ms"),
    ("rate", "transaction_mean", "ms"),
    ("rate", "transaction_p99", "ms"),
];
const OF_ROCKSDB: [Row; 4] = [
    ("read", "reads_per_sec", "1/s"),
    ("read", "read_p99_9", "us"),
    ("read-beside-writes", "reads_per_sec", "1/s"),
    ("read-beside-writes", "read_p99", "us"),
];
const OF_READS: [Row; 2] = [
    ("reads", "transactions_per_sec", "1/s"),
    ("reads", "transaction_p99", "us"),
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments/databases")
}

/// True where all programs are there; else it is said which is not.
fn are_there(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|name| tests::program(name).is_none());
    if let Some(missing) = missing {
        skipped(format!("{missing} is not installed"));
    }
    missing.is_none()
}

/// The cells that `only` names have figures of all rows for each of the arms.
fn expect_rows(file: &str, changes: &[(&str, &str)], only: &[&str], arms: usize, rows: &[Row]) {
    let text = shorten(&directory(), file, changes);
    let only: Vec<&str> = only.iter().flat_map(|cell| ["--only", cell]).collect();
    let results = measure(file, &text, &only);
    for row in rows {
        expect_metric(file, &results, arms, row);
    }
}

/// True where root can be called by another name, as PostgreSQL needs it; else it is said why not.
fn can_rename_root_or_skip() -> bool {
    let mut unshare = std::process::Command::new("unshare");
    let tried = unshare.args(["--user", "true"]).output();
    let can = !tests::is_root() || tried.is_ok_and(|output| output.status.success());
    if !can {
        skipped(
            "PostgreSQL refuses root, and the kernel makes no user namespace here, as in a chroot",
        );
    }
    can
}

#[test]
fn postgresql_answers_at_an_open_rate_and_its_own_log_has_the_latencies() {
    if !are_there(&POSTGRESQL) || !can_rename_root_or_skip() {
        return;
    }
    let _turn = beside_others();
    // A 99th percentile needs a hundred transactions.
    let faster = [SHORT_POSTGRESQL.as_slice(), &[("--rate=100", "--rate=200")]].concat();
    expect_rows("postgresql", &faster, &["rate"], 3, &OF_RATE);
}

#[test]
fn redis_and_sqlite_are_measured_on_data_from_a_seed() {
    if !are_there(&REDIS) || !are_there(&["sqlite3"]) {
        return;
    }
    // Beside its neighbour, sqlite turns autogroup.
    let _turn = with_lock_of_runs();
    expect_rows("redis", &SHORT_REDIS, &["single"], 2, &OF_SINGLE);
    // The cell alone, and the one beside other work.
    expect_rows("sqlite", &SHORT_SQLITE, &[], 4, &OF_SQLITE);
}

#[test]
#[ignore = "takes two minutes: make test-long ROWS=databases"]
fn every_cell_of_the_databases_is_measured() {
    if !are_there(&POSTGRESQL) || !are_there(&REDIS) || !can_rename_root_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    expect_rows("postgresql", &SHORT_POSTGRESQL, &["closed"], 3, &OF_CLOSED);
    let fewer = [SHORT_REDIS.as_slice(), &[("\"2000000\"", "\"200000\"")]].concat();
    expect_rows("redis", &fewer, &["pipelined"], 2, &OF_PIPELINED);
    for (program, file, shorter, arms, rows) in [
        (
            "mariadb-install-db",
            "mariadb",
            &SHORT_MARIADB,
            3,
            &OF_MARIADB,
        ),
        ("db_bench", "rocksdb", &SHORT_ROCKSDB, 2, &OF_ROCKSDB),
    ] {
        if are_there(&[program]) {
            expect_rows(file, shorter, &[], arms, rows);
        }
    }
    let huge = "postgresql-huge-pages";
    expect_rows(huge, &SHORT_POSTGRESQL, &[], 2, &OF_READS);
}
