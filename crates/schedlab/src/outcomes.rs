//! States of results, and with which code each command that answers ends then: the table of
//! `docs/reference.md`. A test (`tests/tests/outcomes.rs`) makes each state and tries each cell.

/// Commands of the columns. `gate` has the results as the new run, `compare` as the second.
pub const COMMANDS: [&str; 8] = [
    "`report`",
    "`report --fail-on regression`",
    "`report --fail-on unknown`",
    "`report --format junit`",
    "`gate`",
    "`gate --fail-on unknown`",
    "`compare`",
    "`verify`",
];

/// State of results, and the answers in the order of [`COMMANDS`]. JUnit has the worst of its tests.
pub struct Row {
    pub state: &'static str,
    pub answers: [&'static str; COMMANDS.len()],
}

/// All states.
#[rustfmt::skip] // One line a state.
pub const ROWS: &[Row] = &[
    Row { state: "all is measured, and nothing is worse", answers: ["0", "0", "0", "passed", "0", "0", "0", "0"] },
    Row { state: "an arm is worse", answers: ["0", "5", "5", "failure", "5", "5", "0", "0"] },
    Row { state: "a comparison is not decided", answers: ["0", "0", "5", "skipped", "0", "5", "0", "0"] },
    Row { state: "a place of the plan has no trial that counts", answers: ["0", "4", "4", "error", "4", "4", "0", "0"] },
    Row { state: "there is no trial", answers: ["0", "4", "5", "error", "4", "5", "4", "1"] },
    Row { state: "all trials are void", answers: ["0", "4", "5", "error", "4", "5", "4", "0"] },
    Row { state: "the run is under way, or was killed", answers: ["0", "4", "4", "error", "4", "4", "4", "0"] },
    Row { state: "the run was interrupted", answers: ["0", "4", "4", "error", "4", "4", "4", "0"] },
    Row { state: "the run was ended by an error", answers: ["0", "4", "4", "error", "4", "4", "4", "0"] },
    Row { state: "a metric that decides is in no trial", answers: ["0", "4", "5", "error", "4", "5", "4", "0"] },
    Row { state: "a cell has no trial", answers: ["0", "4", "5", "error", "4", "5", "4", "1"] },
    Row { state: "an arm has no trial that counts in a cell", answers: ["0", "4", "5", "error", "4", "5", "4", "0"] },
    Row { state: "there is one arm", answers: ["0", "4", "4", "error", "0", "0", "0", "0"] },
    Row { state: "the last blocks of a finished run are missing", answers: ["0", "0", "5", "skipped", "0", "5", "0", "1"] },
];

/// Text below the table.
pub const TEXT: &str = "\
Where a finding and something that was not measured meet, the finding counts: 5 and not 4. The reason of each 4 is on \
standard error.
`run --fail-on` ends as `report --fail-on` would with the same results; an interrupted run ends with 130 all the same.
`--fail-on events` ends as `--fail-on regression`, and with 5 also where an arm has more of a rare event.
`gate` and `compare` look at both runs, so a stored run that is not whole gives 4, too.";
