//! For small BPF programs: [`compile`] is all that their build.rs does, and
//! [`include_object!`](crate::include_object) holds what came of it.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

/// libbpf reads an object in place as an ELF file, which wants its structures aligned.
#[repr(align(8))]
#[derive(Debug)]
pub struct Aligned<T: ?Sized>(pub T);

/// The object of this name, compiled by build.rs, as a `&'static Aligned<[u8]>`.
#[macro_export]
macro_rules! include_object {
    ($name:literal) => {
        &$crate::Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name)))
    };
}

/// Compiles `src/bpf/main.bpf.c` with clang (`BPF_CLANG`, as for the scx schedulers),
/// against libbpf's own headers and nothing else: no kernel headers, no generated
/// skeleton, so that it takes a second. For the build.rs of a package that depends on
/// libbpf-sys.
pub fn compile(object: &str) -> Result<(), Box<dyn Error>> {
    let own_headers = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed={own_headers}");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let headers = std::env::var("DEP_BPF_INCLUDE")?;
    let object = PathBuf::from(std::env::var("OUT_DIR")?).join(object);
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror",
        ])
        .args([format!("-I{headers}"), format!("-I{own_headers}")])
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
