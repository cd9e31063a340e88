//! Arms with a sched_ext scheduler, and arms without one, which must have none.

mod attachment;
mod ending;
mod loader;
mod operations;
mod refusal;

use super::ingredient::{
    Around, At, Change, Form, Ground, Ingredient, Undone, problem, twice_error,
};
use super::requirement::{Asked, Value};
use crate::stop::Stop;
use attachment::{Attached, Limits};
use collect::tasks::Pid;
use collect::{sched_ext, tools};
pub use ending::Ending;
use load::Keys;
use load::units::written_duration;
use model::readings::{self, ALL_TASKS, ATTACHES, NONE, REACH, REJECTED, SCHEDULER};
use model::{
    Arm, Class, Fact, Invalid, KeyDef, Problem, SchedExt, Scheduler, SchedulerBinary, Severity,
    TrialFile, Warning, Workload,
};
use serde_json::Map;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable in which an agent is told where schedulers are:
/// directories, separated by colons, searched after PATH.
pub const SCHEDULERS_VARIABLE: &str = "SCHEDLAB_SCHEDULERS";

pub struct OwnScheduler;

impl Ingredient for OwnScheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[
                KeyDef::new(
                    "scheduler",
                    "name, path, or `{ git = …, rev = …, package = … }`",
                    "",
                    "sched_ext program that is attached for the trials of the arm; one of a commit of a \
                     repository is built before the run.",
                ),
                KeyDef::new("args", "list of words", "", "Arguments of the scheduler."),
                KeyDef::new(
                    "attach-limit",
                    "duration",
                    "`\"2m\"`",
                    "Longest time until the scheduler is in force.",
                ),
            ]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let program = keys.text_or_table("scheduler", |keys| {
            let mut part = |key| keys.get::<String>(key).unwrap_or_default();
            let revision = part("rev");
            let at = if revision.is_empty() { "" } else { "#" };
            format!("{}@git:{}{at}{revision}", part("package"), part("git"))
        });
        let args = keys.words("args");
        let attach_limit_ns = keys.duration("attach-limit");
        if program.is_none() && args.is_some() {
            keys.refuse(Invalid::new("args", "`args` without a `scheduler`"));
        }
        arm.scheduler = program.map(|program| Scheduler {
            program,
            args: args.unwrap_or_default(),
            attach_limit_ns,
            built_from: None,
        });
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, serde_json::Value>) {
        let Some(scheduler) = &arm.scheduler else {
            return;
        };
        keys.insert("scheduler".to_owned(), scheduler.pinned_name().into());
        if !scheduler.args.is_empty() {
            keys.insert("args".to_owned(), scheduler.args.as_slice().into());
        }
        if let Some(ns) = scheduler.attach_limit_ns {
            keys.insert("attach-limit".to_owned(), written_duration(ns).into());
        }
    }

    fn texts(&self) -> &'static [&'static str] {
        &["scheduler", "args"]
    }

    fn forms(&self) -> &'static [Form] {
        &[
            (
                "scx_NAME [ARGS]",
                "a sched_ext scheduler: 'scx_rusty --slice-us-overutil 5000'; a path works too, and \
                 a commit of a repository: 'scx_rusty@git:../scx#main'",
            ),
            (
                "loader:[scx_NAME/]MODE",
                "the scheduler with the options of a mode of scx_loader, by its configuration on this \
                 machine: loader:gaming, loader:scx_lavd/powersave",
            ),
        ]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let head = change.split([':', ' ']).next().unwrap_or(change);
        let mode = change.strip_prefix(loader::PREFIX);
        if mode.is_none() && !change.starts_with("scx_") && !head.contains('/') {
            return None;
        }
        let read = match mode {
            Some(words) => loader::scheduler(Path::new("/"), words),
            None => parse_scheduler(change),
        };
        let scheduler = match read {
            Ok(scheduler) => scheduler,
            Err(invalid) => return Some(Err(invalid)),
        };
        let second = scheduler.command_line();
        Some(match arm.scheduler.replace(scheduler) {
            Some(first) => Err(twice_error("scheduler", first.command_line(), second)),
            None => Ok(()),
        })
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        let program = arm.scheduler.as_ref().map(|s| s.program.as_str());
        let dashed = program.into_iter().flat_map(parts);
        match dashed.into_iter().find(|part| part.starts_with('-')) {
            None => Ok(()),
            Some(part) => Err(Invalid::new(
                "scheduler",
                format!("`{part}` would be an option of the program that reads it"),
            )
            .with_remedy("leave out the dash in front of it, or write a path as ./-NAME")),
        }
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let Some(wanted) = &arm.scheduler else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        let mut lacks = |what: String, remedy: &str| problems.push(problem(arm, what, remedy));
        let program = &wanted.program;
        if !sched_ext::is_supported(root) {
            let what = format!("this kernel has no sched_ext for {program}");
            let remedy =
                "use a kernel >= 6.12 with CONFIG_SCHED_CLASS_EXT, or a VM: `--vm debian:sid`";
            lacks(what, remedy);
        }
        if find(program).is_none() {
            let what = format!("the scheduler {program} was not found");
            lacks(what, &how_to_get(program));
        }
        if !rustix::process::geteuid().is_root() {
            let what = format!("loading {program} needs root");
            lacks(what, "run as root, or in a VM: `--vm debian:sid`");
        }
        problems
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        vec![Asked::of_machine(SCHEDULER, value(arm))]
    }

    fn make_change<'a>(
        &self,
        arm: &'a Arm,
        workload: &'a Workload,
    ) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(InForce {
            arm,
            workload,
            before: None,
            attached: None,
        }))
    }
}

/// The words of a program: its path, or package, repository and revision.
fn parts(program: &str) -> Vec<&str> {
    let Some((package, place)) = program.split_once("@git:") else {
        return vec![program];
    };
    let revision = place.rsplit_once('#').map(|(_, revision)| revision);
    [package, place].into_iter().chain(revision).collect()
}

/// The remedy for a program that is not here.
pub fn how_to_get(program: &str) -> String {
    match program.contains('/') {
        true => "give the path of a program on the target".to_owned(),
        false => format!("run: `schedlab scheduler install {program}`; or give the path of one"),
    }
}

fn parse_scheduler(text: &str) -> Result<Scheduler, Invalid> {
    let wrong = |what: String| Invalid::new("scheduler", what);
    let words = shlex::split(text);
    let words = words.ok_or_else(|| wrong(format!("`{text}` has an open quotation mark")))?;
    let mut words = words.into_iter();
    let program = words.next();
    Ok(Scheduler {
        program: program.ok_or_else(|| wrong("the scheduler has no program".to_owned()))?,
        args: words.collect(),
        attach_limit_ns: None,
        built_from: None,
    })
}

/// The state that sched_ext is to have in one trial.
struct InForce<'a> {
    arm: &'a Arm,
    workload: &'a Workload,
    /// State before the trial; `None` on a kernel without sched_ext.
    before: Option<SchedExt>,
    /// The scheduler of the arm, where it has one.
    attached: Option<Attached>,
}

impl Change for InForce<'_> {
    fn step(&self) -> Option<(String, Duration)> {
        let scheduler = self.arm.scheduler.as_ref()?;
        let limit = Limits::for_scheduler(scheduler).attach_limit();
        Some((format!("attaching {}", scheduler.program), limit))
    }

    fn apply(&mut self, ground: Ground) -> Result<(), Stop> {
        self.before = sched_ext::read(ground.root);
        if let Some(scheduler) = &self.arm.scheduler {
            self.attached = Some(Attached::attach(
                ground,
                scheduler,
                Limits::for_scheduler(scheduler),
            )?);
        }
        Ok(())
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let attached = self.attached.as_ref().map(|attached| &attached.state);
        found(at.root, self.arm, self.before.as_ref(), attached)
    }

    fn warnings(&self, _: &Path) -> Vec<Warning> {
        let program = self.attached.as_ref().map(|attached| &attached.binary.path);
        let warning = program.and_then(|path| unweighted(self.arm, self.workload, Path::new(path)));
        warning.into_iter().collect()
    }

    fn check_alive(&mut self) -> Result<(), Stop> {
        let alive = self.attached.as_mut().map(Attached::check_alive);
        Ok(alive.unwrap_or(Ok(()))?)
    }

    fn find_ending(&mut self, root: &Path) -> Option<Ending> {
        self.attached.as_mut()?.find_ending(root)
    }

    fn reason(&mut self) -> Option<String> {
        self.attached.as_mut().and_then(Attached::reason)
    }

    fn process(&self) -> Option<Pid> {
        self.attached.as_ref().map(Attached::pid)
    }

    fn program(&self) -> Option<&SchedulerBinary> {
        self.attached.as_ref().map(|attached| &attached.binary)
    }

    fn undo_limit(&self) -> Duration {
        let attached = self.attached.as_ref();
        attached.map_or(Duration::ZERO, Attached::detach_limit)
    }

    fn undo(&mut self, root: &Path) -> Undone {
        let Some(attached) = self.attached.take() else {
            return Undone::default();
        };
        let (text, detached) = attached.detach(root);
        let name = "scheduler.log".to_owned();
        Undone {
            log: Some(TrialFile { name, text }),
            errors: detached.err().map(|e| e.to_string()).into_iter().collect(),
        }
    }
}

/// The warning of weights of cgroups that the scheduler passes over, or may pass over.
fn unweighted(arm: &Arm, workload: &Workload, program: &Path) -> Option<Warning> {
    if !has_weights(arm, workload) {
        return None;
    }
    let scheduler = arm.scheduler.as_ref()?.name();
    let why = match operations::has_operation(program, operations::SET_WEIGHT) {
        Some(true) => return None,
        Some(false) => "does not implement cgroup_set_weight, so weights of cgroups have no effect",
        None => {
            "may not implement cgroup_set_weight (its program does not tell), so weights of \
             cgroups may have no effect"
        }
    };
    Some(Warning {
        severity: Severity::Caution,
        what: format!(
            "{}: {scheduler} {why}: what is read back is what the kernel was told, not what the \
             scheduler does with it",
            arm.name
        ),
        remedy: "leave out the weights, or limit all arms by `cpus`".to_owned(),
    })
}

fn has_weights(arm: &Arm, workload: &Workload) -> bool {
    let mut placements = workload.placements();
    arm.weight.is_some() || placements.any(|placement| placement.weight.is_some())
}

/// The name of the scheduler that the arm asks for, or that there is none.
fn value(arm: &Arm) -> Value {
    let Some(scheduler) = &arm.scheduler else {
        return Value::Is(NONE.to_owned());
    };
    match expected_name(&scheduler.program) {
        Some((name, version)) => Value::Scheduler {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        },
        None => Value::Any,
    }
}

/// The schedulers of the scx project are called by their program without `scx_`. The program of
/// an installed version has that version in its file name: `scx_lavd@1.1.3`.
fn expected_name(program: &str) -> Option<(&str, Option<&str>)> {
    let file = Path::new(program).file_name()?.to_str()?;
    let name = file.strip_prefix("scx_")?;
    Some(match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    })
}

/// Reads the scheduler in force. It must be the one that the trial attached, once.
fn found(
    root: &Path,
    arm: &Arm,
    before: Option<&SchedExt>,
    attached: Option<&SchedExt>,
) -> Vec<Fact> {
    let now = sched_ext::read(root);
    let mut scheduler = readings::scheduler_fact(now.as_ref());
    if let Some(attached) = attached {
        let name = readings::scheduler_fact(Some(attached)).found;
        scheduler.wanted = Some(value(arm).wanted_value(&name));
    }
    let mut facts = vec![scheduler];
    let (Some(now), Some(before)) = (now, before) else {
        return facts;
    };
    let has_one = arm.scheduler.is_some();
    let attaches = before.enable_seq + u64::from(has_one);
    let found = Fact::new(ATTACHES, now.enable_seq.to_string());
    facts.push(found.with_wanted(attaches.to_string()));
    if has_one {
        let rejected = now.nr_rejected.saturating_sub(before.nr_rejected);
        facts.push(Fact::new(REJECTED, rejected.to_string()).with_wanted("0"));
        facts.extend(now.switch_all.map(|all| reach(all, arm)));
    }
    facts
}

/// A partial scheduler runs only what is in the class SCHED_EXT.
fn reach(all: bool, arm: &Arm) -> Fact {
    let policy = arm.policy.as_ref();
    let is_ext = policy.is_some_and(|p| p.class == Class::Ext);
    match (all, is_ext) {
        (true, _) => Fact::new(REACH, ALL_TASKS),
        (false, true) => Fact::new(REACH, "tasks in SCHED_EXT"),
        (false, false) => {
            let found = "only tasks in SCHED_EXT (add policy = \"ext\" to the arm)";
            Fact::new(REACH, found).with_wanted(ALL_TASKS)
        }
    }
}

/// Path of the program: as written, on PATH, or among the installed schedulers.
pub fn find(program: &str) -> Option<PathBuf> {
    find_with(program, directories())
}

/// Path of the program: as written, on PATH, or in one of the directories.
pub fn find_with(program: &str, directories: Vec<PathBuf>) -> Option<PathBuf> {
    which::which(program)
        .ok()
        .or_else(|| tools::find_in(program, directories))
}

/// Directories of installed schedulers that an agent was told.
pub fn directories() -> Vec<PathBuf> {
    let installed = env::var_os(SCHEDULERS_VARIABLE).unwrap_or_default();
    env::split_paths(&installed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
    use model::Scheduler;

    /// sched_ext after a trial attached `rusty_1.1`, five attaches after boot.
    fn rusty() -> SchedExt {
        SchedExt {
            state: "enabled".to_owned(),
            ops: "rusty_1.1".to_owned(),
            enable_seq: 5,
            nr_rejected: 3,
            switch_all: Some(true),
        }
    }

    /// Why the trial of an arm with this program is void when sched_ext is found like this.
    fn disagreement(program: Option<&str>, now: &SchedExt) -> Option<String> {
        let all = now.switch_all.map_or("", |all| if all { "1" } else { "0" });
        let file = |name: &str| format!("sys/kernel/sched_ext/{name}");
        let root = tree(&[
            (&file("state"), now.state.as_str()),
            (&file("root/ops"), now.ops.as_str()),
            (&file("enable_seq"), &now.enable_seq.to_string()),
            (&file("nr_rejected"), &now.nr_rejected.to_string()),
            (&file("switch_all"), all),
        ]);
        let mut arm = Arm::unchanged("arm");
        arm.scheduler = program.map(|program| Scheduler {
            program: program.to_owned(),
            args: Vec::new(),
            attach_limit_ns: None,
            built_from: None,
        });
        let before = SchedExt {
            state: "disabled".to_owned(),
            ops: String::new(),
            enable_seq: 4,
            ..rusty()
        };
        let attached = program.map(|_| rusty());
        let facts = found(root.path(), &arm, Some(&before), attached.as_ref());
        facts.iter().find_map(Fact::find_disagreement)
    }

    #[test]
    fn the_scheduler_that_was_attached_must_stay() {
        let rusty_arm = Some("/opt/scx_rusty");
        assert_eq!(disagreement(rusty_arm, &rusty()), None);
        let says = |now: SchedExt, expected: &str| {
            let why = disagreement(rusty_arm, &now).unwrap();
            assert!(why.contains(expected), "{why}");
        };
        let (ops, state) = ("rusty_1.2".to_owned(), "disabling".to_owned());
        says(SchedExt { ops, ..rusty() }, "was rusty_1.2, not rusty_1.1");
        says(
            SchedExt { state, ..rusty() },
            "was rusty_1.1, disabling, not",
        );
        let anew = SchedExt {
            enable_seq: 6,
            ..rusty()
        };
        says(anew, "sched_ext attaches since boot was 6, not 5");
        let rejected = SchedExt {
            nr_rejected: 5,
            ..rusty()
        };
        says(rejected, "tasks that the scheduler rejected was 2, not 0");
        let partial = SchedExt {
            switch_all: Some(false),
            ..rusty()
        };
        says(partial, "add policy = \"ext\"");
    }

    #[test]
    fn the_name_of_a_scheduler_is_wanted_whatever_was_attached() {
        let why = disagreement(Some("scx_lavd"), &rusty()).unwrap();
        assert_eq!(why, "the sched_ext scheduler was rusty_1.1, not lavd");
        assert_eq!(disagreement(Some("./mine"), &rusty()), None);
    }

    #[test]
    fn a_version_in_the_name_of_the_program_is_the_one_that_the_kernel_must_name() {
        assert_eq!(disagreement(Some("scx_rusty@1.1"), &rusty()), None);
        let why = disagreement(Some("/cache/bin/scx_rusty@1.2"), &rusty()).unwrap();
        assert_eq!(why, "the sched_ext scheduler was rusty_1.1, not rusty_1.2");
    }

    #[test]
    fn a_scheduler_that_came_and_went_voids_an_arm_without_one() {
        let gone = SchedExt {
            state: "disabled".to_owned(),
            ops: String::new(),
            ..rusty()
        };
        let why = disagreement(None, &gone).unwrap();
        assert!(why.contains("attaches since boot was 5, not 4"), "{why}");
        let never = SchedExt {
            enable_seq: 4,
            ..gone
        };
        assert_eq!(disagreement(None, &never), None);
    }

    #[test]
    fn a_partial_scheduler_is_wanted_where_the_workload_is_in_its_class() {
        let mut arm = Arm::unchanged("ext");
        arm.policy = Some(model::Policy::new(Class::Ext));
        assert_eq!(reach(false, &arm).find_disagreement(), None);
        arm.policy = None;
        assert!(reach(false, &arm).find_disagreement().is_some());
    }
}
