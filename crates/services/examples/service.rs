//! The embedded server, alone: `service PORT THREADS`. For a look at a generator, give
//! `schedlab load` the job line of an `http` or `memcached` load.

#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u16>());
    let (Some(Ok(port)), Some(Ok(threads))) = (args.next(), args.next()) else {
        eprintln!("usage: service PORT THREADS");
        return ExitCode::FAILURE;
    };
    match services::serve_main(
        u32::from(threads),
        ([127, 0, 0, 1], port).into(),
        std::io::stdout(),
    ) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
