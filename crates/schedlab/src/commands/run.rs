//! `schedlab run`: measure, judge, report.

mod rehearsal;

use super::history::{Follow, follow_run};
use crate::args::RunArgs;
use crate::exit::{self, CliError};
use crate::fleet::Several;
use crate::live::{HTML_REPORT, View, check_view};
use crate::measure::{Run, interrupt_flag, take_results};
use crate::metrics::Metrics;
use crate::notify::Notices;
use crate::output::{self, note};
use crate::repeat::{agreed_to_resume, wanted_like};
use crate::request::{Wanted, read_measurable};
use crate::targets;
use doors::started::Agreed;
use model::{RailHit, TargetSpec};
use report::Table;
use results::files::SYSTEM;
use results::{Held, ResultSet, read};
use runner::{Event, Outcome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let mut watch = Watch {
        notices: Notices::for_addresses(&args.notify)?,
        metrics: Metrics::listen_at(args.metrics_at.as_deref())?,
    };
    check_view(args.live.as_deref())?;
    let follow = Follow::from_words(&args.follow, args.wait)?;
    let interrupted = interrupt_flag()?;
    let wanted = match &args.resume {
        Some(_) if args.experiment.is_empty() => None,
        _ => Some(match &args.like {
            Some(earlier) => wanted_like(earlier, args)?,
            // The run that goes on has all cells, also where only some of them do.
            None if args.rehearse => rehearsal::read_unchanged(&args.experiment)?,
            None if args.resume.is_some() => read_measurable(&args.experiment.with_all_cells())?,
            None => read_measurable(&args.experiment)?,
        }),
    };
    if let Some(wanted) = wanted.as_ref().filter(|_| !args.quiet)
        && args.experiment.hunt.is_some()
    {
        super::hunt::note_time(&wanted.experiment);
    }
    // Before anything of it is read.
    let mut held = match &args.resume {
        Some(dir) => Some(take_results(dir, args.wait, &interrupted)?),
        None => None,
    };
    // Who gives the experiment as well has named what starts: another one is refused.
    let agreed = match (&mut held, &wanted) {
        (Some(held), None) => agreed_to_resume(held, args.yes, args.yes && args.quiet)?,
        _ => Agreed::by_command(),
    };
    let (several, held, wanted) = Several::from_args(args, held, wanted)?;
    let ended = match several {
        Some(several) => on_several(args, &several, &interrupted, &mut watch),
        None => on_one(args, (held, agreed), wanted, &interrupted, &mut watch)?,
    };
    let ended = ended.map(|finished| match &follow {
        Some(follow) => finished.followed(follow, args.quiet),
        None => finished,
    });
    match &ended {
        Ok(finished) => watch.notices.report_end(&finished.text),
        Err(error) => {
            let text = format!("The run ended with an error: {error}");
            watch.notices.report_end(&text);
        }
    }
    ended.map(|finished| finished.code)
}

type Ended = Result<Finished, CliError>;

/// Words on a run at its end.
struct Finished {
    code: ExitCode,
    /// The conclusion, for who did not watch.
    text: String,
    /// Results of a run that is done.
    dir: Option<PathBuf>,
}

impl Finished {
    /// With what a history says to it. A run that is not in the history that it was to be in has not ended well.
    fn followed(mut self, follow: &Follow, quiet: bool) -> Finished {
        let Some(dir) = &self.dir else {
            return self;
        };
        match follow_run(dir, follow) {
            Ok(told) => {
                let told = told.join("\n");
                if !quiet {
                    note!("\n{told}");
                }
                self.text = format!("{}\n{told}", self.text);
            }
            Err(error) => {
                note!("error: the history: {error}");
                self.text = format!("{}\nThe history was not followed: {error}", self.text);
                self.code = error.code();
            }
        }
        self
    }
}

/// Those that see a run from afar.
struct Watch {
    notices: Notices,
    metrics: Metrics,
}

impl Watch {
    fn start(&mut self, name: &str, dir: &Path) {
        self.notices.start(name, dir);
        self.metrics.start(name, dir);
    }

    fn see(&mut self, event: &Event) {
        self.notices.report_event(event);
        self.metrics.see_event(event);
    }
}

/// An error where nothing was started.
fn on_one(
    args: &RunArgs,
    (held, agreed): (Option<Held>, Agreed),
    wanted: Option<Wanted>,
    interrupted: &Arc<AtomicBool>,
    watch: &mut Watch,
) -> Result<Ended, CliError> {
    if let Some(dir) = held.as_ref().map(Held::dir)
        && read::read_manifest(dir)?.together
    {
        return Err(CliError::usage(
            format!("{} is of one of several machines", dir.display()),
            "resume the run of all of them: the directory above `nodes`",
        ));
    }
    let earlier = match (&held, &wanted) {
        (Some(held), None) => Some(read::read_plan(held.dir())?.0.target),
        _ => None,
    };
    let spec = earlier.or_else(|| wanted.as_ref().map(|w| w.experiment.target.clone()));
    let spec = spec.unwrap_or_else(TargetSpec::local);
    targets::stays_up(&spec)?;
    if let (None, Some(output)) = (&held, &args.output) {
        results::write::check_place(output)?;
    }
    let _lock = targets::made_ready(&spec, args.wait, interrupted)?;
    let mut run = match (held, wanted) {
        (Some(held), wanted) => Run::resume(held, agreed, wanted, &args.experiment)?,
        (None, Some(wanted)) => Run::start(args.output.as_deref(), wanted)?,
        (None, None) => unreachable!("only a resume can do without an experiment"),
    };
    watch.start(run.name(), run.dir());
    let mut view = View::open(args.live.as_deref(), run.dir(), interrupted)?;
    let mut see = |event: &Event| watch.see(event);
    let (wait, quiet, anyway) = (args.wait, args.quiet, args.anyway);
    let ended = run.measure(interrupted, wait, quiet, anyway, view.as_ref(), &mut see);
    if let Some(view) = &mut view {
        view.end();
    }
    let finished = ended.and_then(|outcome| finish(args, run.dir(), outcome));
    if let Some(view) = &view {
        view.show_report(&run.dir().join(HTML_REPORT));
    }
    Ok(finished)
}

fn on_several(
    args: &RunArgs,
    several: &Several,
    interrupted: &Arc<AtomicBool>,
    watch: &mut Watch,
) -> Ended {
    watch.start(several.name(), several.dir());
    let mut view = View::open(args.live.as_deref(), several.dir(), interrupted)?;
    let mut see = |event: &Event| watch.see(event);
    let outcome = several.measure(args, interrupted, &mut see)?;
    if let Some(view) = &mut view {
        view.end();
    }
    let finished = finish(args, several.dir(), outcome);
    if let Some(view) = &view {
        view.show_report(&several.dir().join(HTML_REPORT));
    }
    finished
}

/// Reports on what was measured: the exit code, and the conclusion for who did not watch.
fn finish(args: &RunArgs, dir: &Path, outcome: Outcome) -> Ended {
    if !dir.join(SYSTEM).exists() {
        match outcome {
            Outcome::Interrupted => return Ok(interrupted(dir)),
            Outcome::Railed(hit) => return Ok(railed(&hit)),
            _ => {}
        }
    }
    let results = ResultSet::read(dir)?;
    let table = Table::from_results(&results);
    let html = super::report::write_report_files(&table, &results)?;
    super::report::print(args.format, &table, &results, false)?;
    if args.rehearse {
        rehearsal::show_windows(&results);
    }
    if !args.quiet {
        note!("\nResults  {}\nReport   {}", dir.display(), html.display());
    }
    if args.open {
        output::open(&html);
    }
    match outcome {
        Outcome::Interrupted => return Ok(interrupted(dir)),
        Outcome::Railed(hit) => return Ok(railed(&hit)),
        _ => {}
    }
    let code = super::report::verdict_code(&table, &results, args.fail_on);
    Ok(Finished {
        code,
        text: report::conclusion(&table).join("\n"),
        dir: Some(dir.to_owned()),
    })
}

fn railed(hit: &RailHit) -> Finished {
    let text = hit.in_words();
    note!("{text}");
    Finished {
        code: ExitCode::from(exit::RAIL),
        text,
        dir: None,
    }
}

fn interrupted(dir: &Path) -> Finished {
    let resume = format!("schedlab run --resume {}", dir.display());
    let text = format!("Interrupted; go on with: {resume}");
    note!("{text}");
    Finished {
        code: ExitCode::from(exit::INTERRUPTED),
        text,
        dir: None,
    }
}
