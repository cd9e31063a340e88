//! The guest's console as the host keeps it: new text for the trial under way, the
//! last lines for an error, and whether the kernel panicked. Bounded, whatever the
//! guest prints.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kept between two calls of `take`.
const KEPT_BYTES: usize = 256 * 1024;
const TAIL_BYTES: usize = 4 * 1024;
const TAIL_LINES: usize = 40;
const PANIC: &str = "Kernel panic - not syncing";
/// Beginnings of an oops, which has the trace before the panic that it ends in
/// (arch/x86/mm/fault.c, arch/x86/kernel/dumpstack.c, lib/bug.c).
const OOPS: [&str; 4] = ["BUG: ", "Oops: ", "kernel BUG at", "------------[ cut here"];

/// Cheap to clone; all clones are the same console.
#[derive(Debug, Clone, Default)]
pub struct Console {
    text: Arc<Mutex<Text>>,
}

#[derive(Debug, Default)]
struct Text {
    new: Vec<u8>,
    /// Bytes of `new` that had to make room.
    dropped: usize,
    tail: Vec<u8>,
    panicked: bool,
}

impl Console {
    /// Read `from` until QEMU closes it, on a thread of its own.
    pub(crate) fn follow(&self, mut from: UnixStream) {
        let console = self.clone();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4096];
            while let Ok(size @ 1..) = from.read(&mut buffer) {
                console.add_bytes(&buffer[..size]);
            }
        });
    }

    /// Text that was printed since the last call, with a note where a flood was cut.
    pub fn take_text(&self) -> String {
        let mut text = self.lock();
        let new = std::mem::take(&mut text.new);
        let dropped = std::mem::take(&mut text.dropped);
        let kept = readable(&new);
        if dropped == 0 {
            return kept;
        }
        format!("[{dropped} bytes of console left out]\n{kept}")
    }

    /// The last lines, also those that were taken. After a panic the lines from its
    /// beginning on: what was called is at the top of the trace.
    pub(crate) fn tail(&self) -> String {
        let text = self.lock();
        let panicked = text.panicked;
        let text = readable(&text.tail);
        let mut lines: Vec<&str> = text.lines().collect();
        if panicked {
            lines.truncate(TAIL_LINES);
        } else {
            lines.drain(..lines.len().saturating_sub(TAIL_LINES));
        }
        lines.join("\n")
    }

    /// The kernel's own line about its panic.
    pub fn panic(&self) -> Option<String> {
        let text = self.lock();
        if !text.panicked {
            return None;
        }
        let tail = readable(&text.tail);
        let line = tail.find(PANIC).and_then(|at| tail[at..].lines().next());
        Some(line.unwrap_or(PANIC).to_owned())
    }

    pub(crate) fn add_bytes(&self, bytes: &[u8]) {
        let mut text = self.lock();
        text.new.extend(bytes);
        text.dropped += drop_front(&mut text.new, KEPT_BYTES);
        if text.panicked && text.tail.len() >= TAIL_BYTES {
            return;
        }
        text.tail.extend(bytes);
        if text.panicked {
            return;
        }
        // The tail is longer than a line, so a line in two parts is seen too.
        if let Some(at) = find(&text.tail, PANIC.as_bytes()) {
            text.panicked = true;
            let oops = OOPS
                .iter()
                .filter_map(|o| find(&text.tail[..at], o.as_bytes()));
            let begin = oops.min().unwrap_or(at);
            text.tail.drain(..begin);
        } else {
            drop_front(&mut text.tail, TAIL_BYTES);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_front(bytes: &mut Vec<u8>, keep: usize) -> usize {
    let excess = bytes.len().saturating_sub(keep);
    bytes.drain(..excess);
    excess
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\r', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_taken_once_and_the_tail_stays() {
        let console = Console::default();
        console.add_bytes(b"one\r\ntwo\r\n");
        assert_eq!(console.take_text(), "one\ntwo\n");
        assert_eq!(console.take_text(), "");
        assert_eq!(console.tail(), "one\ntwo");
    }

    #[test]
    fn a_flood_is_cut_with_a_count() {
        let console = Console::default();
        for _ in 0..100 {
            console.add_bytes(&[b'x'; 4096]);
        }
        let text = console.take_text();
        assert!(text.len() < KEPT_BYTES + 100);
        let dropped = 100 * 4096 - KEPT_BYTES;
        assert!(
            text.starts_with(&format!("[{dropped} bytes")),
            "{}",
            &text[..40]
        );
        assert_eq!(console.take_text(), "");
    }

    #[test]
    fn a_panic_is_seen_even_in_two_parts() {
        let console = Console::default();
        console.add_bytes(b"[ 1.0] Kernel panic - not");
        assert_eq!(console.panic(), None);
        console.add_bytes(b" syncing: Fatal exception\n[ 1.1] more\n");
        assert_eq!(
            console.panic().as_deref(),
            Some("Kernel panic - not syncing: Fatal exception")
        );
    }

    #[test]
    fn the_tail_of_an_oops_begins_before_the_panic() {
        let console = Console::default();
        console.add_bytes(b"[ 0.9] before\n[ 1.0] BUG: kernel NULL pointer dereference\n");
        console.add_bytes(b"[ 1.0] Oops: 0000\n[ 1.0] RIP: 0010:pick_task\n");
        console.add_bytes(b"[ 1.1] Kernel panic - not syncing: Fatal exception\n");
        assert!(console.tail().starts_with("BUG: kernel NULL"));
        assert_eq!(
            console.panic().as_deref(),
            Some("Kernel panic - not syncing: Fatal exception")
        );
    }

    #[test]
    fn the_tail_of_a_panic_begins_with_it() {
        let console = Console::default();
        console.add_bytes(b"[ 0.9] before\n[ 1.0] Kernel panic - not syncing: crash\n");
        for line in 0..1000 {
            console.add_bytes(format!("[ 1.1] frame {line}\n").as_bytes());
        }
        let tail = console.tail();
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!(lines.len(), TAIL_LINES);
        assert_eq!(
            &lines[..2],
            ["Kernel panic - not syncing: crash", "[ 1.1] frame 0"]
        );
        assert!(console.lock().tail.len() < TAIL_BYTES + 100);
    }
}
