//! One round: both calibrated, and a trial of each form of demand.

use crate::Arguments;
use crate::demand::{self, DEMANDS, Demand, LOG};
use crate::read::{self, Jobs};
use results::{ResultSet, StoredTrial};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Jobs of both, by form of demand.
#[derive(Debug, Clone)]
pub struct Round {
    /// Time that rt-app found for one of its loops.
    pub ns_per_loop: u64,
    pub pairs: Vec<Pair>,
}

#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub demand: Demand,
    pub burnwait: Jobs,
    pub rt_app: Jobs,
}

pub fn measure(arguments: &Arguments) -> Result<Round, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let ns_per_loop = calibrate(arguments, dir.path())?;
    let results = run(arguments, dir.path(), ns_per_loop)?;
    let pair = |demand: &Demand| {
        Ok(Pair {
            demand: *demand,
            burnwait: of_burnwait(trial(&results, &demand.burnwait())?, *demand)?,
            rt_app: of_rt_app(trial(&results, &demand.rt_app())?, *demand)?,
        })
    };
    let pairs = DEMANDS.iter().map(pair);
    Ok(Round {
        ns_per_loop,
        pairs: pairs.collect::<Result<_, Box<dyn Error>>>()?,
    })
}

/// The calibration of rt-app by itself, as it says it: `pLoad = 40ns : calib_cpu 0`.
fn calibrate(arguments: &Arguments, dir: &Path) -> Result<u64, Box<dyn Error>> {
    let folder = dir.to_string_lossy();
    let phase = "\"run\": 10, \"sleep\": 1000";
    let json = demand::rt_app_file("\"CPU0\"", &folder, 1, phase);
    let file = dir.join("calibrate.json");
    fs::write(&file, json)?;
    let output = Command::new(&arguments.rt_app).arg(&file).output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let value = said
        .split("pLoad = ")
        .nth(1)
        .and_then(|rest| rest.split("ns").next());
    let value = value.ok_or_else(|| format!("rt-app did not say its calibration: {said}"))?;
    Ok(value.trim().parse()?)
}

fn run(arguments: &Arguments, dir: &Path, ns_per_loop: u64) -> Result<ResultSet, Box<dyn Error>> {
    let rt_app = arguments.rt_app.to_string_lossy();
    let text = demand::experiment(arguments.seconds, &rt_app, ns_per_loop);
    let (file, out) = (dir.join("precision.toml"), dir.join("results"));
    fs::write(&file, text)?;
    let ran = Command::new(&arguments.schedlab)
        .args(["run", "--quiet", "--wait"])
        .arg(&file)
        .arg("-o")
        .arg(&out)
        .output()?;
    match ran.status.code() {
        // 4: a trial did not count and was repeated.
        Some(0 | 4) => Ok(ResultSet::read(&out)?),
        _ => Err(format!(
            "schedlab ended with {}: {}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        )
        .into()),
    }
}

fn trial<'a>(results: &'a ResultSet, workload: &str) -> Result<&'a StoredTrial, Box<dyn Error>> {
    let is_of = |stored: &&StoredTrial| {
        let cell = &results.plan.cells[stored.trial.place.cell];
        results.experiment.workloads[cell.workload].name == workload
    };
    let mut found = results.trials.iter().filter(|stored| stored.trial.is_ok());
    let found = found.find(is_of);
    found.ok_or_else(|| format!("no trial of {workload} was ok").into())
}

fn of_burnwait(stored: &StoredTrial, demand: Demand) -> Result<Jobs, Box<dyn Error>> {
    let metrics = &stored.trial.result.metrics;
    let late_us = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.metric == name);
        let ns = metric.ok_or_else(|| format!("no {name}"))?.value;
        Ok::<f64, Box<dyn Error>>(ns / 1000.0)
    };
    let workers = results::files::read(&stored.dir.join("workers.csv"))?;
    let late_us = (late_us("lateness_p50")?, late_us("lateness_p90")?);
    read::burnwait(workers.as_slice(), demand, late_us)
}

fn of_rt_app(stored: &StoredTrial, demand: Demand) -> Result<Jobs, Box<dyn Error>> {
    let log = results::files::read(&stored.dir.join(results::files::KEPT).join("load").join(LOG))?;
    read::rt_app(&String::from_utf8_lossy(&log), demand)
}
