//! Words of a command line: arms, workloads, times and sizes. A line of the input is one of
//! them, and all together are an experiment.

use crate::experiment::{is_shown, is_whole};
use plan::{Document, Key, Words, parse_workload};

/// Arms, and after an empty line workloads, as `-a` and `-w` take them.
pub fn arms(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    catalogue::install();
    for line in text.lines() {
        let _ = plan::parse_arm(line).map_err(is_shown);
        let _ = parse_workload(line).map_err(is_shown);
        let _ = plan::parse_duration(line);
        let _ = plan::parse_size(line);
        let _ = plan::parse_fraction(line);
        let _ = plan::parse_load(line);
        let _ = vm::keys::parse_topology(line);
        let _ = model::parse_cpu_list(line);
        let _ = model::choose_cpus(line, &[0, 1, 5]);
    }
    let (arms, workloads) = text.split_once("\n\n").unwrap_or((text, "wakeup"));
    let words = Words {
        arms: arms.lines().map(str::to_owned).collect(),
        workloads: workloads.lines().map(str::to_owned).collect(),
        keys: vec![Key::new("--aa", "aa", text.len().is_multiple_of(2))],
        ..Words::default()
    };
    match Document::from_words(&words).and_then(|document| document.read()) {
        Ok((experiment, _)) => is_whole(&experiment),
        Err(error) => is_shown(error),
    }
}
