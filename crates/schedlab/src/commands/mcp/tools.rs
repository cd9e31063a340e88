//! The tools of an agent: a table, and the work of each.

mod experiments;
mod history;
mod results;

use super::Referee;
use super::request::Arguments;
use serde_json::{Map, Value, json};

/// One tool.
pub struct Tool {
    pub name: &'static str,
    pub text: &'static str,
    pub keys: &'static [Key],
    work: fn(&Referee, &Arguments) -> Result<String, String>,
}

/// A key of a tool's arguments: its name, its type in JSON, what it is; required ones first.
pub struct Key {
    pub name: &'static str,
    pub form: &'static str,
    pub is_required: bool,
    pub text: &'static str,
}

const fn key(name: &'static str, form: &'static str, text: &'static str) -> Key {
    Key {
        name,
        form,
        is_required: false,
        text,
    }
}

const fn required(name: &'static str, form: &'static str, text: &'static str) -> Key {
    Key {
        is_required: true,
        ..key(name, form, text)
    }
}

const ARM: Key = required(
    "arm",
    "string",
    "the proposal: nice=5, slice=0.3ms, batch+slice=3ms, base_slice=1ms",
);
const BASELINE: Key = key(
    "baseline",
    "string",
    "what it is compared with; usually default",
);
const WORKLOAD: Key = key("workload", "string", "wakeup, wakeup:50%, hackbench:1,4");
const COMMAND: Key = key(
    "command",
    "array",
    "a program as the workload, word by word",
);
const TARGET: Key = key("target", "string", "local, vm:debian:sid, ssh:HOST");
const IN_PLACE: Key = key(
    "in_place",
    "string",
    "always: arms take turns in one process, which is much faster; needs a workload that can",
);
const TURN: Key = key("turn", "string", "length of such a turn: 50ms");
const WASHOUT: Key = key(
    "washout",
    "string",
    "time before each turn that does not count",
);
const DURATION: Key = key("duration", "string", "length of a trial: 2s");
const SMALLEST: Key = key("smallest_effect", "string", "less is `same`: 2%");
const BUDGET: Key = key("budget", "string", "time for it: 1m (usual), 5m");
const JOB: Key = required(
    "job",
    "integer",
    "number that compare, tune, bisect, confirm or plan gave",
);

/// All tools, in the order in which an agent needs them.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "what_can_i_name",
        text: "The limits of this session, or a list of what can be named",
        keys: &[
            key("list", "string", "arms, workloads, metrics or targets"),
            key("word", "string", "only what has this word in it"),
        ],
        work: experiments::list_names,
    },
    Tool {
        name: "check",
        text: "Would this comparison run here? Measures nothing and costs nothing",
        keys: &[
            ARM, BASELINE, WORKLOAD, COMMAND, TARGET, IN_PLACE, TURN, WASHOUT, DURATION,
        ],
        work: experiments::check,
    },
    Tool {
        name: "plan",
        text: "Measures some blocks as a job, and says what it takes to see a change of this size. Says \
               nothing of which arm is better",
        keys: &[
            ARM,
            required("effect", "string", "change that is to be seen: 3%"),
            BASELINE,
            WORKLOAD,
            COMMAND,
            TARGET,
            IN_PLACE,
            TURN,
            WASHOUT,
            DURATION,
            BUDGET,
        ],
        work: experiments::plan,
    },
    Tool {
        name: "compare",
        text: "Asks whether an arm is better than the baseline. The question is registered and pays from \
               the error of the session, then measured as a job: ask status",
        keys: &[
            ARM, BASELINE, WORKLOAD, COMMAND, TARGET, IN_PLACE, TURN, WASHOUT, DURATION, SMALLEST,
            BUDGET,
        ],
        work: experiments::compare,
    },
    Tool {
        name: "tune",
        text: "Races settings beside the baseline as a job, then asks whether the one that is ahead is better: \
               that is one question, registered before its fresh blocks, and it pays. The race says nothing",
        keys: &[
            required(
                "vary",
                "array",
                "settings, combined: slice=0.1ms..10ms log; nice=0,5,10",
            ),
            BASELINE,
            WORKLOAD,
            COMMAND,
            TARGET,
            IN_PLACE,
            TURN,
            WASHOUT,
            DURATION,
            SMALLEST,
            key("budget", "string", "time for all of it: 5m (usual)"),
        ],
        work: experiments::tune,
    },
    Tool {
        name: "bisect",
        text: "Looks for the commit that made a scheduler or a program worse, as a job. All its calls are one \
               question, which pays before it is measured",
        keys: &[
            required(
                "program",
                "string",
                "scheduler, or path that the build makes",
            ),
            required("repository", "string", "one of those that are allowed"),
            required("good", "string", "commit at which it was as it should be"),
            required("bad", "string", "commit at which it is worse"),
            WORKLOAD,
            COMMAND,
            DURATION,
            key("budget", "string", "time for all of it: 5m (usual)"),
        ],
        work: experiments::bisect,
    },
    Tool {
        name: "status",
        text: "How far a job is, or its answer: accepted or not, by what, what was in force, what is left. \
               Without a job: all jobs. Looking early does no harm",
        keys: &[
            key("job", "integer", "number of the job"),
            key(
                "wait_s",
                "integer",
                "wait so many seconds for its end, at most 60",
            ),
        ],
        work: results::status,
    },
    Tool {
        name: "explain",
        text: "Why the answer of a job is what it is, with the doubts about it",
        keys: &[JOB],
        work: results::explain,
    },
    Tool {
        name: "report",
        text: "A section of the report on a job",
        keys: &[
            JOB,
            key(
                "section",
                "string",
                "summary (usual), comparisons, machine or full",
            ),
        ],
        work: results::report,
    },
    Tool {
        name: "history",
        text: "What was asked in this session and before, by you and by others of this user: questions with \
               their prices and answers, newest first",
        keys: &[
            key(
                "word",
                "string",
                "only questions with this word: slice, wakeup",
            ),
            key(
                "job",
                "integer",
                "only what asked the same as this job, or about the same work",
            ),
        ],
        work: history::history,
    },
    Tool {
        name: "confirm",
        text: "Asks the question of an accepted job once more, on fresh blocks with another seed, as a \
               question of its own: its estimate is free of the luck of having been chosen",
        keys: &[JOB, BUDGET],
        work: experiments::confirm,
    },
    Tool {
        name: "cancel",
        text: "Ends a job in order: all that it changed is undone. Its price is paid",
        keys: &[JOB],
        work: results::cancel,
    },
    Tool {
        name: "more",
        text: "The rest of an answer that was cut",
        keys: &[required(
            "handle",
            "integer",
            "number in the last line of the answer",
        )],
        work: results::more,
    },
];

impl Tool {
    /// Arguments as a JSON schema.
    pub fn schema(&self) -> Map<String, Value> {
        let property = |key: &Key| {
            let mut property = json!({ "type": key.form, "description": key.text });
            if key.form == "array" {
                property["items"] = json!({ "type": "string" });
            }
            (key.name.to_owned(), property)
        };
        let properties: Map<String, Value> = self.keys.iter().map(property).collect();
        let required = self.keys.iter().filter(|key| key.is_required);
        let required: Vec<&str> = required.map(|key| key.name).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

/// Does what a call asks for. Each answer, also one that refuses, says what is left of the session.
pub fn call_tool(
    referee: &Referee,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<String, String> {
    let noted = Value::Object(arguments.clone());
    let answer =
        find_work(name, &arguments).and_then(|tool| (tool.work)(referee, &Arguments(arguments)));
    referee.journal.note_call(name, &noted, &answer);
    let with_ledger = |text: &String| {
        let cut = referee.pages.cut_text(text.trim_end());
        format!("{cut}\n{}", ledger_line(referee))
    };
    match &answer {
        Ok(text) => Ok(with_ledger(text)),
        Err(text) => Err(with_ledger(text)),
    }
}

fn find_work(name: &str, arguments: &Map<String, Value>) -> Result<&'static Tool, String> {
    let names = || TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>();
    let shown: String = name.chars().take(60).collect();
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| {
        let all = names().join(", ");
        format!("refused: there is no tool `{shown}`; the tools are {all}")
    })?;
    let unknown = |name: &&String| tool.keys.iter().all(|key| key.name != name.as_str());
    match arguments.keys().find(unknown) {
        Some(unknown) => {
            let unknown: String = unknown.chars().take(60).collect();
            let keys: Vec<&str> = tool.keys.iter().map(|key| key.name).collect();
            Err(format!(
                "refused: `{unknown}` is no argument of {shown}; it has {}",
                keys.join(", ")
            ))
        }
        None => Ok(tool),
    }
}

/// `ledger: session 7, 4 questions, 1 accepted, 4.095 % of 5 % left; 512 of 1200 s left`
fn ledger_line(referee: &Referee) -> String {
    let (whole, left) = referee.jobs.time_left();
    let time = format!("{} of {} s left", left.as_secs(), whole.as_secs());
    let books = referee.ledger.read_books();
    let state = books
        .as_ref()
        .ok()
        .and_then(|books| books.find_session(referee.session));
    match state {
        Some(state) => format!(
            "ledger: session {}, {}, {} accepted, {:.3} % of {:.0} % left; {time}",
            referee.session,
            report::format_count(state.questions.len(), "question"),
            state.count_accepted(),
            100.0 * state.wealth.left(),
            100.0 * state.session.error
        ),
        None => format!("ledger: not readable; {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_tool_is_and_what_no_tool_takes_is_refused_by_its_name() {
        let refused = find_work("rm", &Map::new()).err().unwrap();
        assert!(
            refused.contains("`rm`") && refused.contains("compare"),
            "{refused}"
        );
        let Value::Object(arguments) = json!({ "arm": "nice=5", "prepare": "rm -r /" }) else {
            unreachable!()
        };
        let refused = find_work("compare", &arguments).err().unwrap();
        assert!(refused.contains("`prepare`"), "{refused}");
    }

    #[test]
    fn the_list_of_tools_itself_is_short() {
        let bytes: usize = TOOLS
            .iter()
            .map(|tool| tool.text.len() + Value::Object(tool.schema()).to_string().len())
            .sum();
        assert!(bytes < 9_000, "{bytes}");
    }
}
