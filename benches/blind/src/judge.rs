use crate::Trial;
use crate::sealed::Pair;
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::fs;
use std::process::Command;

/// Judgement of a pair by schedlab.
#[derive(Debug)]
pub struct Judgement {
    verdict: String,
    change_percent: f64,
    low_percent: f64,
    high_percent: f64,
    trials: u64,
}

impl Judgement {
    /// 1 where the second is called slower, -1 where it is called faster.
    pub fn direction(&self) -> Option<f64> {
        match self.verdict.as_str() {
            "worse" => Some(1.0),
            "better" => Some(-1.0),
            _ => None,
        }
    }

    /// Does the interval hold this change?
    pub fn contains(&self, percent: f64) -> bool {
        (self.low_percent..=self.high_percent).contains(&percent)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judgement {
            verdict,
            change_percent,
            low_percent,
            high_percent,
            trials,
        } = self;
        write!(
            f,
            "{change_percent:+6.1}% [{low_percent:+.1}%, {high_percent:+.1}%]  {verdict}, {trials} trials"
        )
    }
}

/// Measures and judges a pair.
pub fn judge(trial: &Trial, pair: Pair) -> Result<Judgement, Box<dyn Error>> {
    let schedlab = trial.schedlab.as_deref().ok_or("no schedlab")?;
    let directory = tempfile::tempdir()?;
    let secret = directory.path().join("pair");
    fs::write(&secret, serde_json::to_string(&pair)?)?;
    let worker = std::env::current_exe()?;
    let text = format!(
        "name = \"blind\"\n[[arm]]\nname = \"first\"\ncpus = \"0\"\nenv = {{ PROGRAM = \"first\" }}\n\
         [[arm]]\nname = \"second\"\ncpus = \"0\"\nenv = {{ PROGRAM = \"second\" }}\n\
         [[workload]]\nname = \"messages\"\nkind = \"command\"\ncommand = [{:?}, \"work\", {:?}]\n\
         [[workload.metric]]\nname = \"took\"\nregex = 'took: (?<v>\\S+)'\nbetter = \"lower\"\nunit = \"s\"\n\
         [stop]\nsmallest-effect = \"1%\"\nmax-blocks = {}\n",
        worker, secret, trial.max_blocks
    );
    let file = directory.path().join("blind.toml");
    fs::write(&file, text)?;
    let results = directory.path().join("results");
    let run = Command::new(schedlab)
        .arg("run")
        .arg(&file)
        .arg("--wait")
        .arg("-o")
        .arg(&results)
        .output()?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into());
    }
    let report = Command::new(schedlab)
        .arg("report")
        .arg(&results)
        .args(["--format", "json"])
        .output()?;
    read_judgement(&serde_json::from_slice(&report.stdout)?)
}

fn read_judgement(report: &Value) -> Result<Judgement, Box<dyn Error>> {
    let all = report["comparisons"].as_array().ok_or("no comparisons")?;
    let found = all.iter().find(|comparison| comparison["metric"] == "took");
    let found = found.ok_or("the figure is not compared")?;
    let percent = |key: &str| found[key].as_f64().map(|ratio| 100.0 * (ratio - 1.0));
    Ok(Judgement {
        verdict: found["verdict"].as_str().unwrap_or_default().to_owned(),
        change_percent: percent("ratio").ok_or("no ratio")?,
        low_percent: percent("low").ok_or("no interval")?,
        high_percent: percent("high").ok_or("no interval")?,
        trials: report["trials"]["ok"].as_u64().unwrap_or_default(),
    })
}
