//! The virtual screen: when its vblanks are, and what it showed.

use load::recording::Window;
use std::ops::Range;

/// A screen whose first vblank is the start of the load. Vblanks are numbered from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Time of the first vblank.
    pub start_ns: u64,
    /// Time between two vblanks.
    pub interval_ns: u64,
}

impl Screen {
    /// Time of a vblank.
    pub fn time_ns(&self, vblank: u64) -> u64 {
        let offset_ns = vblank.saturating_mul(self.interval_ns);
        self.start_ns.saturating_add(offset_ns)
    }

    /// The first vblank at this time or later.
    pub fn first_from(&self, at_ns: u64) -> u64 {
        at_ns
            .saturating_sub(self.start_ns)
            .div_ceil(self.interval_ns.max(1))
    }

    /// The vblanks of a window.
    pub fn vblanks_in(&self, window: Window) -> Range<u64> {
        self.first_from(window.begin_ns)..self.first_from(window.end_ns)
    }
}

/// Pictures on the screen in a range of vblanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pictures {
    /// Vblanks of the range.
    pub vblanks: u64,
    /// Those at which a new frame was shown.
    pub frames: u64,
    /// Number of vblanks at which each picture was shown, within the range. The first picture may be
    /// older than the range.
    pub stays: Vec<u64>,
}

impl Pictures {
    /// Pictures that were shown in a range, of the vblanks at which new frames were shown, in order of time.
    pub fn shown_in(range: Range<u64>, shown: &[u64]) -> Self {
        let from = shown.partition_point(|vblank| *vblank < range.start);
        let to = shown.partition_point(|vblank| *vblank < range.end);
        let new = shown.get(from..to).unwrap_or_default();
        let is_old = !range.is_empty() && new.first() != Some(&range.start);
        let first = is_old.then_some(range.start);
        let begins = first.into_iter().chain(new.iter().copied());
        let ends = begins.clone().skip(1).chain([range.end]);
        Pictures {
            vblanks: range.end.saturating_sub(range.start),
            frames: new.len() as u64,
            stays: begins.zip(ends).map(|(begin, end)| end - begin).collect(),
        }
    }

    /// Vblanks at which the old picture was shown again.
    pub fn missed(&self) -> u64 {
        self.vblanks - self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen {
        start_ns: 1000,
        interval_ns: 10,
    };

    fn pictures(range: Range<u64>, shown: &[u64]) -> (u64, u64, Vec<u64>) {
        let pictures = Pictures::shown_in(range, shown);
        (pictures.frames, pictures.missed(), pictures.stays)
    }

    #[test]
    fn a_frame_that_is_done_at_a_vblank_is_in_time_for_it() {
        assert_eq!(SCREEN.first_from(1020), 2);
        assert_eq!(SCREEN.first_from(1021), 3);
        assert_eq!(SCREEN.time_ns(3), 1030);
        let window = Window {
            begin_ns: 1020,
            end_ns: 1050,
        };
        assert_eq!(SCREEN.vblanks_in(window), 2..5);
    }

    #[test]
    fn every_vblank_without_a_new_frame_is_a_miss() {
        assert_eq!(pictures(2..6, &[0, 1, 2, 3, 4, 5, 6]), (4, 0, vec![1; 4]));
        // Of vblanks 2 to 9 those at 4, 5 and 7 show the old picture.
        assert_eq!(
            pictures(2..10, &[1, 2, 3, 6, 8, 9, 10]),
            (5, 3, vec![1, 3, 2, 1, 1])
        );
    }

    #[test]
    fn a_freeze_counts_as_far_as_it_is_in_the_window() {
        // From vblank 1 to 5, and from 7 on.
        assert_eq!(
            pictures(3..10, &[0, 1, 5, 6, 7, 20]),
            (3, 4, vec![2, 1, 1, 3])
        );
        assert_eq!(pictures(3..10, &[0, 20]), (0, 7, vec![7]));
        assert_eq!(pictures(3..10, &[]), (0, 7, vec![7]));
        assert_eq!(pictures(3..3, &[1, 2]), (0, 0, vec![]));
    }
}
