//! Calibration: what all trials of a cell share, found by running the workload. Its
//! processes are kept together, journalled and ended like those of a trial.

use crate::arm::hypervisor;
use crate::context::Context;
use crate::error::AgentError;
use crate::fence::Fence;
use crate::process::{Event, Origin, Process};
use crate::processes::{self, KILL_LIMIT};
use load::roles::ANTAGONISTS;
use load::{Job, Launch, Output, Run};
use model::{Calibration, Load};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A guest of a hypervisor that is emulated takes its time to boot.
const GUEST_LIMIT: Duration = Duration::from_secs(900);

/// The inner error says why there is no calibration.
pub fn calibrate(
    context: &mut Context,
    workload: &model::Workload,
    load: Load,
    known: &Calibration,
) -> Result<Result<Calibration, String>, AgentError> {
    let driver = match load::driver(&workload.kind) {
        Ok(driver) => driver,
        Err(why) => return Ok(Err(why)),
    };
    let began = context.journal.length()?;
    let fence = Fence::set_up(context.root, context.mark.clone(), context.journal)?;
    let within = driver.calibrates_within();
    if driver.in_guests() {
        hypervisor::record_guests(context.journal)?;
        context.progress("calibrating in a guest", GUEST_LIMIT + within);
    } else if !within.is_zero() {
        context.progress("calibrating", within);
    }
    let antagonists = calibrated_beside(workload, known);
    let job = Job {
        calibration: Calibration {
            values: known
                .values
                .clone()
                .into_iter()
                .chain(antagonists.clone())
                .collect(),
            ..known.clone()
        },
        ..Job::new(workload, load, collect::machine::usable_cpus())
    };
    let mut ended = Ok(());
    let mut run = |argv: &[String], limit_ns| {
        let (output, all_ended) = run(context, &fence, argv, Duration::from_nanos(limit_ns));
        ended = std::mem::replace(&mut ended, Ok(())).and(all_ended);
        output
    };
    // A co-runner of another cell may have been calibrated already, and is the same load alone.
    let alone = known.of_co_runner(&workload.name);
    let found = match alone.values.is_empty() || workload.variant.is_none() {
        true => driver.calibrate(&job, &mut run),
        false => Ok(alone),
    };
    let found = found.and_then(|found| calibrate_co_runners(found, &job, &mut run));
    let ended = ended.and(fence.remove());
    processes::reap_orphans(&context.guard.processes());
    if let Err(why) = ended {
        // It stays in the journal.
        return Ok(Err(why));
    }
    context.journal.forget_from(began)?;
    Ok(found.map(|mut found| {
        for (name, value) in antagonists {
            found.values.entry(name).or_insert(value);
        }
        found
    }))
}

/// Adds the values of the co-runners, each with its name before them.
fn calibrate_co_runners(
    mut found: Calibration,
    main: &Job,
    run: &mut Run,
) -> Result<Calibration, String> {
    for workload in main.workload.list_loads().skip(1) {
        let driver = load::driver(&workload.kind)?;
        let load = workload.loads.first().copied().unwrap_or(Load::One);
        // The work is the same alone and beside others: what a cell has found is no more looked for.
        let mut own = main.calibration.of_co_runner(&workload.name);
        if own.values.is_empty() {
            let job = Job {
                calibration: main.calibration.clone(),
                ..Job::new(&workload, load, main.cpus)
            };
            own = driver.calibrate(&job, run)?;
        }
        let named = own.values.into_iter();
        let name = &workload.name;
        found
            .values
            .extend(named.map(|(key, value)| (Calibration::name_beside(name, &key), value)));
    }
    Ok(found)
}

/// Values of the antagonists, which are not running yet.
fn calibrated_beside(workload: &model::Workload, known: &Calibration) -> BTreeMap<String, u64> {
    let mut all = known.clone();
    let mut found = BTreeMap::new();
    for antagonist in &workload.antagonists {
        // A kind that this version does not know is refused where it would be started.
        if let Ok(program) = ANTAGONISTS.open(&antagonist.program) {
            found.extend(program.calibrate(&all));
            all.values.extend(found.clone());
        }
    }
    found
}

/// The output of the program; and whether it, and all that it started, has ended.
fn run(
    context: &mut Context,
    fence: &Fence,
    argv: &[String],
    limit: Duration,
) -> (Result<Output, String>, Result<(), String>) {
    context.progress("calibrating", limit + KILL_LIMIT);
    let launch = Launch::new(argv.to_vec());
    let origin = Origin {
        executable: context.executable,
        fence,
    };
    let mut process = match Process::start(&launch, origin, context.journal, |_| Ok(())) {
        Ok(process) => process,
        Err(error) => return (Err(error.to_string()), Ok(())),
    };
    let event = process.wait(context.interrupt, Instant::now() + limit);
    let killed = process.kill_rest(fence).map(drop);
    let killed = killed.and(fence.kill_strays(&context.guard.processes()).map(drop));
    let output = match (event, process.reap()) {
        (_, Err(error)) => return (Err(error.to_string()), Err(error.to_string())),
        (Event::Exited | Event::Line(_), Ok((output, _))) => Ok(output),
        (Event::Interrupted, Ok(_)) => Err("interrupted".to_owned()),
        (Event::Timeout, Ok(_)) => Err(format!(
            "{} did not end within {} and was killed",
            argv.first().map_or("it", String::as_str),
            model::format_duration_ns(model::whole_nanos(limit))
        )),
    };
    (output, killed)
}
