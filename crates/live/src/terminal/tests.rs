use super::*;
use crate::scene::Life;
use model::{Latencies, Pace};
use ratatui::backend::TestBackend;
use report::picture::{CellPicture, ComparisonPicture, LevelPicture, Picture};
use report::{Standing, Verdict};
use results::Now;

fn standing(blocks: usize, change: f64, half: f64) -> Standing {
    Standing {
        blocks,
        change,
        low: Some(change - half),
        high: Some(change + half),
        e_value: 4.0,
        verdict: Verdict::Unknown,
    }
}

fn pace() -> Pace {
    Pace {
        over_ns: 2_000_000_000,
        run_ns: 2_400_000_000,
        run_delay_ns: 6_200_000,
        switches: 10_800,
        migrations: Some(240),
        sched_ext: [("DISPATCH_KEEP_LAST".to_owned(), 8)].into(),
        scheduler: [("nr_queued".to_owned(), 3.0), ("pc_lc".to_owned(), 12.3456)].into(),
        latencies: [(
            "request".to_owned(),
            Latencies {
                count: 1800,
                sum_ns: 2_160_000_000,
            },
        )]
        .into(),
        cost_ns: 100_000,
    }
}

fn scene() -> Scene {
    let comparison = ComparisonPicture {
        metric: "wakeup_p99".to_owned(),
        arm: "batch".to_owned(),
        verdict: Verdict::Unknown,
        verdict_word: "unknown".to_owned(),
        change: "-44.0%".to_owned(),
        interval: "[-56.0%, -30.0%]".to_owned(),
        blocks: "5, 4 min more".to_owned(),
        e_value: 4.0,
        levels: Some(("80 us".to_owned(), "45 us".to_owned())),
        by_difference: false,
        smallest: 0.05,
        narrowing: vec![standing(3, 0.6, 0.3), standing(5, 0.56, 0.13)],
        points: vec![(1, 0.6), (2, 0.5), (3, 0.58)],
        values: vec![
            (80_000.0, 45_000.0),
            (82_000.0, 44_000.0),
            (79_000.0, 46_000.0),
        ],
        unit: "ns".to_owned(),
    };
    Scene {
        picture: Picture {
            name: "demo\u{1b}[31m".to_owned(),
            state: "running".to_owned(),
            arms: vec!["default".to_owned(), "batch".to_owned()],
            trials: "10 trials: 9 ok, 1 void".to_owned(),
            decides: 20.0,
            smallest_effect: 0.05,
            cells: vec![CellPicture {
                name: "wakeup 100%".to_owned(),
                comparisons: vec![comparison],
                levels: vec![LevelPicture {
                    metric: "wakeup_p99".to_owned(),
                    arms: vec!["80 us".to_owned(), "45 us".to_owned()],
                }],
            }],
            excluded: vec!["1 x void: the window was stolen (batch)".to_owned()],
            ..Picture::default()
        },
        now: Some(Now {
            block: 6,
            cell: "wakeup 100%".to_owned(),
            arm: "batch".to_owned(),
            attempt: 2,
            step: "measuring".to_owned(),
            pace: Some(pace()),
            since_unix_ns: 7_000_000_000,
            elapsed_ns: 60_000_000_000,
            left_ns: Some(120_000_000_000),
            block_unix_ns: 5_000_000_000,
        }),
        life: Life::UnderWay,
        nodes: Vec::new(),
        unix_ns: 10_000_000_000,
    }
}

fn drawn(view: &View, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(columns.into());
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>())
        .collect()
}

fn view() -> View {
    let mut view = View::default();
    view.take_scene(scene());
    view
}

fn press(view: &mut View, code: KeyCode) -> Option<Left> {
    view.press(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn eighty_by_twenty_four_has_the_run_its_comparison_and_how_it_narrowed() {
    let lines = drawn(&view(), 80, 24);
    let all = lines.join("\n");
    assert!(
        lines[0].contains("demo") && !lines[0].contains('\u{1b}'),
        "{all}"
    );
    assert!(lines[0].contains("1m5s · at most 1m55s left"), "{all}");
    assert!(
        lines[0].trim_end().ends_with("10 trials: 9 ok, 1 void"),
        "{all}"
    );
    let now = "block 6 · wakeup 100% · batch · attempt 2 · measuring, 3s";
    assert_eq!(lines[1].trim(), now, "{all}");
    let pace = "now: request 900/s, mean 1.2 ms, 1.20 CPUs, run delay 3.1 ms/s, 5400 switch";
    assert!(lines[2].trim().starts_with(pace), "{all}");
    assert!(lines[4].starts_with(" > wakeup_p99"), "{all}");
    assert!(
        lines[4].contains("-44.0%") && lines[4].contains('●'),
        "{all}"
    );
    assert!(lines[4].contains("▰▰▱▱▱ 46%"), "{all}");
    assert!(lines[4].trim_end().ends_with("5, 4 min more"), "{all}");
    assert!(
        all.contains("batch against default: -44.0% [-56.0%, -30.0%], 80 us → 45 us"),
        "{all}"
    );
    assert!(
        all.contains(" ! 1 x void: the window was stolen (batch)"),
        "{all}"
    );
    assert!(
        lines[23].contains("q leave the view, the run goes on"),
        "{all}"
    );
}

#[test]
fn a_cell_has_its_blocks_both_distributions_and_the_medians() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Enter), None);
    let all = drawn(&view, 80, 24).join("\n");
    assert!(
        all.contains("wakeup 100%: wakeup_p99, batch: every block"),
        "{all}"
    );
    assert!(all.contains("44 us") && all.contains("82 us"), "{all}");
    assert!(all.contains("median") && all.contains("80 us"), "{all}");
    press(&mut view, KeyCode::Char('n'));
    assert!(
        drawn(&view, 80, 24)
            .join("\n")
            .contains("This run is on one machine.")
    );
    press(&mut view, KeyCode::Esc);
    assert_eq!(view.shown, Shown::Overview);
}

#[test]
fn keys_choose_among_what_is_there_and_leave() {
    let mut view = view();
    press(&mut view, KeyCode::Down);
    assert_eq!(view.chosen, 0, "there is one comparison");
    press(&mut view, KeyCode::Up);
    assert_eq!(view.chosen, 0);
    assert_eq!(press(&mut view, KeyCode::Char('q')), Some(Left::Quit));
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(ctrl_c), Some(Left::Interrupted));
}

#[test]
fn every_size_of_a_terminal_has_something_to_show() {
    for (columns, rows) in [(1, 1), (20, 5), (40, 10), (57, 13), (200, 60)] {
        for code in [KeyCode::Char('o'), KeyCode::Enter, KeyCode::Char('n')] {
            for mut view in [view(), View::default()] {
                press(&mut view, code);
                drawn(&view, columns, rows);
            }
        }
    }
    assert!(drawn(&view(), 20, 5).join(" ").contains("too small"));
}

#[test]
fn a_run_that_was_killed_is_not_said_to_be_under_way() {
    let mut view = View::default();
    view.take_scene(Scene {
        life: Life::Lost,
        now: None,
        ..scene()
    });
    let lines = drawn(&view, 80, 24);
    assert!(lines[0].contains("was killed"), "{lines:?}");
}
