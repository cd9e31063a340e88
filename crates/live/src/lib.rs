//! The view of a run that is under way: on a terminal, and as a page.
//!
//! A view reads the results directory, as the report does, and a small file that says what the run
//! does at this moment. So it is the same for the run of this process, for one that somebody else
//! started, and for one on another machine, and a view that ends or dies leaves the run alone.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod page;
mod scene;
mod terminal;

pub use page::Page;
pub use scene::{Directory, Feed, Life, Node, Scene, Source};
pub use terminal::{Left, cut_line, watch};
