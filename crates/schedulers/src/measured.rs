//! The tasks that workloads measure, as scx_microquanta names them. An arm that
//! names none means these: the threads of the native loads and of the native
//! server, and the programs that workloads start by name. What makes requests to a
//! server is not among them, nor is the program of a `command`, which has any name.

/// Thread names, as in crates/load.
const THREADS: [&str; 2] = ["wakeup-*", "serve-*"];

const PROCESSES: [&str; 5] = ["hackbench", "schbench", "memcached", "nginx", "http-echo"];

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

/// What to add to the `given` arguments.
pub(crate) fn tasks(given: &[String]) -> Vec<String> {
    if given.iter().any(|arg| is_settled_by(arg)) {
        return Vec::new();
    }
    let threads = THREADS.map(|name| ["--thread", name]);
    let processes = PROCESSES.map(|name| ["--process", name]);
    let all = threads.into_iter().chain(processes).flatten();
    all.map(str::to_owned).collect()
}

/// Also as `--thread=NAME`, `-tNAME` and `--help-stats`.
fn is_settled_by(arg: &str) -> bool {
    let mut options = OPTIONS.iter().chain(&SHORT_OPTIONS);
    options.any(|option| arg.starts_with(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(given: &[&str]) -> usize {
        let given: Vec<String> = given.iter().map(|a| (*a).to_owned()).collect();
        tasks(&given).len()
    }

    #[test]
    fn an_arm_that_names_tasks_gets_no_others() {
        for given in ["--thread", "--thread=x", "-tx", "-n", "--cgroup=a.slice"] {
            assert_eq!(added(&[given]), 0, "{given}");
        }
    }

    #[test]
    fn an_arm_that_names_none_gets_those_that_are_measured() {
        assert_eq!(added(&["--runtime", "20us", "-p", "40us"]), 14);
    }
}
