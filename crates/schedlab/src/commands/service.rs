//! `schedlab service`: an experiment that runs by itself, as a timer of systemd.
//!
//! Two units: a service that runs the experiment once, and a timer that starts it
//! (systemd.service(5), systemd.timer(5)).

use crate::args::{ServiceCommand, ServiceInstall};
use crate::exit::CliError;
use crate::notify::{self, Notices};
use crate::output::say;
use crate::request::from_file;
use crate::systemd::{self, UNITS, absolute_path, file_error, quote_word, systemctl, unit};
use doors::started::tool_command;
use results::files::plain_name;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Words in place of a calendar event of systemd.time(7).
const EVERY: &[(&str, &str)] = &[
    ("hour", "hourly"),
    ("night", "*-*-* 01:30:00"),
    ("week", "Sun *-*-* 01:30:00"),
];

pub fn service(command: &ServiceCommand) -> Result<ExitCode, CliError> {
    match command {
        ServiceCommand::Install(args) => install(args),
        ServiceCommand::Remove { name } => remove(name),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn install(args: &ServiceInstall) -> Result<(), CliError> {
    let units = Units::of(args)?;
    if args.dry_run {
        say!("# {}/{}.service\n{}", UNITS, units.name, units.service);
        say!("# {}/{}.timer\n{}", UNITS, units.name, units.timer);
        return Ok(());
    }
    systemd::require("let cron run `schedlab run FILE --wait`; `--dry-run` shows the units")?;
    check_calendar(&units.calendar)?;
    units.check_free(Path::new(UNITS))?;
    doors::written::make_private_directory(&units.directory)
        .map_err(|e| file_error("create", &units.directory, &e))?;
    systemd::write(&unit(&units.name, "service"), &units.service)?;
    systemd::write(&unit(&units.name, "timer"), &units.timer)?;
    systemctl(&["daemon-reload"])?;
    let timer = format!("{}.timer", units.name);
    systemctl(&["enable", "--now", &timer])?;
    say!(
        "{timer} runs the experiment at {}; its results are in {}/results\n\
         next time: systemctl list-timers {timer}\n\
         at once:   systemctl start {}.service\n\
         its words: journalctl -u {}",
        units.calendar,
        units.directory.display(),
        units.name,
        units.name
    );
    Ok(())
}

fn remove(name: &str) -> Result<(), CliError> {
    let name = unit_name(name);
    let files = ["timer", "service"].map(|kind| unit(&name, kind));
    if !files.iter().any(|file| file.exists()) {
        systemd::remove_partials(&files)?;
        let what = format!("there is no service {name}");
        return Err(CliError::usage(
            what,
            "systemctl list-timers 'schedlab-*' has those that there are",
        ));
    }
    systemctl(&["disable", "--now", &format!("{name}.timer")])?;
    systemd::remove(&files)?;
    say!("{name} is removed; its results are kept");
    Ok(())
}

/// The two units of one experiment.
struct Units {
    name: String,
    calendar: String,
    directory: PathBuf,
    /// The experiment's file.
    file: PathBuf,
    service: String,
    timer: String,
}

impl Units {
    fn of(args: &ServiceInstall) -> Result<Self, CliError> {
        // An experiment that cannot be read is found now, and not in the night.
        let (experiment, _) = from_file(&args.file, &[])?;
        Notices::for_addresses(&args.notify)?;
        if let Some(url) = args.notify.iter().find(|to| to.starts_with("http")) {
            let what = format!("{url} would stand in a unit that everybody may read");
            return Err(CliError::usage(
                what,
                "write it into a file of mode 600, and use @FILE",
            ));
        }
        let file = absolute_path(&args.file)?;
        let program = systemd::program_for_root()?;
        systemd::for_root(&file)?;
        for file in args.notify.iter().filter_map(|to| to.strip_prefix('@')) {
            systemd::for_root(&absolute_path(Path::new(file))?)?;
        }
        let directory = match &args.directory {
            Some(given) => absolute_path(given)?,
            None => agent::runs_dir()?,
        };
        let mut command = vec![program.display().to_string(), "run".to_owned()];
        command.extend([file.display().to_string(), "--wait".to_owned()]);
        command.extend(history_words(args)?);
        for to in &args.notify {
            command.extend(["--notify".to_owned(), notify::from_anywhere(to)?]);
        }
        let command: Vec<String> = command.iter().map(|word| quote_word(word)).collect();
        let calendar = calendar(&args.every).to_owned();
        let what = format!("schedlab: {}", experiment.name.replace('%', "%%"));
        Ok(Units {
            name: unit_name(&experiment.name),
            service: service_unit(&what, &directory, &command.join(" ")),
            timer: timer_unit(&what, &calendar),
            calendar,
            directory,
            file,
        })
    }

    /// Refuses a name that another experiment's unit has: names may differ where units do not.
    fn check_free(&self, units: &Path) -> Result<(), CliError> {
        let unit = units.join(format!("{}.service", self.name));
        let there = match doors::read::small_file_text(&unit) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            there => there.map_err(|e| file_error("read", &unit, &e))?,
        };
        let runs = |text: &str, file: &Path| {
            let word = quote_word(&file.display().to_string());
            text.lines()
                .any(|line| line.starts_with("ExecStart=") && line.contains(&word))
        };
        match runs(&there, &self.file) {
            true => Ok(()),
            false => Err(CliError::usage(
                format!("{} runs another file", unit.display()),
                format!(
                    "give the experiment another name, or remove that one: schedlab service remove {}",
                    self.name
                ),
            )),
        }
    }
}

/// Options of a run that adds itself to the history.
fn history_words(args: &ServiceInstall) -> Result<Vec<String>, CliError> {
    if args.no_history {
        return Ok(Vec::new());
    }
    let mut words = vec![match &args.store {
        Some(dir) => format!("--history={}", absolute_path(dir)?.display()),
        None => "--history".to_owned(),
    }];
    let times = [
        ("--confirm", &args.confirm, "30m"),
        ("--bisect", &args.bisect, "1h"),
    ];
    for (option, time, example) in times {
        let Some(time) = time else { continue };
        let form = format!("write it as {option} {example}");
        plan::parse_duration(time).map_err(|e| CliError::usage(e, form))?;
        words.extend([option.to_owned(), time.clone()]);
    }
    Ok(words)
}

/// A run undoes what it did after SIGTERM, for which it has five minutes.
fn service_unit(what: &str, directory: &Path, command: &str) -> String {
    let directory = directory.display().to_string().replace('%', "%%");
    format!(
        "[Unit]\nDescription={what}\n\n[Service]\nType=oneshot\nWorkingDirectory={directory}\n\
         ExecStart={command}\nTimeoutStartSec=infinity\nTimeoutStopSec=5min\nKillMode=mixed\n"
    )
}

fn timer_unit(what: &str, calendar: &str) -> String {
    format!(
        "[Unit]\nDescription={what}\n\n[Timer]\nOnCalendar={calendar}\nPersistent=true\n\n\
         [Install]\nWantedBy=timers.target\n"
    )
}

/// A name of a unit has letters, digits and a few signs (systemd.unit(5)).
fn unit_name(experiment: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = plain_name(experiment).replace(|c| !is_good(c), "-");
    let name = match name.strip_prefix("schedlab-") {
        Some(_) => name,
        None => format!("schedlab-{name}"),
    };
    match name == super::boot::UNIT {
        true => "schedlab-experiment-boot".to_owned(),
        false => name,
    }
}

fn calendar(every: &str) -> &str {
    let known = EVERY.iter().find(|(word, _)| *word == every);
    known.map_or(every, |(_, calendar)| calendar)
}

fn check_calendar(calendar: &str) -> Result<(), CliError> {
    let tried =
        doors::read::output_of(tool_command("systemd-analyze").args(["calendar", calendar]));
    match tried {
        Ok(output) if !output.status.success() => {
            let words: Vec<&str> = EVERY.iter().map(|(word, _)| *word).collect();
            let help = format!(
                "--every {}, or a calendar event of systemd.time(7)",
                words.join(" | ")
            );
            Err(CliError::usage(
                format!("`{calendar}` is no time of systemd"),
                help,
            ))
        }
        // systemd itself says so when it reads the timer.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_named_after_its_experiment() {
        assert_eq!(unit_name("night of 5%"), "schedlab-night-of-5-");
        assert_eq!(unit_name("schedlab-x"), "schedlab-x");
    }

    #[test]
    fn no_experiment_has_the_unit_of_a_run_across_boots() {
        for name in ["boot", "schedlab-boot"] {
            assert_ne!(unit_name(name), crate::commands::boot::UNIT);
        }
    }

    #[test]
    fn two_names_that_become_one_unit_do_not_overwrite_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str, file: &str| Units {
            name: unit_name(name),
            calendar: String::new(),
            directory: PathBuf::new(),
            file: file.into(),
            service: format!("ExecStart=\"/bin/schedlab\" \"run\" \"{file}\"\n"),
            timer: String::new(),
        };
        let first = of("a b", "/x/a.toml");
        first.check_free(dir.path()).unwrap();
        let unit = dir.path().join("schedlab-a-b.service");
        std::fs::write(unit, &first.service).unwrap();
        first.check_free(dir.path()).unwrap();
        for other in [of("a-b", "/x/b.toml"), of("a:b", "/x/a.toml.bak")] {
            let refused = other.check_free(dir.path()).unwrap_err();
            assert!(refused.to_string().contains("another file"), "{refused}");
        }
    }

    #[test]
    fn words_stand_for_calendar_events_and_others_are_taken_as_they_are() {
        assert_eq!(calendar("night"), "*-*-* 01:30:00");
        assert_eq!(calendar("Mon *-*-* 04:00"), "Mon *-*-* 04:00");
    }
}
