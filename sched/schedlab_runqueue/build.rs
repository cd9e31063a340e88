//! Compiles the BPF half with clang (`BPF_CLANG`, as for the scx schedulers),
//! against libbpf's own headers and nothing else: no kernel headers, no
//! generated skeleton, so that it takes a second.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let headers = std::env::var("DEP_BPF_INCLUDE")?;
    let object = PathBuf::from(std::env::var("OUT_DIR")?).join("runqueue.bpf.o");
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror",
        ])
        .arg(format!("-I{headers}"))
        .args(["-c", "src/bpf/main.bpf.c", "-o"])
        .arg(&object)
        .status()
        .map_err(|e| {
            format!("start {clang}: {e}; set BPF_CLANG to a clang of version 16 or newer")
        })?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{clang} could not compile the BPF half ({status})").into()),
    }
}
