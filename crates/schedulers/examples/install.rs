//! Installs the schedulers named on the command line into the user's cache:
//! `cargo run -p schedulers --example install -- scx_rusty@1.1.4`

use schedulers::Progress;

fn main() -> Result<(), schedulers::Error> {
    for name in std::env::args().skip(1) {
        let installed = schedulers::install(&name, false, &mut show)?;
        println!(
            "\r\x1b[K{} {}",
            installed.version,
            installed.program.display()
        );
    }
    Ok(())
}

fn show(step: Progress) {
    match step {
        Progress::Chosen { name, version } => eprintln!("{name} {version}"),
        Progress::Downloading => eprint!("\r\x1b[Kdownloading"),
        Progress::Compiling { done, total, now } => eprint!("\r\x1b[K{done}/{total} {now}"),
        Progress::Installed => eprint!("\r\x1b[K"),
    }
}
