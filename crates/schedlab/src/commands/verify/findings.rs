//! Findings of `verify`, a line each.

use crate::args::VerifyArgs;
use crate::exit::CliError;
use crate::measure::build;
use crate::output::say;
use crate::results_argument::Opened;
use crate::signature;
use load::Printed;
use model::printable::one_line;
use model::{Cell, PlannedTrial, Trial, Workload};
use report::ReportError;
use report::verify::{self, Verification};
use results::capsule::Capsule;
use results::{ResultSet, RunState, capsule, files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// More of one kind say nothing new.
const MOST_OF_A_KIND: usize = 20;
/// Names of figures in the last line.
const MOST_NAMES: usize = 6;

#[derive(Default)]
pub struct Findings {
    fine: Vec<String>,
    unknown: Vec<String>,
    wrong: Vec<String>,
    /// Figures that come from no log and from no output, and how many of each.
    taken: BTreeMap<String, usize>,
    /// Metrics among them that decide.
    deciding_taken: Vec<String>,
    /// Trials whose arm the evidence proves.
    proven: Option<usize>,
    /// Numbers that were computed again.
    recomputed: usize,
    /// Who signed, as far as that is known.
    signed: Signed,
    /// Nobody said by other means which capsule it must be.
    anyones: bool,
}

#[derive(Default)]
enum Signed {
    #[default]
    ByNobody,
    /// A signature of a key that nobody vouched for.
    ByAKey,
    By(String),
}

impl Signed {
    fn in_words(&self) -> String {
        match self {
            Signed::ByNobody => "signed by nobody".to_owned(),
            Signed::ByAKey => "signed with a key that no --signer named".to_owned(),
            Signed::By(who) => format!("signed by {}", one_line(who)),
        }
    }
}

/// A run that measured all that its plan asked for, by its own word. Machines that shared their blocks
/// have none, and of merged runs nobody wrote down how each of them ended.
fn says_it_is_whole(run: &ResultSet) -> bool {
    let manifest = &run.manifest;
    manifest.state == RunState::Done
        && !manifest.together
        && !manifest.warnings.iter().any(runner::says_budget_ended)
}

impl Findings {
    pub fn count_wrong(&self) -> usize {
        self.wrong.len()
    }

    pub fn print(&self) {
        let kinds = [
            ("ok     ", &self.fine),
            ("unknown", &self.unknown),
            ("DIFFERS", &self.wrong),
        ];
        for (word, lines) in kinds {
            for line in lines {
                say!("  {word}  {}", one_line(line));
            }
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "ok": self.fine,
            "unknown": self.unknown,
            "differs": self.wrong,
            "not_recomputed": self.taken_as_they_are(),
            "deciding_not_recomputed": self.deciding_taken,
            "proven_trials": self.proven,
            "recomputed": self.recomputed,
            "signed": self.signed.in_words(),
        })
    }

    /// Strength of the whole in one line: what is proven, what was computed again, what is
    /// taken on trust, and who signed.
    pub fn conclusion(&self) -> String {
        let proven = match self.proven {
            Some(trials) => format!("the arm of {}", report::format_count(trials, "trial")),
            None => "nothing".to_owned(),
        };
        let taken = self.taken_as_they_are().join(", ");
        let deciding = match self.deciding_taken.as_slice() {
            [] => String::new(),
            names => format!(
                "of the metrics that decide, not recomputed: {}; ",
                one_line(&names.join(", "))
            ),
        };
        format!(
            "{deciding}proven: {proven}; recomputed: {}; taken on trust: {taken}; {}",
            report::format_count(self.recomputed, "number"),
            self.signed.in_words()
        )
    }

    /// Readings of the machine that measured, which nothing here can make again.
    pub fn taken_as_they_are(&self) -> Vec<String> {
        let mut taken = Vec::new();
        let count: usize = self.taken.values().sum();
        if count > 0 {
            let mut names: Vec<&str> = self.taken.keys().map(String::as_str).collect();
            let more = names.len() > MOST_NAMES;
            names.truncate(MOST_NAMES);
            names.extend(more.then_some("…"));
            let names = names.join(", ");
            taken.push(format!(
                "{count} figures that are in no histogram and no output ({})",
                one_line(&names)
            ));
        }
        taken.push("the readings of the evidence".to_owned());
        taken.push(files::SYSTEM.to_owned());
        taken.push("what programs printed".to_owned());
        if self.anyones {
            taken.push("who packed it (--fingerprint or --signer tell)".to_owned());
        }
        taken
    }

    pub fn bytes(&mut self, opened: &Opened, args: &VerifyArgs) -> Result<(), CliError> {
        self.anyones = args.fingerprint.is_none() && args.signer.is_none();
        let sums = capsule::check_sums(opened.dir(), opened.is_capsule())?;
        let Some((tampering, fingerprint)) = sums else {
            let what = format!("bytes: there is no {}, so nobody knows them", capsule::SUMS);
            match opened.is_capsule() || args.fingerprint.is_some() {
                true => self.wrong.push(what),
                false => self
                    .unknown
                    .push(format!("{what}; `schedlab pack` writes it")),
            }
            return Ok(());
        };
        if tampering.is_empty() {
            self.fine.push(format!("bytes: fingerprint {fingerprint}"));
        }
        self.wrong.extend(tampering.iter().map(ToString::to_string));
        if let Some(wanted) = &args.fingerprint
            && *wanted != fingerprint
        {
            self.wrong.push(format!(
                "bytes: the fingerprint is {fingerprint}, not {wanted}: another capsule than the one \
                 that was meant"
            ));
        }
        Ok(())
    }

    pub fn signature(&mut self, opened: &Opened, args: &VerifyArgs) -> Result<(), CliError> {
        let path = opened.dir().join(capsule::SIGNATURE);
        if path.symlink_metadata().is_err() {
            if args.signer.is_some() {
                self.wrong.push("signature: there is none".to_owned());
            }
            return Ok(());
        }
        // Also that it is a file and none beyond all measure.
        files::read(&path)?;
        let text = files::read(&opened.dir().join(capsule::SUMS))?;
        match &args.signer {
            Some(allowed) => self.signer(&text, &path, allowed)?,
            None => match signature::signing_key(&text, &path) {
                Ok(key) => {
                    self.signed = Signed::ByAKey;
                    self.unknown.push(format!(
                        "signature: {key}; --signer FILE tells whether that is somebody you know"
                    ));
                }
                Err(why) => self.unknown.push(format!("signature: not checked: {why}")),
            },
        }
        Ok(())
    }

    fn signer(&mut self, text: &[u8], signature: &Path, allowed: &Path) -> Result<(), CliError> {
        if !allowed.exists() {
            return Err(CliError::usage(
                format!("there is no list of signers {}", allowed.display()),
                "a line for each: NAME KEYTYPE KEY, as in ~/.ssh/allowed_signers; see ALLOWED SIGNERS \
                 in ssh-keygen(1)",
            ));
        }
        match signature::signer(text, signature, allowed) {
            Ok(who) => {
                self.fine.push(format!("signature: {who}"));
                self.signed = Signed::By(who);
            }
            Err(why) => self.wrong.push(format!("signature: {why}")),
        }
        Ok(())
    }

    /// The target has no keys but those that it reads.
    pub fn target(&mut self, results: &ResultSet) {
        let spec = &results.experiment.target;
        match machines::find_def(spec) {
            Err(_) if results.experiment.import_source().is_some() => {}
            Err(error) => self.unknown.push(format!("experiment.json: {error}")),
            Ok(_) => {
                let read = machines::find_abilities(spec);
                let wrong = read.err().map(|error| format!("experiment.json: {error}"));
                self.wrong.extend(wrong);
            }
        }
    }

    /// Nothing of the plan was taken away.
    pub fn plan(&mut self, results: &ResultSet) {
        if results.experiment.import_source().is_some() {
            let what = "plan.json: it is the order of imported runs, which no seed made";
            self.unknown.push(what.to_owned());
            return;
        }
        let before = self.wrong.len();
        let runs = results.merged_runs();
        let is_merged = !results.manifest.sources.is_empty();
        let places: u32 = runs
            .iter()
            .map(|run| self.plan_of_run(run, is_merged))
            .sum();
        if self.wrong.len() == before {
            self.fine.push(match runs.len() {
                1 => format!(
                    "plan: of the first {places} places, all are measured, decided, set aside or given up"
                ),
                runs => format!(
                    "plan: of the {places} places of {runs} merged runs, all are measured, decided or \
                     given up, or set aside"
                ),
            });
        }
        if !results.strays.is_empty() {
            self.unknown.push(format!(
                "trials: what holds no trial was left out: {}",
                results.strays.join(", ")
            ));
        }
    }

    /// Number of places up to the last that has a trial.
    fn plan_of_run(&mut self, run: &ResultSet, is_merged: bool) -> u32 {
        let (experiment, plan) = (&run.experiment, &run.plan);
        if *plan != schedule::plan_blocks(experiment) {
            self.wrong.push(
                "plan.json: is not what this schedlab makes of the experiment and its seed"
                    .to_owned(),
            );
        }
        let trials: Vec<Trial> = run.trials.iter().map(|s| s.trial.clone()).collect();
        let last = trials.iter().map(|t| t.place.block).max().unwrap_or(0);
        if is_merged && last < experiment.stop.max_blocks {
            let (seed, blocks) = (plan.seed, experiment.stop.max_blocks);
            self.wrong.push(format!(
                "manifest.json: the merged run with the seed {seed} had {blocks} blocks, and there is no \
                 trial after block {last}"
            ));
        }
        let mut missing = match !is_merged && says_it_is_whole(run) {
            true => runner::find_unmeasured(experiment, plan, &trials),
            false => runner::find_unexplained(experiment, plan, &trials, run.manifest.together),
        };
        let set_aside = runner::find_set_aside(plan, &run.manifest.warnings);
        missing.retain(|place| {
            set_aside
                .get(&place.cell)
                .is_none_or(|after| place.block <= *after)
        });
        let name = |place: &&PlannedTrial| {
            format!(
                "place {} of the plan ({}, {}, block {}): has no trial, though its cell was not \
                 decided and its arm not given up",
                place.index,
                plan.cells[place.cell].name,
                experiment.arms[place.arm].name,
                place.block
            )
        };
        self.differ(missing.iter().map(name), "places");
        trials.last().map_or(0, |t| t.place.index + 1)
    }

    /// The first of many, and how many more there are.
    fn differ(&mut self, lines: impl ExactSizeIterator<Item = String>, of: &str) {
        let more = lines.len().saturating_sub(MOST_OF_A_KIND);
        self.wrong.extend(lines.take(MOST_OF_A_KIND));
        if more > 0 {
            self.wrong.push(format!("and {more} more {of}"));
        }
    }

    pub fn evidence(&mut self, results: &ResultSet) {
        if let Some(from) = results.experiment.import_source() {
            let what = format!(
                "evidence: there is none, since {} measured these runs",
                from.tool
            );
            return self.unknown.push(what);
        }
        let before = self.wrong.len();
        let mut proven = 0;
        let mut unproven = Vec::new();
        for stored in results.trials.iter().filter(|stored| stored.trial.is_ok()) {
            let (trial, place) = (&stored.trial, &stored.trial.place);
            let arm = &results.experiment.arms[place.arm];
            let judge = match trial.has_ended_early() {
                true => agent::judge_until_end,
                false => agent::judge_evidence,
            };
            match judge(arm, &trial.result.evidence) {
                Ok(()) => proven += 1,
                Err(why) => unproven.push(format!(
                    "trial {}, {}, {}: counts, but {why}",
                    place.index, trial.cell, trial.arm
                )),
            }
        }
        self.differ(unproven.into_iter(), "trials without proof");
        self.proven = Some(proven);
        if self.wrong.len() == before {
            self.fine.push(format!(
                "evidence: proves the arm in all {proven} trials that count"
            ));
        }
    }

    pub fn numbers(&mut self, results: &ResultSet, in_capsule: bool) -> Result<(), CliError> {
        let log_of = |workload: &Workload, load: &_, metric: &str| {
            load::log_of(workload, load, metric).or_else(|| agent::collector_log_of(metric))
        };
        let trials = verify::verify_histograms(results, &log_of);
        self.taken = trials.taken.clone();
        self.verification("trials: figures that come from histograms", trials);
        self.outputs(results);
        self.deciding_taken = self.deciding_among_taken(results);
        self.remade(results, capsule::REPORT, in_capsule, verify::verify_report)?;
        let certificate = results.dir.join(files::CERTIFICATE);
        if certificate.symlink_metadata().is_ok() {
            self.remade(
                results,
                files::CERTIFICATE,
                true,
                verify::verify_certificate,
            )?;
        }
        Ok(())
    }

    /// Figures that programs printed, from their output that is stored.
    fn outputs(&mut self, results: &ResultSet) {
        if results.experiment.import_source().is_some() {
            return;
        }
        let cpus = results.system.cpus;
        let again = |workload: &Workload, cell: &Cell, [stdout, stderr]: [String; 2]| {
            let calibration = results.calibrations.get(&cell.name);
            let printed = Printed { stdout, stderr };
            load::read_again(workload, cell.load, cpus, calibration, printed)
        };
        let outputs = verify::verify_outputs(results, &again, &mut self.taken);
        if outputs.numbers > 0 || !outputs.differences.is_empty() {
            self.verification("trials: figures that programs printed", outputs);
        }
    }

    /// Names of metrics that decide and have figures that were not computed again.
    fn deciding_among_taken(&self, results: &ResultSet) -> Vec<String> {
        let workloads = results.experiment.workloads.iter();
        let deciding = workloads.flat_map(|workload| &workload.metrics);
        let names: BTreeSet<&String> = deciding
            .filter(|metric| self.taken.contains_key(*metric))
            .collect();
        names.into_iter().cloned().collect()
    }

    /// A file that is made from the trials.
    fn remade(
        &mut self,
        results: &ResultSet,
        name: &str,
        needed: bool,
        compare: impl Fn(&ResultSet, &str) -> Result<Verification, ReportError>,
    ) -> Result<(), CliError> {
        let path = results.dir.join(name);
        if path.symlink_metadata().is_err() {
            let what = format!("report: there is no {name}");
            match needed {
                true => self.wrong.push(what),
                false => self.unknown.push(what),
            }
            return Ok(());
        }
        let said = files::read(&path)?;
        match compare(results, &String::from_utf8_lossy(&said)) {
            Ok(verification) => self.verification(&format!("{name}: numbers"), verification),
            Err(error) => self.wrong.push(format!("{name}: {error}")),
        }
        Ok(())
    }

    /// The report for people, which only the schedlab that packed it makes word for word.
    pub fn pages(&mut self, results: &ResultSet, head: &Capsule) -> Result<(), CliError> {
        let packer = head.packed_by();
        let is_ours = packer == build();
        let made = crate::commands::report::for_capsule(results)?;
        for (name, text) in made
            .iter()
            .filter(|(name, _)| capsule::PAGES.contains(name))
        {
            let path = results.dir.join(name);
            if path.symlink_metadata().is_err() {
                self.wrong.push(format!("report: there is no {name}"));
                continue;
            }
            let said = files::read(&path)?;
            let line = verify::first_difference(&String::from_utf8_lossy(&said), text);
            match (line, is_ours) {
                (None, _) => self.fine.push(format!("{name}: is what the results give")),
                (Some(line), true) => self.wrong.push(format!(
                    "{name}: line {line} is not what the results give; `schedlab report` makes it anew"
                )),
                (Some(_), false) => self.unknown.push(format!(
                    "{name}: schedlab {packer} made it, and this one writes it in other words; trust \
                     what `schedlab report` makes of the results"
                )),
            }
        }
        Ok(())
    }

    fn verification(&mut self, what: &str, verification: Verification) {
        let Verification {
            numbers,
            differences,
            ..
        } = verification;
        self.recomputed += numbers;
        if differences.is_empty() {
            self.fine.push(format!("{what}: {numbers} recomputed"));
        }
        let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
        self.wrong.extend(lines);
    }
}
