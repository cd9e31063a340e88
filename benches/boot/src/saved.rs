//! A guest that was saved: time until its agent answers again.

use crate::{Failure, Series, guest};
use machines::{Boot, Target};
use vm::{Options, Vm, VmSpec};

const MEMORY_BYTES: u64 = 3 << 30;

/// Boots a guest of a disk image, saves it, and lets it go on in rounds.
pub fn rounds(program: &str, image: &str, rounds: u32) -> Result<(), Failure> {
    let options = Options {
        program: std::fs::canonicalize(program)?,
        ..Options::of_this_process()?
    };
    let image = std::fs::canonicalize(image)?;
    let spec = VmSpec {
        root: format!("image:{}", image.display()),
        ..VmSpec::new(guest::KERNEL, guest::CPUS, MEMORY_BYTES)
    };
    let mut target = Vm::new(spec, options);
    target.prepare(guest::KERNEL)?;
    let mut session = target.open_session(&Boot::default())?;
    guest::greet(session.as_mut())?;
    let saved = session.save_machine()?;
    println!("saved: {} MiB", saved.bytes >> 20);
    let mut again = Series::new("agent answers again");
    for round in 0..rounds {
        println!("round {}", round + 1);
        let start = std::time::Instant::now();
        let gone_on = Target::go_on(&mut target, &Boot::default(), &saved);
        again.add(gone_on.map_err(Failure::from).and_then(|mut session| {
            guest::greet(session.as_mut())?;
            Ok(start.elapsed())
        }));
    }
    again.print();
    Ok(())
}
