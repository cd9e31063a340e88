//! Why the kernel did not load the BPF program of a scheduler, out of what libbpf logs. Where the
//! verifier refused a program, the last lines of its log have the reason.

use model::printable::error_lines;
use std::path::Path;

/// Lines that are quoted.
const QUOTED_LINES: usize = 3;
/// Characters of a line that are quoted: the state of all registers can be longer.
const QUOTED_CHARS: usize = 160;
const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
const END: &str = "-- END PROG LOAD LOG --";
/// Line of libbpf where the kernel lets nobody of this user load anything, which no other version of a
/// scheduler would change.
const NOTHING_LOADS: &str = "Couldn't load trivial BPF program";
/// How lines begin that say what the verifier did, and not why it refused.
const COUNTS: [&str; 3] = ["processed ", "verification time ", "stack depth "];
/// Words of libbpf, of its skeletons and of scx where a program was not loaded.
const NOT_LOADED: [&str; 3] = [
    "failed to load BPF skeleton",
    "failed to load object",
    "Failed to load BPF program",
];

/// The reason why the kernel did not load a scheduler that printed this log; `None` where it ended
/// for another reason.
pub fn reason(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().map(str::trim_end).collect();
    if log.contains(NOTHING_LOADS) {
        return None;
    }
    match lines.iter().rposition(|line| line.contains(BEGIN)) {
        Some(begin) => Some(of_verifier(&lines, begin)),
        None => of_libbpf(log, &lines),
    }
}

/// The program that the verifier refused, with its last lines. The log begins behind line `begin`.
fn of_verifier(lines: &[&str], begin: usize) -> String {
    let program = lines[begin].split('\'').nth(1).unwrap_or("program");
    let rest = lines[begin + 1..].iter();
    let mut said: Vec<&str> = rest
        .take_while(|line| !line.contains(END))
        .copied()
        .collect();
    // A log that ends without a line feed has the mark behind its last line.
    let last = lines.get(begin + 1 + said.len());
    said.extend(
        last.and_then(|line| line.split_once(END))
            .map(|(before, _)| before),
    );
    let tells = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !COUNTS.iter().any(|count| line.starts_with(count))
    };
    said.retain(tells);
    let failed = format!("prog '{program}': BPF program load failed");
    let words = match said.is_empty() {
        false => said,
        true => lines
            .iter()
            .copied()
            .filter(|line| line.contains(&failed))
            .collect(),
    };
    format!(
        "the verifier of the kernel refuses its program {program}: {}",
        quoted(&words)
    )
}

/// The last lines of libbpf until it gave up, where there is no log of the verifier.
fn of_libbpf(log: &str, lines: &[&str]) -> Option<String> {
    let failed = |line: &&str| NOT_LOADED.iter().any(|words| line.contains(words));
    let at = lines.iter().position(failed)?;
    let of_libbpf = |line: &&str| line.split_once("libbpf: ").map(|(_, said)| said.to_owned());
    let said: Vec<String> = lines[..=at].iter().filter_map(of_libbpf).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    Some(match said.is_empty() {
        true => error_lines(log, QUOTED_LINES, " | "),
        false => quoted(&said),
    })
}

/// The last of the lines, each cut where it is long.
fn quoted(lines: &[&str]) -> String {
    let last = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    let cut = |line: &&str| match line.trim().char_indices().nth(QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", &line.trim()[..at]),
        None => line.trim().to_owned(),
    };
    last.iter().map(cut).collect::<Vec<_>>().join(" | ")
}

/// The program as it was asked for, with the version that its place in the cache has.
pub fn title(program: &str, path: &Path) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    if let Some((name, version)) = name.split_once('@') {
        return format!("{name} {version}");
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folders = real.iter().filter_map(|folder| folder.to_str());
    let mut versions = folders.filter_map(|folder| folder.strip_prefix(name)?.strip_prefix('-'));
    match versions.next() {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libbpf 1.5 prints it through the logger of scx, between lines of the scheduler.
    const REFUSED: &str = "10:00:01 [INFO] scx_some 1.0.19 x86_64-unknown-linux-gnu SMT on\n\
        10:00:01 [WARN] libbpf: prog 'some_dispatch': BPF program load failed: -EINVAL\n\
        10:00:01 [WARN] libbpf: prog 'some_dispatch': -- BEGIN PROG LOAD LOG --\n\
        0: R1=ctx() R10=fp0\n\
        ; void BPF_STRUCT_OPS(some_dispatch, s32 cpu, struct task_struct *prev) @ main.bpf.c:300\n\
        0: (79) r6 = *(u64 *)(r1 +0)          ; R1=ctx() R6_w=scalar()\n\
        75: (bf) r1 = r10                     ; R1_w=fp0 R10=fp0\n\
        76: (85) call bpf_iter_scx_dsq_new#71342\n\
        cannot pass in iter at an offset=-64\n\
        expected uninitialized iter_scx_dsq as arg #1\n\
        processed 77 insns (limit 1000000) max_states_per_insn 0 total_states 5 peak_states 5 mark_read 4\n\
        -- END PROG LOAD LOG --\n\
        10:00:01 [WARN] libbpf: prog 'some_dispatch': failed to load: -22\n\
        10:00:01 [WARN] libbpf: failed to load object 'bpf_bpf'\n\
        10:00:01 [WARN] libbpf: failed to load BPF skeleton 'bpf_bpf': -22\n\
        Error: Failed to load BPF program\n\nCaused by:\n    Invalid argument (os error 22)\n";

    #[test]
    fn the_last_lines_of_the_verifier_are_quoted_with_the_program() {
        assert_eq!(
            reason(REFUSED).unwrap(),
            "the verifier of the kernel refuses its program some_dispatch: \
             76: (85) call bpf_iter_scx_dsq_new#71342 | cannot pass in iter at an offset=-64 | \
             expected uninitialized iter_scx_dsq as arg #1"
        );
    }

    #[test]
    fn a_program_that_is_too_large_or_has_too_deep_a_stack_says_so() {
        let log = |words: &str| {
            format!(
                "libbpf: prog 'on_event': BPF program load failed: -E2BIG\n\
                 libbpf: prog 'on_event': -- BEGIN PROG LOAD LOG --\n{words}\n\
                 processed 1000001 insns (limit 1000000) max_states_per_insn 28 total_states 33927 \
                 peak_states 12813 mark_read 0\n-- END PROG LOAD LOG --\n\
                 libbpf: prog 'on_event': failed to load: -E2BIG\n"
            )
        };
        let large = "BPF program is too large. Processed 1000001 insn\nverification time 7019091 usec\n\
                     stack depth 488";
        let said = reason(&log(large)).unwrap();
        assert!(
            said.ends_with("on_event: BPF program is too large. Processed 1000001 insn"),
            "{said}"
        );
        let said = reason(&log("combined stack size of 4 calls is 544. Too large")).unwrap();
        assert!(said.ends_with("calls is 544. Too large"), "{said}");
        // The kernel may refuse without a word.
        let said = reason(&log("")).unwrap();
        assert!(said.ends_with("BPF program load failed: -E2BIG"), "{said}");
    }

    #[test]
    fn a_log_that_was_cut_and_a_line_without_an_end_are_read_as_far_as_they_are_there() {
        let begin = "libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n";
        let said = reason(&format!("{begin}R0 invalid mem access 'scalar'")).unwrap();
        assert!(
            said.ends_with("program a: R0 invalid mem access 'scalar'"),
            "{said}"
        );
        let said = reason(&format!("{begin}R0 !read_ok-- END PROG LOAD LOG --\n")).unwrap();
        assert!(said.ends_with("program a: R0 !read_ok"), "{said}");
        let long = format!("{begin}{}\n", "ü".repeat(500));
        assert!(reason(&long).unwrap().chars().count() < 300);
    }

    #[test]
    fn without_a_log_of_the_verifier_the_lines_of_libbpf_are_quoted() {
        let log = "18:32:06 [WARN] libbpf: struct_ops init_kern some_ops: Cannot find member \
                   cgroup_set_bandwidth in kernel BTF\n\n\
                   18:32:06 [WARN] libbpf: failed to load BPF skeleton 'bpf_bpf': -EOPNOTSUPP\n\
                   Error: Failed to load BPF program\n\nCaused by:\n    \
                   Operation not supported (os error 95)\n";
        let said = reason(log).unwrap();
        assert!(
            said.contains("Cannot find member cgroup_set_bandwidth"),
            "{said}"
        );
        assert!(said.ends_with("'bpf_bpf': -EOPNOTSUPP"), "{said}");
        let traced = "2026-05-24T05:51:47.036260Z  WARN ThreadId(01) scx_utils::libbpf_logger: \
                      rust/scx_utils/src/libbpf_logger.rs:12: libbpf: extern (var ksym) \
                      'hw_pressure': not found in kernel BTF\n\
                      2026-05-24T05:51:47.036532Z  WARN ThreadId(01) scx_utils::libbpf_logger: \
                      rust/scx_utils/src/libbpf_logger.rs:12: libbpf: failed to load BPF skeleton \
                      'bpf_bpf': -EINVAL\n";
        let said = reason(traced).unwrap();
        assert!(
            said.starts_with("extern (var ksym) 'hw_pressure': not found"),
            "{said}"
        );
        let silent = "Error: Failed to load BPF program\n\nCaused by:\n    Operation not supported";
        assert!(reason(silent).unwrap().ends_with("Operation not supported"));
    }

    #[test]
    fn other_ends_are_no_refusal() {
        for log in [
            "error: unexpected argument '--slice-us' found\n\nUsage: scx_some [OPTIONS]\n",
            "",
            "libbpf: Error in bpf_object__probe_loading(): Operation not permitted(1). Couldn't load \
             trivial BPF program. Make sure your kernel supports BPF (CONFIG_BPF_SYSCALL=y)\n\
             libbpf: failed to load object 'bpf_bpf'\n",
            "EXIT: runnable task stall (watchdog failed to check in for 30.2s)\n",
        ] {
            assert_eq!(reason(log), None, "{log}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_name_or_of_the_place_in_the_cache() {
        let cache = Path::new("/nowhere/schedulers/scx_some-1.1.4/bin/scx_some");
        assert_eq!(title("scx_some@1.0.19", cache), "scx_some 1.0.19");
        assert_eq!(title("scx_some", cache), "scx_some 1.1.4");
        assert_eq!(
            title("/opt/scx_some", Path::new("/opt/scx_some")),
            "scx_some"
        );
    }
}
