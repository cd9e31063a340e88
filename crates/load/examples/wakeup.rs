//! The process that `schedlab load` is, alone: for a look at the generator without an
//! agent. Reads the job line and `go` from standard input, speaks the phase lines.
//!
//! ```text
//! (echo '{"generator":"wakeup","message_threads":1,"workers":2,"sleep_ns":100000,
//!         "operations":5,"footprint_bytes":262144,"cpu_lock":true,"warmup_ns":1000000000,
//!         "duration_ns":5000000000,"seed":1}' | tr -d '\n'; echo; echo go; sleep 7) \
//!     | cargo run --release -p load --example wakeup
//! ```

use std::process::ExitCode;

fn main() -> ExitCode {
    match load::native_main(std::io::stdin(), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
