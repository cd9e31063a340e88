//! Which CPU scheduler is better for this work, on this machine, and how sure are we?

fn main() {}
