//! Readers of what strangers made, as functions over any bytes. Each returns, or panics where a
//! promise is broken; that it ends, and in little memory, is a promise too.
//!
//! The fuzz targets below `fuzz/` call them with what libFuzzer finds, and a test of this
//! crate with seeds and some mutated ones, a few seconds long.

#![allow(clippy::disallowed_methods)]
// A broken promise is a panic here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

mod arms;
mod capsule;
mod experiment;
mod hlog;
mod images;
mod imports;
mod journal;
mod pieces;
mod results;
mod simulations;

/// A reader, by the name of its fuzz target and of the directory with its seeds.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Name of the fuzz target.
    pub name: &'static str,
    /// The reader itself, which panics where a promise is broken.
    pub read: fn(&[u8]),
    /// Mutated inputs that take about a second in a debug build.
    pub a_second: u32,
}

const fn reader(name: &'static str, read: fn(&[u8]), a_second: u32) -> Reader {
    Reader {
        name,
        read,
        a_second,
    }
}

/// All of them.
pub const READERS: &[Reader] = &[
    reader("http_answer", pieces::http_answer, 20_000),
    reader("memcached_answer", pieces::memcached_answer, 20_000),
    reader("server_requests", pieces::server_requests, 5_000),
    reader("elf", images::elf, 20_000),
    reader("bzimage", images::bzimage, 20_000),
    reader("disk_image", images::disk_image, 20_000),
    reader("debian_packages", images::debian_packages, 10_000),
    reader("hlog", hlog::hlog, 5_000),
    reader("results", results::results, 100),
    reader("capsule", capsule::capsule, 500),
    reader("experiment", experiment::experiment, 2_000),
    reader("arms", arms::arms, 5_000),
    reader("journal", journal::journal, 5_000),
    reader("imports", imports::imports, 3_000),
    reader("requests", simulations::requests, 20_000),
];

/// The reader of a fuzz target.
pub fn read(name: &str, input: &[u8]) {
    let reader = READERS.iter().find(|reader| reader.name == name);
    (reader.expect("a reader of this name").read)(input);
}
