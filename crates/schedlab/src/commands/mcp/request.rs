//! From the arguments of a tool to words of a command line, which the reins have seen.

use super::reins::Reins;
use crate::args::{Cli, Command};
use clap::Parser;
use serde_json::{Map, Value};

/// Longest text of an argument.
const MOST_BYTES: usize = 300;
/// Words of a command that is a workload.
const MOST_WORDS: usize = 64;

/// Arguments of a call, each known by its tool.
#[derive(Debug, Default)]
pub struct Arguments(pub Map<String, Value>);

impl Arguments {
    /// The text of an argument; none where it is not given.
    pub fn get_text(&self, name: &str) -> Result<Option<String>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => check_text(name, text).map(Some),
            Some(_) => Err(format!("`{name}` is a text in quotes")),
        }
    }

    /// A whole number; none where it is not given.
    pub fn get_number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(format!("`{name}` is a whole number")),
            },
        }
    }

    /// A number that must be there.
    pub fn take_number(&self, name: &str) -> Result<u64, String> {
        let number = self.get_number(name)?;
        number.ok_or_else(|| format!("`{name}` is missing"))
    }

    /// A text that must be there.
    pub fn take_text(&self, name: &str) -> Result<String, String> {
        let text = self.get_text(name)?;
        text.ok_or_else(|| format!("`{name}` is missing"))
    }

    /// Words of a command; empty where none is given.
    fn get_words(&self, name: &str) -> Result<Vec<String>, String> {
        let words = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(words)) if words.len() <= MOST_WORDS => words,
            Some(_) => return Err(format!("`{name}` is a list of at most {MOST_WORDS} texts")),
        };
        let text = |word: &Value| match word.as_str() {
            Some(word) => check_text(name, word),
            None => Err(format!("`{name}` is a list of texts")),
        };
        words.iter().map(text).collect()
    }
}

fn check_text(name: &str, text: &str) -> Result<String, String> {
    if text.len() > MOST_BYTES {
        return Err(format!(
            "`{name}` has {} bytes, and at most {MOST_BYTES} are read",
            text.len()
        ));
    }
    match text.chars().any(char::is_control) {
        true => Err(format!("`{name}` has a control character")),
        false => Ok(text.to_owned()),
    }
}

/// Options of an experiment that are passed on as they are.
const PASSED_ON: [(&str, &str); 5] = [
    ("turn", "--turn"),
    ("washout", "--washout"),
    ("in_place", "--in-place"),
    ("duration", "--duration"),
    ("smallest_effect", "--smallest-effect"),
];

/// Words of the experiment that the arguments ask for. The reins have looked at it.
pub fn experiment_words(arguments: &Arguments, reins: &Reins) -> Result<Vec<String>, String> {
    let arm = arguments.take_text("arm")?;
    let (words, target) = common_words(arguments, &[format!("--arm={arm}")])?;
    let Command::Propose(args) = parse_words("propose", &words)? else {
        return Err("these are not the words of a proposal".to_owned());
    };
    let wanted = crate::request::read_wanted(&args.experiment);
    let wanted = wanted.map_err(|error| crate::exit::Shown(error).to_string())?;
    reins.check_experiment(&target, &wanted.experiment)?;
    Ok(words)
}

/// Words of the race that the arguments ask for. The reins have looked at all candidates with which it
/// begins; those that join it differ from them in numbers alone.
pub fn race_words(arguments: &Arguments, reins: &Reins) -> Result<Vec<String>, String> {
    let vary = arguments.get_words("vary")?;
    if vary.is_empty() {
        return Err("`vary` is missing".to_owned());
    }
    let vary: Vec<String> = vary.iter().map(|text| format!("--vary={text}")).collect();
    let (words, target) = common_words(arguments, &vary)?;
    let Command::Tune(args) = parse_words("tune", &words)? else {
        return Err("these are not the words of a race".to_owned());
    };
    let experiment = crate::commands::tune::read_first_round(&args);
    let experiment = experiment.map_err(|error| crate::exit::Shown(error).to_string())?;
    reins.check_experiment(&target, &experiment)?;
    Ok(words)
}

/// Words of the bisection that the arguments ask for. The reins have looked at it.
pub fn bisection_words(arguments: &Arguments, reins: &Reins) -> Result<Vec<String>, String> {
    let program = arguments.take_text("program")?;
    let repository = arguments.take_text("repository")?;
    let build = reins.check_bisection(&program, &repository)?;
    let mut more = vec![program, format!("--repository={repository}")];
    more.extend(build.map(|command| format!("--build={command}")));
    for end in ["good", "bad"] {
        more.push(format!("--{end}={}", arguments.take_text(end)?));
    }
    let (mut words, target) = common_words(arguments, &more)?;
    // The arms are the commits, and they are built here.
    words.retain(|word| !word.starts_with("--arm=") && !word.starts_with("--target="));
    let Command::Bisect(args) = parse_words("bisect", &words)? else {
        return Err("these are not the words of a bisection".to_owned());
    };
    let mut given = args.experiment;
    given.words.arms = vec!["default".to_owned()];
    let wanted = crate::request::read_wanted(&given);
    let wanted = wanted.map_err(|error| crate::exit::Shown(error).to_string())?;
    reins.check_experiment(&target, &wanted.experiment)?;
    Ok(words)
}

/// Words that all experiments have, with `more` in front of the command, and the target.
fn common_words(arguments: &Arguments, more: &[String]) -> Result<(Vec<String>, String), String> {
    let baseline = arguments.get_text("baseline")?;
    let baseline = baseline.unwrap_or_else(|| "default".to_owned());
    let target = arguments.get_text("target")?;
    let target = target.unwrap_or_else(|| "local".to_owned());
    let command = arguments.get_words("command")?;
    let mut words = vec![format!("--arm={baseline}")];
    words.extend_from_slice(more);
    words.push(format!("--target={target}"));
    match (arguments.get_text("workload")?, command.is_empty()) {
        (Some(workload), true) => words.push(format!("--workload={workload}")),
        (None, false) => {}
        (Some(_), false) => return Err("give `workload` or `command`, not both".to_owned()),
        (None, true) => return Err("`workload` is missing".to_owned()),
    }
    for (name, option) in PASSED_ON {
        if let Some(text) = arguments.get_text(name)? {
            words.push(format!("{option}={text}"));
        }
    }
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend(command);
    }
    Ok((words, target))
}

/// The words as this program reads them.
fn parse_words(command: &str, words: &[String]) -> Result<Command, String> {
    let first = ["schedlab", command].map(str::to_owned);
    let cli = Cli::try_parse_from(first.iter().chain(words));
    Ok(cli.map_err(|error| error.to_string())?.command)
}

/// Options in front of the command, if there is one.
pub fn with_options(words: &[String], options: &[String]) -> Vec<String> {
    let end = words.iter().position(|word| word == "--");
    let (experiment, command) = words.split_at(end.unwrap_or(words.len()));
    [experiment, options, command].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        match value {
            Value::Object(map) => Arguments(map),
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_text_that_is_no_text_is_refused_with_its_name() {
        let long = "x".repeat(MOST_BYTES + 1);
        for value in [json!(5), json!("a\nb"), json!(long)] {
            let given = arguments(json!({ "arm": value }));
            let refused = given.get_text("arm").unwrap_err();
            assert!(refused.contains("`arm`"), "{refused}");
        }
        assert_eq!(arguments(json!({})).get_text("arm"), Ok(None));
    }

    #[test]
    fn options_stand_before_the_command() {
        let words = ["--arm=a", "--", "make", "-j"].map(str::to_owned);
        let all = with_options(&words, &["--quiet".to_owned()]);
        assert_eq!(all, ["--arm=a", "--quiet", "--", "make", "-j"]);
    }
}
