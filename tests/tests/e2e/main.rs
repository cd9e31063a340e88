//! Tests that drive the binary. They are one program, since each program is linked with all that
//! schedlab is made of: `cargo test -p tests --test e2e NAME` runs those of this name.

#![allow(clippy::disallowed_methods)]

mod architecture;
mod arm_names;
mod bad_input;
mod bisect;
mod capacity;
mod capsule;
mod certify;
mod confinement;
mod conformance;
mod doctor;
mod documentation;
mod experiments;
mod faults;
mod first_process;
mod formats;
mod gate;
mod gatling;
mod imports;
mod json;
mod kills;
mod limits;
mod locks;
mod make;
mod manual;
mod merge;
mod microquanta;
mod mix;
mod native;
mod outcomes;
mod overhead;
mod own_metrics;
mod package;
mod poisoned;
mod presets;
mod program_fuzz;
mod reboots;
mod run;
mod scales;
mod services;
mod skips;
mod slurm;
mod soak;
mod ssh;
mod stacks;
mod tools;
mod traces;
mod turns;
mod unattended;
mod units;
mod vm;
mod ways;
mod written;
mod xen;
