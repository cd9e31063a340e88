fn main() -> Result<(), Box<dyn std::error::Error>> {
    bpf_object::compile("faulty.bpf.o")
}
