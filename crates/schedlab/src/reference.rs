//! `docs/reference.md`: everything that can be named, from the tables of the crates that
//! read it. `make reference` writes it; a test holds the file against the tables.

use crate::{exit, outcomes};
use agent::arm::tunables::{self, Tunable, Unit};
use agent::{COLLECTORS, CollectorDef};
use load::roles::{ANTAGONISTS, SERVERS, Table};
use load::{KindDef, LoadForms, Window};
use model::{Better, KeyDef, Load, MetricDef, Program, format_duration_ns};
use report::FORMATS;

/// The whole page.
pub fn page() -> String {
    let mut page = Page::default();
    page.line(INTRODUCTION);
    page.tables();
    page.arms();
    page.kinds();
    page.programs(&SERVERS, "[workload.server]");
    page.programs(&ANTAGONISTS, "[[workload.antagonist]]");
    page.metrics_of_all();
    page.collectors();
    page.tunables();
    page.targets();
    page.formats();
    page.exit_codes();
    page.text
}

const INTRODUCTION: &str = "\
# The reference

<!-- Made by `make reference` from the tables in the code. Do not edit. -->

Everything that an experiment file, the command line and the results can name.
[The guide](guide.md) explains how to use it.

Values in experiment files are written with their unit:

| form | examples |
|---|---|
| duration | `\"40us\"`, `\"0.3ms\"`, `\"5s\"`, `\"1m 30s\"`, `\"2h\"` |
| size | `\"64B\"`, `\"64KiB\"`, `\"2G\"` (units with one letter are binary) |
| rate | `\"250/s\"`, `\"10k/s\"`, `\"1.5M/s\"` |
| percent | `\"2%\"` |
| CPUs | a list (`\"0-3,5\"`) or a part of the CPUs that are there (`\"0%-50%\"`) |";

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        self.line(&format!("\n{heading}\n"));
    }

    /// A table; the columns that are empty in all rows are left out, and a table without rows.
    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let is_used = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
        let used: Vec<usize> = (0..head.len()).filter(is_used).collect();
        let line = |cells: &[String]| {
            let cells: Vec<String> = used.iter().map(|column| cell(&cells[*column])).collect();
            format!("| {} |", cells.join(" | "))
        };
        let names: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
        self.line(&line(&names));
        self.line(&format!("|{}", "---|".repeat(used.len())));
        for row in rows {
            self.line(&line(row));
        }
    }

    fn keys(&mut self, keys: &[KeyDef]) {
        let rows = keys.iter().map(|key| {
            let usual = key.usual.to_owned();
            vec![
                code(key.name),
                key.form.to_owned(),
                usual,
                key.text.to_owned(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        self.table(&["key", "value", "default", "meaning"], &rows);
    }

    /// `deciding` are the names of those that decide when a cell ends.
    fn metrics(&mut self, metrics: &[MetricDef], deciding: &[&str]) {
        let rows = metrics.iter().map(|metric| {
            let decides = match deciding.contains(&metric.name) {
                true => "yes",
                false => "",
            };
            vec![
                code(metric.name),
                metric.unit.to_owned(),
                better(metric.better).to_owned(),
                decides.to_owned(),
                metric.text.to_owned(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        self.table(&["metric", "unit", "better", "decides", "meaning"], &rows);
    }

    fn tables(&mut self) {
        self.heading("## Keys of experiment files");
        self.line(
            "Tables and their keys. The keys of one kind of workload, server or antagonist are \
             with the kind, those\nof a target with the target.",
        );
        for table in plan::TABLES {
            let header = match table.header {
                "" => "The experiment".to_owned(),
                // A table is code, a heading of ours is none.
                header if header.contains(['[', '{']) && !header.contains(" with ") => code(header),
                header => header.to_owned(),
            };
            self.heading(&format!("### {header}"));
            self.line(&format!("{}\n", table.text));
            self.keys(&table.all_keys());
        }
    }

    fn arms(&mut self) {
        self.heading("## Arms on the command line");
        self.line("`-a` takes an arm in one of these forms. The first arm is the baseline.\n");
        let rows = plan::forms().into_iter();
        let rows: Vec<_> = rows
            .map(|(form, text)| vec![code(form), (*text).to_owned()])
            .collect();
        self.table(&["form", "meaning"], &rows);
    }

    fn kinds(&mut self) {
        self.heading("## Kinds of workload");
        self.line(
            "`-w` takes `KIND` or `KIND:LOAD,LOAD`, such as `wakeup:50%,200%`, `hackbench:1,4` \
             or `http:2k/s`; a command\nfollows two dashes, as in `-- make -j8`. The metrics \
             that decide end a cell unless `metrics` names others.",
        );
        for kind in load::KINDS.iter() {
            self.kind(kind);
        }
    }

    fn kind(&mut self, kind: &KindDef) {
        self.heading(&format!("### `{}`", kind.name));
        self.line(&format!("{}.\n", capital(kind.summary)));
        let usual = &kind.usual;
        let aliases: Vec<String> = kind.aliases.iter().map(|alias| code(alias)).collect();
        let time_limit = usual.time_limit_ns.map(format_duration_ns);
        let time_limit = time_limit.unwrap_or("one minute and ten times the window".to_owned());
        let (form, load) = match usual.load {
            Load::One => (String::new(), String::new()),
            load => (
                format!("{}: {}", kind.load_unit, loads(kind.loads)),
                code(&load.to_string()),
            ),
        };
        let facts = [
            ("other names", aliases.join(", ")),
            ("loads", form),
            ("default load", load),
            ("window", window(kind)),
            ("default `time-limit`", time_limit),
            ("programs", packages(kind.programs)),
        ];
        let rows = facts.into_iter().filter(|(_, text)| !text.is_empty());
        let rows: Vec<_> = rows
            .map(|(name, text)| vec![name.to_owned(), text])
            .collect();
        self.table(&["property", "value"], &rows);
        self.line("");
        self.keys(kind.keys);
        self.line("");
        self.metrics(kind.metrics, kind.deciding);
    }

    /// Kinds of server or of antagonist.
    fn programs<W: ?Sized>(&mut self, table: &Table<W>, header: &str) {
        self.heading(&format!("## Kinds of {}", table.role));
        let rows = table.kinds.iter().map(|def| {
            let program = def.program.as_slice();
            vec![code(def.name), packages(program), def.summary.to_owned()]
        });
        let rows: Vec<_> = rows.collect();
        self.table(&["`kind`", "program", "meaning"], &rows);
        for def in table.kinds.iter().filter(|def| !def.keys.is_empty()) {
            self.heading(&format!("### `{header}` with `kind = \"{}\"`", def.name));
            self.keys(def.keys);
        }
    }

    fn metrics_of_all(&mut self) {
        self.heading("## Metrics of every trial");
        self.line("They explain a result and are never judged.\n");
        self.metrics(agent::METRICS, &[]);
        self.line("");
        self.metrics(agent::SURROUNDINGS, &[]);
    }

    fn collectors(&mut self) {
        self.heading("## Collectors");
        self.line(
            "`collect` names them. Metrics of tasks are given for each role; those of the server \
             and of antagonists\nhave `server_` and `antagonist_` before their names.",
        );
        for collector in COLLECTORS {
            self.collector(collector);
        }
        self.events();
    }

    fn events(&mut self) {
        self.heading("### Events of `perf`");
        self.line(
            "Events that `perf` names are metrics of their own, `perf_NAME`, for each role as \
             above. They are\nnames of perf list(1), with `:u` or `:k` behind them for one mode \
             only, tracepoints (`sched:sched_wakeup`)\nand raw events of the CPU (`r01c2`):\n",
        );
        let names: Vec<String> = agent::event_names().iter().map(|name| code(name)).collect();
        for line in names.chunks(5) {
            let comma = if line.last() == names.last() {
                "."
            } else {
                ","
            };
            self.line(&format!("{}{comma}", line.join(", ")));
        }
    }

    fn collector(&mut self, collector: &CollectorDef) {
        self.heading(&format!("### `{}`", collector.name));
        let usual = match collector.usual {
            true => "It is used unless `collect` says otherwise.",
            false => "It is used where `collect` names it.",
        };
        self.line(&format!(
            "{}. {usual}",
            capital(collector.text.trim_end_matches('.'))
        ));
        if !collector.metrics.is_empty() {
            self.line("");
            self.metrics(collector.metrics, &[]);
        }
    }

    fn tunables(&mut self) {
        self.heading("## Tunables");
        self.line(
            "Keys of `tunables` in an arm, and `NAME=VALUE` on the command line. Of several \
             files, the first that the\nkernel has is used. A kernel that has none of them is \
             an error, which names the nearest tunable.\n",
        );
        let mut rows: Vec<_> = tunables::TABLE.iter().map(tunable).collect();
        let feature = [
            "`feature.NAME`",
            "`on` or `off`",
            "",
            "`/sys/kernel/debug/sched/features`",
        ];
        let mut feature: Vec<String> = feature.map(str::to_owned).into();
        feature.push("A scheduler feature.".to_owned());
        rows.push(feature);
        self.table(&["tunable", "value", "range", "files", "meaning"], &rows);
    }

    fn targets(&mut self) {
        self.heading("## Targets");
        let rows = machines::TARGETS.iter();
        let rows: Vec<_> = rows
            .map(|t| vec![code(t.name), t.summary.to_owned()])
            .collect();
        self.table(&["`kind`", "meaning"], &rows);
        self.words_of_targets();
        for target in machines::TARGETS.iter().filter(|t| !t.keys.is_empty()) {
            self.heading(&format!("### `[target]` with `kind = \"{}\"`", target.name));
            self.keys(target.keys);
        }
    }

    fn words_of_targets(&mut self) {
        self.line("`--target WORD:NAME` of a command line:\n");
        let all = machines::TARGETS.iter();
        let words = all.flat_map(|target| target.shorts.iter().map(move |short| (target, short)));
        let rows = words.map(|(target, short)| {
            let form = format!("{}:{}", short.word, short.name.to_uppercase());
            let keys = format!("kind = \"{}\", {} = …", target.name, short.key);
            vec![code(&form), code(&keys), short.summary.to_owned()]
        });
        let rows: Vec<_> = rows.collect();
        self.table(&["word", "keys of `[target]`", "meaning"], &rows);
    }

    fn formats(&mut self) {
        self.heading("## Formats of reports");
        self.line(
            "`--format NAME` of `run` and `report`. Every run writes those that have a file into \
             `report/` of its results.\n",
        );
        let rows = FORMATS.iter().map(|format| {
            let file = format.file.map(code).unwrap_or_default();
            vec![code(format.name), file, format.summary.to_owned()]
        });
        let rows: Vec<_> = rows.collect();
        self.table(&["format", "file", "use"], &rows);
    }

    fn exit_codes(&mut self) {
        self.heading("## Exit codes");
        let rows = exit::CODES.iter();
        let rows: Vec<_> = rows
            .map(|(code, text)| vec![code.to_string(), (*text).to_owned()])
            .collect();
        self.table(&["code", "meaning"], &rows);
        self.outcomes();
    }

    fn outcomes(&mut self) {
        self.heading("### What is not measured never passes");
        self.line("Codes by what the results are; of JUnit the worst of its tests.\n");
        let head: Vec<&str> = ["the results"]
            .into_iter()
            .chain(outcomes::COMMANDS)
            .collect();
        let rows = outcomes::ROWS.iter().map(|row| {
            let cells = [row.state].into_iter().chain(row.answers);
            cells.map(str::to_owned).collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        self.table(&head, &rows);
        self.line(&format!("\n{}", outcomes::TEXT));
    }
}

fn tunable(tunable: &Tunable) -> Vec<String> {
    let (low, high) = tunable.range;
    let (value, range) = match tunable.unit {
        Unit::Nanoseconds => ("duration".to_owned(), range_of_times(low, high, 1)),
        Unit::Microseconds => ("duration".to_owned(), range_of_times(low, high, 1_000)),
        Unit::Milliseconds => ("duration".to_owned(), range_of_times(low, high, 1_000_000)),
        Unit::Count => ("number".to_owned(), format!("{low} to {high}")),
        Unit::Switch => ("`on` or `off`".to_owned(), String::new()),
        Unit::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| code(word)).collect();
            (words.join(", "), String::new())
        }
    };
    let files = tunable.candidates.iter().map(|file| format!("`/{file}`"));
    let files: Vec<String> = files.collect();
    vec![
        code(tunable.name),
        value,
        range,
        files.join(", "),
        tunable.text.to_owned(),
    ]
}

/// `low` may be -1, which is no time.
fn range_of_times(low: i64, high: i64, unit_ns: u64) -> String {
    let written = |number: i64| match u64::try_from(number) {
        Ok(number) => format_duration_ns(number.saturating_mul(unit_ns)),
        Err(_) => number.to_string(),
    };
    format!("{} to {}", written(low), written(high))
}

fn loads(forms: LoadForms) -> &'static str {
    match forms {
        LoadForms::Counts => "a number, or percent of the CPUs",
        LoadForms::CountsOrRates => "a number, percent of the CPUs, or a rate",
        LoadForms::FixedRates => "a rate",
        LoadForms::RatesOfTrials => {
            "a rate, or shares of the highest one, for which whole trials look"
        }
        LoadForms::Rates => "a rate, a search for the highest rate, or shares of it",
    }
}

/// Programs from PATH, with what to install.
fn packages(programs: &[Program]) -> String {
    let programs = programs.iter().map(|program| match program.package {
        Some(package) => format!("{} (Debian package `{package}`)", code(program.name)),
        None => code(program.name),
    });
    programs.collect::<Vec<_>>().join(", ")
}

fn window(kind: &KindDef) -> String {
    let usual = &kind.usual;
    let times = || {
        let [duration, warmup] = [usual.duration_ns, usual.warmup_ns].map(format_duration_ns);
        format!("{duration} after a warm-up of {warmup}")
    };
    match (kind.window, usual.duration_ns) {
        (Window::Phased, _) => times(),
        (Window::Own, _) => format!("{}, as the program itself measures it", times()),
        (Window::Whole, 0) => "the whole run of the program".to_owned(),
        (Window::Whole, shortest) => format!(
            "the whole run of the program, which takes at least {}",
            format_duration_ns(shortest)
        ),
    }
}

fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "",
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// The text of a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_reference_md_is_what_the_tables_say() {
        let file = include_str!("../../../docs/reference.md");
        catalogue::install();
        let page = page();
        let differs = file
            .lines()
            .zip(page.lines())
            .find(|(file, page)| file != page);
        assert!(
            file == page,
            "docs/reference.md is not what the tables say; `make reference` writes it anew: \
             {differs:?}"
        );
    }
}
