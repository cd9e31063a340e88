//! The tasks that scx_microquanta favours where an arm names none: those that workloads
//! measure.

use model::Task;

/// Options that choose tasks, and those under which nothing is scheduled.
const OPTIONS: [&str; 7] = [
    "--cgroup",
    "--process",
    "--thread",
    "--monitor",
    "--update",
    "--version",
    "--help",
];
const SHORT_OPTIONS: [&str; 5] = ["-c", "-n", "-t", "-V", "-h"];

/// Arguments to add to the `given` ones so that the `measured` tasks are favoured.
pub(crate) fn task_arguments(given: &[String], measured: &[Task]) -> Vec<String> {
    if given.iter().any(|arg| is_settled_by(arg)) {
        return Vec::new();
    }
    let option = |task: &Task| match *task {
        Task::Thread(name) => ["--thread", name],
        Task::Process(name) => ["--process", name],
    };
    let all = measured.iter().flat_map(option);
    all.map(str::to_owned).collect()
}

/// True if an argument names the tasks itself, also as `--thread=NAME`, `-tNAME` and
/// `--help-stats`.
fn is_settled_by(arg: &str) -> bool {
    let mut options = OPTIONS.iter().chain(&SHORT_OPTIONS);
    options.any(|option| arg.starts_with(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|a| (*a).to_owned()).collect();
        task_arguments(&given, &[Task::Thread("wakeup-*"), Task::Process("nginx")])
    }

    #[test]
    fn an_arm_that_names_tasks_gets_no_others() {
        for given in ["--thread", "--thread=x", "-tx", "-n", "--cgroup=a.slice"] {
            assert_eq!(added(&[given]), [""; 0], "{given}");
        }
    }

    #[test]
    fn an_arm_that_names_none_gets_those_that_are_measured() {
        let added = added(&["--runtime", "20us", "-p", "40us"]);
        assert_eq!(added, ["--thread", "wakeup-*", "--process", "nginx"]);
    }
}
