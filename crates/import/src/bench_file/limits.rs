//! Limits of what a file of schedbench asks for, which are those of an experiment.

use super::input::Params;
use super::{Fault, fault};
use model::check::MOST_ARMS;

pub(super) const SMALLER: &str = "make several files of it";
/// Text of all cells, as an experiment file may have it.
const MOST_TEXT_BYTES: usize = 4 << 20;

/// Text that an experiment may have; a few words of a file can name a preset again and again.
#[derive(Clone, Copy)]
pub(super) struct Room(usize);

impl Room {
    pub(super) fn of_all() -> Self {
        Room(MOST_TEXT_BYTES)
    }

    pub(super) fn take_text(&mut self, name: &str, params: &Params) -> Result<(), Fault> {
        let words = params.args.iter().map(String::len);
        let size = name.len() + words.map(|bytes| bytes + 1).sum::<usize>();
        match self.0.checked_sub(size) {
            Some(left) => self.0 = left,
            None => return fault("all of its cells together are too long", SMALLER),
        }
        Ok(())
    }
}

/// Adds what is not there yet. Each is compared with all of them, so there cannot be more than an
/// experiment takes.
pub(super) fn add_distinct<T: PartialEq>(
    all: &mut Vec<T>,
    new: T,
    most: usize,
    of: &str,
) -> Result<(), Fault> {
    if !all.contains(&new) {
        all.push(new);
    }
    match all.len() > most {
        true => fault(format!("there are more than {most} {of} in it"), SMALLER),
        false => Ok(()),
    }
}

/// The schedulers, each once.
pub(super) fn distinct_schedulers<T: PartialEq>(
    schedulers: impl Iterator<Item = T>,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    for under in schedulers {
        add_distinct(&mut all, under, MOST_ARMS, "schedulers")?;
    }
    Ok(all)
}
