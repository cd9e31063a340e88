//! Readers of the kernel, one module an interface, root path as an argument.
