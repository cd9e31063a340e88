//! Compiles the BPF half and generates its bindings, as every scx scheduler does.

fn main() {
    scx_cargo::BpfBuilder::new()
        .and_then(|mut builder| {
            builder
                .enable_intf("src/bpf/intf.h", "bpf_intf.rs")
                .enable_skel("src/bpf/main.bpf.c", "bpf")
                .build()
        })
        .unwrap_or_else(|error| panic!("build the BPF half: {error:#}"));
}
