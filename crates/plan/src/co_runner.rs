//! `[[workload.co-runner]]`: loads that work and are measured in the window of another one.

use crate::error::PlanError;
use crate::table::{Value, take_kind};
use crate::workload::{self, LEAST_DURATION_NS, check_load, kinds, read_kind};
use load::units::WrittenLoad;
use load::{Asks, Driver, Window};
use model::{Load, Place, Workload};
use serde::Deserialize;

/// Keys that every kind has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct FileCoRunner {
    name: Option<String>,
    load: Option<WrittenLoad>,
}

/// The co-runners of a workload, which have its lengths of time.
pub(crate) fn read_co_runners(
    files: Vec<Value>,
    of: &Workload,
) -> Result<Vec<Workload>, PlanError> {
    let read = files.into_iter().enumerate().map(|(index, file)| {
        let span = file.span();
        let read = read_co_runner(file, of);
        read.map_err(|e| e.with_span(span).in_table(&format!("co-runner.{index}")))
    });
    read.collect()
}

fn read_co_runner(mut value: Value, of: &Workload) -> Result<Workload, PlanError> {
    let known = kinds(|_| true).join(", ");
    let kind = take_kind(&mut value, "co-runner", &known)?;
    let def = workload::find(&kind)?;
    let (own, keys): (_, FileCoRunner) = read_kind(def, value, &[])?;
    let driver = load::driver(&own.kind).map_err(PlanError::new)?;
    let name = keys.name.or_else(|| driver.name());
    let co_runner = Workload {
        name: name.unwrap_or_else(|| def.name.to_owned()),
        loads: vec![keys.load.map_or(def.usual.load, |load| load.0)],
        client: own.client,
        duration_ns: of.duration_ns,
        warmup_ns: of.warmup_ns,
        time_limit_ns: of.time_limit_ns,
        ..Workload::new(own.kind)
    };
    check_co_runner(&co_runner, of)?;
    Ok(co_runner)
}

/// Checks that these loads can work beside the one of the workload, and that each of their metrics has a name of
/// its own.
pub(crate) fn check_co_runners(workload: &Workload) -> Result<(), PlanError> {
    if workload.co_runners.is_empty() {
        return Ok(());
    }
    check_main(workload)?;
    for (index, co_runner) in workload.co_runners.iter().enumerate() {
        let mut beside = workload.co_runners[..index].iter();
        if beside.any(|other| other.name == co_runner.name) {
            return Err(two_loads(&co_runner.name));
        }
        let place = format!("co-runner.{index}");
        check_co_runner(co_runner, workload).map_err(|e| e.in_table(&place))?;
    }
    Ok(())
}

fn two_loads(name: &str) -> PlanError {
    let error = PlanError::new(format!("there are two loads `{name}` in one trial"));
    error
        .with_help("give the co-runner another `name`")
        .about_key("name")
}

/// Refuses a load whose window has no beginning and end that others could share.
fn check_main(workload: &Workload) -> Result<(), PlanError> {
    let name = &workload.name;
    let driver = load::driver(&workload.kind).map_err(PlanError::new)?;
    let searches = |load: &Load| matches!(load, Load::MaxRate(_) | Load::ShareOfMax(_));
    let why = if workload.load_on == Place::Controller {
        "its load runs on the controller"
    } else if workload.loads.iter().any(searches) {
        "it looks for its highest rate"
    } else if driver.in_guests() {
        "its workers are guests"
    } else {
        return Ok(());
    };
    let what = format!("`{name}` has no co-runners: {why}");
    Err(PlanError::new(what)
        .with_help("measure them in a workload of their own, or make them antagonists"))
}

fn check_co_runner(co_runner: &Workload, of: &Workload) -> Result<(), PlanError> {
    let name = &co_runner.name;
    if *name == of.name {
        return Err(two_loads(name));
    }
    check_begin_of_metrics(name)?;
    let def = workload::find(co_runner.kind.name())?;
    let driver = load::driver(&co_runner.kind).map_err(PlanError::new)?;
    co_runner.check()?;
    for load in &co_runner.loads {
        check_load(def, co_runner, load).map_err(|e| e.about_key("load"))?;
    }
    if let Some(why) = find_obstacle(&*driver) {
        let what = format!("`{name}` cannot be a co-runner: {why}");
        return Err(PlanError::new(what).with_help("give it a workload of its own"));
    }
    if def.window != Window::Whole && co_runner.duration_ns < LEAST_DURATION_NS {
        let what = format!(
            "`{}` ends by itself, so that nobody knows how long `{name}` is to work beside it",
            of.name
        );
        return Err(PlanError::new(what)
            .with_help("duration = \"10s\", about as long as that takes")
            .about_key("duration"));
    }
    driver.check()?;
    workload::check_own_metrics(&driver.own_metrics())?;
    check_metrics_beside(co_runner, of)?;
    check_receiver(co_runner, of, &driver.request_receiver())?;
    let client = co_runner.client.as_ref();
    client.map_or(Ok(()), crate::client::check_client)
}

/// Refuses a name that could not begin the names of metrics and files, or that begins those of others.
fn check_begin_of_metrics(name: &str) -> Result<(), PlanError> {
    const TAKEN: [&str; 3] = ["server", "antagonist", "load"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if begins && name.len() <= 40 && name.chars().all(is_plain) && !TAKEN.contains(&name) {
        return Ok(());
    }
    let what =
        format!("metrics of a co-runner begin with its name, and `{name}` is not fit for that");
    Err(PlanError::new(what)
        .with_help("name = \"web\": letters, digits, - and _, and not the name of a role")
        .about_key("name"))
}

/// Refuses a name with which a metric would be called as another one of the trial, or would seem to be of another load.
fn check_metrics_beside(co_runner: &Workload, of: &Workload) -> Result<(), PlanError> {
    let wrong = |what: String| {
        let error = PlanError::new(what).with_help("give the co-runner another `name`");
        Err(error.about_key("name"))
    };
    let named = workload::list_metrics_beside(co_runner);
    if let Some(at) = workload::find_built_in(&named) {
        return wrong(format!(
            "there would be two metrics `{}` in one trial",
            named[at]
        ));
    }
    let begin = co_runner.name_beside("");
    let others = of
        .co_runners
        .iter()
        .filter(|other| other.name != co_runner.name);
    let mut others = workload::list_metrics(of)
        .into_iter()
        .chain(others.flat_map(workload::list_metrics_beside));
    match others.find(|metric| metric.starts_with(&begin)) {
        None => Ok(()),
        Some(metric) => wrong(format!(
            "the metric `{metric}` of another load begins with the name of the co-runner `{}`",
            co_runner.name
        )),
    }
}

/// Reason for which a kind works in no window but its own.
fn find_obstacle(driver: &dyn Driver) -> Option<String> {
    if let Some(why) = driver.only_in_turns() {
        return Some(why);
    }
    let why = if driver.in_guests() {
        "its workers are guests"
    } else if !driver.groups().is_empty() {
        "its workers have cgroups of their own"
    } else if driver.needs_folder() {
        "it needs a folder of its own"
    } else if driver.measured_daemon().is_some() {
        "it only looks at what is running already"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// A co-runner has no server of its own.
fn check_receiver(co_runner: &Workload, of: &Workload, asks: &Asks) -> Result<(), PlanError> {
    let Asks::Server(usual) = asks else {
        return Ok(());
    };
    let is_answered = match &of.server {
        Some(server) => {
            server.program.name() == usual.name() || of.kind.name() == co_runner.kind.name()
        }
        None => of.can_answer(),
    };
    match is_answered {
        true => Ok(()),
        false => Err(PlanError::new(format!(
            "nothing answers the requests of the co-runner `{}`",
            co_runner.name
        ))
        .with_help(
            "start its program as a [[workload.service]] with ports = [\"main\"], and name that: \
             url = \"http://127.0.0.1:{SERVICE.port}/\" (http), or address = \"127.0.0.1:{SERVICE.port}\" (memcached)",
        )),
    }
}
