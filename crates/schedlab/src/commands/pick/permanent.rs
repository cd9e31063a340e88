//! Lines to paste that make an arm permanent, and those that undo them.

use super::is_policy_alone;
use model::{Arm, Class};

/// Name of the drop-ins that are proposed, so that they can be found again.
const FILE: &str = "90-schedlab";

/// Lines that make an arm permanent, as far as there is a way that outlives a restart.
pub fn lines(arm: &Arm) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(scheduler) = &arm.scheduler {
        let args = scheduler.args.join(" ");
        lines.push(
            "# a sched_ext scheduler for the whole machine, by a unit of systemd, as root:"
                .to_owned(),
        );
        let program = format!("{} {args}", scheduler.program);
        lines.push(format!(
            "systemd-run --unit {FILE} --property Restart=on-failure {}",
            program.trim_end()
        ));
        lines.push(
            "# this ends with a restart; scx_loader of sched-ext starts one at each boot"
                .to_owned(),
        );
    }
    if let Some(policy) = &arm.policy {
        let service = service_lines(arm);
        match service.is_empty() {
            false => {
                lines.push(
                    "# for a service of systemd, as root: systemctl edit NAME.service, then"
                        .to_owned(),
                );
                lines.push("[Service]".to_owned());
                lines.extend(service);
            }
            true if policy.slice_ns.is_some() => {}
            true => lines.push("# nothing of systemd sets this policy".to_owned()),
        }
        if let Some(slice) = policy.slice_ns {
            lines.push("# no unit of systemd sets a slice; a new chrt(1) of util-linux does for a program:".to_owned());
            lines.push(format!("chrt --other --sched-runtime {slice} 0 PROGRAM"));
        }
    }
    for (name, value) in &arm.tunables {
        lines.push(format!(
            "# {name}={value}: `schedlab list arms {name}` says where the kernel has it"
        ));
    }
    if lines.is_empty() || !(is_policy_alone(arm) || arm.scheduler.is_some()) {
        lines.push(format!("# as an arm of schedlab: -a '{}'", arm.name));
    }
    lines
}

/// Lines that undo what [`lines`] says.
pub fn undo_lines(arm: &Arm) -> Vec<String> {
    let mut lines = Vec::new();
    if arm.scheduler.is_some() {
        lines.push(format!("systemctl stop {FILE}"));
    }
    if !service_lines(arm).is_empty() {
        lines.push("systemctl revert NAME.service".to_owned());
    }
    if lines.is_empty() {
        lines.push("# start the program as before: nothing outlives it".to_owned());
    }
    lines
}

/// Keys of the section of a service.
fn service_lines(arm: &Arm) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(policy) = &arm.policy else {
        return lines;
    };
    let class = match policy.class {
        Class::Batch => Some("batch"),
        Class::Idle => Some("idle"),
        Class::Fifo => Some("fifo"),
        Class::Rr => Some("rr"),
        _ => None,
    };
    lines.extend(class.map(|class| format!("CPUSchedulingPolicy={class}")));
    lines.extend(
        policy
            .priority
            .map(|priority| format!("CPUSchedulingPriority={priority}")),
    );
    lines.extend(policy.nice.map(|nice| format!("Nice={nice}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(text: &str) -> Arm {
        catalogue::install();
        plan::parse_arm(text).unwrap()
    }

    #[test]
    fn an_arm_that_systemd_can_set_has_its_keys_and_the_way_back() {
        let batch = arm("batch+nice=5");
        assert_eq!(
            lines(&batch)[1..],
            ["[Service]", "CPUSchedulingPolicy=batch", "Nice=5"]
        );
        assert_eq!(undo_lines(&batch), ["systemctl revert NAME.service"]);
        let slice = lines(&arm("slice=0.3ms"));
        assert_eq!(slice[1], "chrt --other --sched-runtime 300000 0 PROGRAM");
        let scheduler = lines(&arm("scx_rusty --perf 1"));
        assert!(
            scheduler[1].ends_with("scx_rusty --perf 1"),
            "{scheduler:?}"
        );
        assert_eq!(
            undo_lines(&arm("scx_rusty")),
            ["systemctl stop 90-schedlab"]
        );
        let tunable = lines(&arm("base_slice=1ms"));
        assert!(
            tunable
                .iter()
                .any(|line| line.contains("-a 'base_slice=1ms'")),
            "{tunable:?}"
        );
    }
}
