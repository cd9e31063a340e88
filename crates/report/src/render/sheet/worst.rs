//! Traces of the worst latencies of one cell: how long, who ran meanwhile, and the files.

use super::{Sheet, SheetRow, plain_cell};
use crate::quantity::with_unit;
use crate::table::across::WorstOfCell;
use crate::table::across::worst::WorstOfArm;

pub fn of_worst(worst: &WorstOfCell) -> Sheet {
    let row = |label: &str, cell: fn(&WorstOfArm) -> String| SheetRow {
        labels: vec![label.to_owned()],
        cells: worst
            .arms
            .iter()
            .map(|arm| plain_cell(cell(arm), String::new()))
            .collect(),
    };
    let mut rows = vec![
        row("worst of all trials", |arm| in_ns(arm.took_ns)),
        row("of that without CPU", |arm| {
            arm.waited_ns.map_or("-".to_owned(), in_ns)
        }),
        row("CPU", |arm| {
            arm.cpu.map_or("-".to_owned(), |cpu| cpu.to_string())
        }),
        row("ran there meanwhile", |arm| ran(arm, 0)),
        row("and", |arm| ran(arm, 1)),
        row("thread", |arm| match arm.thread_name.as_str() {
            "" => arm.thread.to_string(),
            name => format!("{name} {}", arm.thread),
        }),
    ];
    if worst.arms.iter().any(|arm| arm.lost > 0) {
        rows.push(row("events lost", |arm| arm.lost.to_string()));
    }
    let what = match worst.of.as_str() {
        "lateness" => "lateness".to_owned(),
        of => format!("{of} latency"),
    };
    let files = worst.arms.iter();
    let files: Vec<String> = files
        .map(|arm| format!("{}: {}", arm.arm, arm.file))
        .collect();
    Sheet {
        title: format!("{}: traces of the worst {what}", worst.cell),
        caption: format!(
            "One maximum of each arm, which explains and decides nothing; \"without CPU\" is how \
             long its thread could have run and did not, by the kernel's events: where that is \
             little, it waited for another thread. Open a trace in https://ui.perfetto.dev (the \
             file stays on your machine): {}",
            files.join("; ")
        ),
        labels: vec![String::new()],
        columns: worst.arms.iter().map(|arm| arm.arm.clone()).collect(),
        rows,
        ..Sheet::default()
    }
}

fn in_ns(value: u64) -> String {
    with_unit(value as f64, "ns")
}

fn ran(arm: &WorstOfArm, index: usize) -> String {
    arm.ran.get(index).map_or("-".to_owned(), |ran| {
        format!("{} {}", ran.name, in_ns(ran.time_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Ran;

    #[test]
    fn each_arm_has_its_worst_and_the_caption_names_the_files() {
        let arm = |name: &str, waited_ns| WorstOfArm {
            arm: name.to_owned(),
            block: 2,
            file: format!("trials/{name}/kept/worst.pftrace"),
            took_ns: 5_135_925,
            waited_ns,
            thread: 17,
            thread_name: "wakeup-worker".to_owned(),
            cpu: Some(1),
            ran: vec![Ran {
                name: "hog".to_owned(),
                time_ns: 5_117_000,
            }],
            events: 1211,
            lost: 0,
        };
        let sheet = of_worst(&WorstOfCell {
            cell: "wakeup 100%".to_owned(),
            of: "wakeup".to_owned(),
            arms: vec![arm("default", Some(5_117_000)), arm("batch", None)],
        });
        assert_eq!(
            sheet.title,
            "wakeup 100%: traces of the worst wakeup latency"
        );
        let row = |label: &str| {
            let row = sheet.rows.iter().find(|row| row.labels == [label]);
            let cells = row.map(|row| row.cells.iter().map(|cell| cell.text.as_str()));
            cells.map(Iterator::collect::<Vec<_>>).unwrap_or_default()
        };
        assert_eq!(row("worst of all trials"), ["5.14 ms", "5.14 ms"]);
        assert_eq!(row("of that without CPU"), ["5.12 ms", "-"]);
        assert_eq!(row("ran there meanwhile"), ["hog 5.12 ms"; 2]);
        assert!(row("events lost").is_empty());
        let file = "batch: trials/batch/kept/worst.pftrace";
        assert!(sheet.caption.contains(file), "{}", sheet.caption);
    }
}
