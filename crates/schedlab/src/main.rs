//! The program: schedlab, or the first process of a guest.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The first process of a guest is this program too.
    if vm::init::is_wanted() {
        vm::init::main();
    }
    // So is the only one of a guest of Xen that is a worker.
    if burnwait::guests::is_wanted() {
        burnwait::guests::main();
    }
    schedlab::run(std::env::args_os())
}
