//! This process's terminal, while a shell in a guest has it.

use crate::frame::Window;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::SIGWINCH;
use signal_hook::iterator::Signals;

/// Every key goes to the guest until this is dropped.
pub struct RawMode {
    before: Termios,
}

impl RawMode {
    pub fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &raw)?;
        Ok(RawMode { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
    }
}

pub fn window() -> Window {
    let size = tcgetwinsize(std::io::stdin()).ok();
    Window {
        rows: size.map_or(24, |s| s.ws_row),
        columns: size.map_or(80, |s| s.ws_col),
    }
}

/// Tell of every change, on a thread of its own, until telling fails.
pub fn follow_window(tell: impl Fn(Window) -> std::io::Result<()> + Send + 'static) {
    let Ok(mut signals) = Signals::new([SIGWINCH]) else {
        return;
    };
    std::thread::spawn(move || {
        for _ in &mut signals {
            if tell(window()).is_err() {
                break;
            }
        }
    });
}
