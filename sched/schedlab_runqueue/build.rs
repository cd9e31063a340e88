fn main() -> Result<(), Box<dyn std::error::Error>> {
    bpf_object::compile("runqueue.bpf.o")
}
