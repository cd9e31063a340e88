//! The table that is printed.

use crate::demand::DEMANDS;
use crate::read::Jobs;
use crate::round::{Pair, Round};

/// One line for each form of demand.
pub fn print_round(number: u32, round: &Round) {
    println!("round {number}, rt-app at {} ns a loop", round.ns_per_loop);
    for Pair {
        demand,
        burnwait,
        rt_app,
    } in &round.pairs
    {
        let (name, own, other) = (demand.name(), line(burnwait), line(rt_app));
        println!("  {name:22} burnwait {own}; rt-app {other}");
    }
}

fn line(jobs: &Jobs) -> String {
    let Jobs {
        work_error,
        late_p50_us,
        late_p90_us,
    } = jobs;
    let percent = 100.0 * work_error;
    format!("work {percent:+.1} %, late {late_p50_us:.0} us, p90 {late_p90_us:.0} us")
}

/// Medians over the rounds, with the least and the most of them, in Markdown.
pub fn print(rounds: &[Round]) {
    println!("\n| demand | | error of the work | lateness, median | p90 |\n|---|---|---|---|---|");
    for (index, demand) in DEMANDS.iter().enumerate() {
        let pairs = || rounds.iter().map(move |round| round.pairs[index]);
        for (name, of) in [
            ("burnwait", (|pair| pair.burnwait) as fn(Pair) -> Jobs),
            ("rt-app", |pair| pair.rt_app),
        ] {
            let over = |figure: fn(Jobs) -> f64| spread(pairs().map(|pair| figure(of(pair))));
            println!(
                "| {} | {name} | {} % | {} us | {} us |",
                demand.name(),
                over(|jobs| 100.0 * jobs.work_error.abs()),
                over(|jobs| jobs.late_p50_us),
                over(|jobs| jobs.late_p90_us)
            );
        }
        let ratio = spread(pairs().map(|pair| pair.burnwait.late_p50_us / pair.rt_app.late_p50_us));
        println!("| | ratio | | {ratio} | |");
    }
}

/// `12 (9.5 to 14)`: median, least and most.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let median = stats::summary::median(&values).unwrap_or(f64::NAN);
    format!("{median:.2} ({least:.2} to {most:.2})")
}
