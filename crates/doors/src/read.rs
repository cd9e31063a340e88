//! Bytes from outside, read within a limit that is said where it is reached.
