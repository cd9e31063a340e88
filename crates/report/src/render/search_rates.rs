//! Rates that a search tried in a trial: its `search.csv`.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    pub rate_per_sec: f64,
    pub quantile_ns: f64,
    pub held: bool,
}

/// In the order of time; empty where there is no such file. A line that is no attempt
/// is left out: the picture is of what is known.
pub fn read_attempts(trial: &Path) -> Vec<Tried> {
    let file = results::files::read(&trial.join("search.csv"));
    file.map_or_else(|_| Vec::new(), |text| read(text.as_slice()))
}

fn read(file: impl std::io::Read) -> Vec<Tried> {
    let mut reader = csv::Reader::from_reader(file);
    let Ok(heads) = reader.headers().cloned() else {
        return Vec::new();
    };
    let at = |name| heads.iter().position(|head| head == name);
    let (rate, quantile, held) = (at("rate_per_sec"), at("quantile_ns"), at("held"));
    let lines = reader.records().filter_map(Result::ok);
    let positive = |text: &str| text.parse().ok().filter(|value: &f64| *value > 0.0);
    let attempt = |line: csv::StringRecord| {
        Some(Tried {
            rate_per_sec: positive(line.get(rate?)?)?,
            quantile_ns: positive(line.get(quantile?)?)?,
            held: line.get(held?)? == "true",
        })
    };
    lines.filter_map(attempt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_that_is_an_attempt_is_read_whatever_else_it_says() {
        let text = "rate_per_sec,quantile_ns,error_percent,held\n\
                    300.0,2566143,2.01,false\n400.0,,0,true\n150.0,9000,0.0,true\n";
        let found = read(text.as_bytes());
        let held: Vec<(f64, bool)> = found.iter().map(|t| (t.rate_per_sec, t.held)).collect();
        assert_eq!(held, [(300.0, false), (150.0, true)]);
        assert!(read("rate\n1\n".as_bytes()).is_empty());
        assert!(read_attempts(Path::new("/nowhere")).is_empty());
    }
}
