//! Plan and target to events: retry, time limits, interrupts, resume, stop when decided.
