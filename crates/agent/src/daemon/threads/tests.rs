use super::*;
use std::process::Command;

const HERE: &str = "/";

/// A shell that this process is neither above nor below, which starts another process whenever a line
/// is written to its pipe.
struct Shell {
    pid: Pid,
    folder: tempfile::TempDir,
}

impl Shell {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let inner = "exec 3<> pipe; while read -r line <&3; do sleep 600 & done";
        let script = format!("nice -n 3 sh -c '{inner}' > /dev/null 2>&1 & echo $!");
        let mut outer = Command::new("sh");
        outer.args(["-c", &script]).current_dir(folder.path());
        let output = outer.output().unwrap();
        let pid = String::from_utf8_lossy(&output.stdout);
        let shell = Shell {
            pid: pid.trim().parse().unwrap(),
            folder,
        };
        shell.starts_one(2);
        // `nice` has become the shell by now.
        assert_eq!(shell.nices(), [3, 3]);
        shell
    }

    /// Has it start a process, and waits until it has so many with itself.
    fn starts_one(&self, in_all: usize) {
        std::fs::write(self.folder.path().join("pipe"), "\n").unwrap();
        while self.nices().len() < in_all {
            std::thread::yield_now();
        }
    }

    fn processes(&self) -> Vec<Pid> {
        tasks::process_tree(Path::new(HERE), self.pid)
    }

    fn nices(&self) -> Vec<i32> {
        let processes = self.processes().into_iter();
        let nices = processes.filter_map(|pid| sched_getattr(pid).ok());
        nices.map(|attr| attr.nice).collect()
    }

    fn daemon(&self) -> Daemon {
        Daemon::Pid(self.pid)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        crate::processes::kill_all(&self.processes());
    }
}

fn nice(nice: i32) -> Given {
    Given {
        policy: Some(Policy {
            nice: Some(nice),
            ..Policy::new(Class::Other)
        }),
        cpus: None,
    }
}

fn given(shell: &Shell, given: &Given, known: &mut Vec<Before>) -> usize {
    change_threads(Path::new(HERE), &shell.daemon(), given, known, |_| Ok(())).unwrap()
}

fn is_root() -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        ::tests::skipped("going back to a lower nice value needs root");
    }
    is
}

#[test]
fn threads_and_what_they_start_later_go_back_to_what_the_daemon_had() {
    if !is_root() {
        return;
    }
    let shell = Shell::start();
    let mut known = Vec::new();
    assert_eq!(given(&shell, &nice(19), &mut known), 2);
    shell.starts_one(3);
    assert_eq!(shell.nices(), [19, 19, 19]);
    // The one that came has inherited it: there is nothing to be given and nothing to record.
    assert_eq!(given(&shell, &nice(19), &mut known), 0);
    let [before] = known.as_slice() else {
        panic!("{known:?}");
    };
    assert_eq!(before.put_back(Path::new(HERE)), (3, Vec::new()));
    assert_eq!(shell.nices(), [3, 3, 3]);
    assert_eq!(before.put_back(Path::new(HERE)), (0, Vec::new()));
    assert_eq!(
        before.in_words(3),
        format!("policy and CPUs of 3 threads of pid {}", shell.pid)
    );
}

#[test]
fn a_class_and_cpus_are_put_back_from_a_line_of_the_journal() {
    if !is_root() {
        return;
    }
    let shell = Shell::start();
    let all = cpus::cpus_of(shell.pid);
    let first = load::allowed_cpus()[0].to_string();
    let batch = Given {
        policy: Some(Policy::new(Class::Batch)),
        cpus: Some(first.clone()),
    };
    let directory = tempfile::tempdir().unwrap();
    let mut journal = crate::journal::Journal::open(directory.path()).unwrap();
    let mut known = Vec::new();
    let record = |before: &Before| {
        let undo = crate::journal::Undo::PutBackThreads(before.clone());
        journal.record(undo).map_err(|e| e.to_string())
    };
    change_threads(Path::new(HERE), &shell.daemon(), &batch, &mut known, record).unwrap();
    shell.starts_one(3);
    let state = |pid: Pid| {
        (
            collect::policy::read(pid).unwrap().class,
            cpus::cpus_of(pid),
        )
    };
    for pid in shell.processes() {
        assert_eq!(state(pid), (Class::Batch, Some(first.clone())));
    }
    drop(journal);
    let mut journal = crate::journal::Journal::open(directory.path()).unwrap();
    let restored = journal.replay().unwrap();
    assert_eq!(restored.failed, [""; 0]);
    let words = format!("policy and CPUs of 3 threads of pid {}", shell.pid);
    assert_eq!(restored.removed, [words]);
    for pid in shell.processes() {
        assert_eq!(state(pid), (Class::Other, all.clone()));
    }
    assert_eq!(shell.nices(), [3, 3, 3]);
}

#[test]
fn a_thread_that_has_the_id_of_another_is_left_alone() {
    if !is_root() {
        return;
    }
    let shell = Shell::start();
    let mut known = Vec::new();
    given(&shell, &nice(19), &mut known);
    let mut of_another = known[0].clone();
    for thread in &mut of_another.threads {
        thread.start_ticks -= 1;
    }
    of_another.since_ticks += 1_000_000;
    assert_eq!(of_another.put_back(Path::new(HERE)), (0, Vec::new()));
    assert_eq!(shell.nices(), [19, 19]);
    known[0].put_back(Path::new(HERE));
}

#[test]
fn a_process_that_is_not_in_the_record_and_older_than_it_keeps_what_it_has() {
    if !is_root() {
        return;
    }
    let shell = Shell::start();
    let mut known = Vec::new();
    given(&shell, &nice(19), &mut known);
    // As if the second process were no part of the daemon.
    let whole = known[0].clone();
    known[0].threads.retain(|thread| thread.pid == shell.pid);
    known[0].since_ticks += 1_000_000;
    known[0].put_back(Path::new(HERE));
    assert_eq!(shell.nices(), [3, 19]);
    whole.put_back(Path::new(HERE));
    assert_eq!(shell.nices(), [3, 3]);
}

/// A process with this name, which this process is neither above nor below.
fn waiter(folder: &Path, name: &str) -> Pid {
    let script = format!("./{name} > /dev/null 2>&1 & echo $!");
    let mut outer = Command::new("sh");
    let output = outer.args(["-c", &script]).current_dir(folder).output();
    let pid: Pid = String::from_utf8_lossy(&output.unwrap().stdout)
        .trim()
        .parse()
        .unwrap();
    while tasks::read_stat(Path::new(HERE), pid).is_some_and(|stat| stat.command != name) {
        std::thread::yield_now();
    }
    pid
}

#[test]
fn what_comes_under_the_name_without_inheriting_is_given_the_same_and_goes_back_too() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = format!("wait-{}", std::process::id());
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    ::tests::write_program(
        &folder.path().join(&name),
        "#!/bin/sh\nexec 3<> pipe\nread -r x <&3\n",
    );
    let daemon = Daemon::Name(name.clone());
    let mut known = Vec::new();
    let root = Path::new(HERE);
    let take = |known: &mut Vec<Before>| {
        change_threads(root, &daemon, &nice(19), known, |_| Ok(())).unwrap()
    };
    let first = waiter(folder.path(), &name);
    assert_eq!(take(&mut known), 1);
    let second = waiter(folder.path(), &name);
    assert_eq!(take(&mut known), 1);
    let nices = || [first, second].map(|pid| sched_getattr(pid).unwrap().nice);
    assert_eq!(nices(), [19, 19]);
    for before in known.iter().rev() {
        assert_eq!(before.put_back(root).1, [""; 0]);
    }
    let after = nices();
    // The next turn has the same record, which the journal keeps once.
    let mut again = Vec::new();
    take(&mut again);
    let mut third = Vec::new();
    again[0].put_back(root);
    take(&mut third);
    third[0].put_back(root);
    crate::processes::kill_all(&[first, second]);
    assert_eq!(after, [0, 0]);
    assert_eq!(again, third);
}

#[test]
fn a_daemon_under_a_real_time_policy_goes_back_to_the_fair_class_with_its_nice_value() {
    if !is_root() {
        return;
    }
    let deadline = Policy {
        runtime_ns: Some(1_000_000),
        period_ns: Some(100_000_000),
        ..Policy::new(Class::Deadline)
    };
    for policy in [Policy::new(Class::Fifo), deadline] {
        if policy::try_on_this_machine(&policy).is_err() {
            ::tests::skipped(format!("{policy} is not permitted here"));
            continue;
        }
        let shell = Shell::start();
        let given_policy = Given {
            policy: Some(policy::with_defaults(&policy)),
            cpus: None,
        };
        let mut known = Vec::new();
        assert_eq!(given(&shell, &given_policy, &mut known), 2);
        let class = |pid: &Pid| collect::policy::read(*pid).unwrap().class;
        assert!(
            shell
                .processes()
                .iter()
                .all(|pid| class(pid) == policy.class)
        );
        assert_eq!(known[0].put_back(Path::new(HERE)), (2, Vec::new()));
        assert!(
            shell
                .processes()
                .iter()
                .all(|pid| class(pid) == Class::Other)
        );
        assert_eq!(shell.nices(), [3, 3]);
    }
}
