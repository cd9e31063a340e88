//! The scheduling policy of a thread, by sched_getattr(2).

use crate::sys::{self, SchedAttr};
use model::{Class, Policy};
use std::io;

/// The policy in force on a thread.
pub fn read(tid: i32) -> io::Result<Policy> {
    let attr = sys::sched_getattr(tid)?;
    if has_ended(&attr) {
        return Err(rustix::io::Errno::SRCH.into());
    }
    from_attr(&attr).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the kernel reports policy number {}", attr.policy),
        )
    })
}

/// A thread with a deadline that has ended keeps its class until its parent has heard of it, but no
/// parameters; a living one has a runtime of a microsecond at least.
fn has_ended(attr: &SchedAttr) -> bool {
    Class::from_number(attr.policy) == Some(Class::Deadline) && attr.runtime_ns == 0
}

/// Policy with only those fields that have a meaning for the class. From Linux 6.12 on,
/// `runtime` of the fair classes is the slice; before, it is 0.
fn from_attr(attr: &SchedAttr) -> Option<Policy> {
    let mut policy = Policy::new(Class::from_number(attr.policy)?);
    match policy.class {
        Class::Other | Class::Batch | Class::Idle | Class::Ext => {
            policy.nice = Some(attr.nice);
            policy.slice_ns = Some(attr.runtime_ns).filter(|ns| *ns > 0);
        }
        Class::Fifo | Class::Rr => policy.priority = Some(attr.priority),
        Class::Deadline => {
            policy.runtime_ns = Some(attr.runtime_ns);
            policy.deadline_ns = Some(attr.deadline_ns);
            policy.period_ns = Some(attr.period_ns);
        }
    }
    Some(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(policy: u32) -> SchedAttr {
        SchedAttr {
            policy,
            nice: 5,
            priority: 7,
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
            ..SchedAttr::default()
        }
    }

    #[test]
    fn each_class_has_its_own_parameters() {
        let batch = from_attr(&attr(3)).unwrap();
        assert_eq!(
            (batch.nice, batch.slice_ns, batch.priority),
            (Some(5), Some(1), None)
        );
        let fifo = from_attr(&attr(1)).unwrap();
        assert_eq!((fifo.priority, fifo.nice), (Some(7), None));
        let deadline = from_attr(&attr(6)).unwrap();
        assert_eq!(
            (
                deadline.runtime_ns,
                deadline.deadline_ns,
                deadline.period_ns
            ),
            (Some(1), Some(2), Some(3))
        );
    }

    #[test]
    fn a_deadline_without_parameters_is_that_of_a_thread_that_has_ended() {
        let of = |policy, runtime_ns| SchedAttr {
            runtime_ns,
            ..attr(policy)
        };
        assert!(has_ended(&of(6, 0)));
        assert!(!has_ended(&of(6, 1_000_000)) && !has_ended(&of(0, 0)));
    }

    #[test]
    fn an_unknown_class_is_not_guessed() {
        assert_eq!(from_attr(&attr(42)), None);
    }

    #[test]
    fn the_policy_of_this_thread_can_be_read() {
        assert_eq!(read(0).unwrap().class, Class::Other);
    }
}
