//! The host's end of the control port: frames to the guest, and the guest's frames
//! handed to whom they belong.

use super::frame::{Exec, Frame, FrameKind};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cheap to clone; all clones are the same link.
#[derive(Debug, Clone)]
pub struct Link {
    stream: Arc<Mutex<UnixStream>>,
    channels: Arc<Mutex<Channels>>,
}

#[derive(Debug, Default)]
struct Channels {
    last: u32,
    open: BTreeMap<u32, Sender<Frame>>,
}

impl Link {
    /// The link, and the frames that are about the guest itself.
    pub fn new(stream: UnixStream) -> io::Result<(Self, Receiver<Frame>)> {
        let reader = stream.try_clone()?;
        let link = Link {
            stream: Arc::new(Mutex::new(stream)),
            channels: Arc::default(),
        };
        let (tell, events) = channel();
        let channels = link.channels.clone();
        std::thread::spawn(move || hand_out(reader, &channels, &tell));
        Ok((link, events))
    }

    pub fn send(&self, frame: &Frame) -> io::Result<()> {
        frame.write(&mut *lock(&self.stream))
    }

    /// Whether a command runs.
    pub fn is_busy(&self) -> bool {
        !lock(&self.channels).open.is_empty()
    }

    /// Start a command; its frames come out of the receiver, `Exit` last. The
    /// receiver ends without one when the guest is gone.
    pub fn exec(&self, exec: &Exec) -> io::Result<(u32, Receiver<Frame>)> {
        let (tell, frames) = channel();
        let channel = {
            let mut channels = lock(&self.channels);
            channels.last += 1;
            let id = channels.last;
            channels.open.insert(id, tell);
            id
        };
        self.send(&Frame::json(FrameKind::Exec, channel, exec)?)?;
        Ok((channel, frames))
    }
}

/// Ends, and with it every receiver, when the stream does.
fn hand_out(mut from: UnixStream, channels: &Mutex<Channels>, events: &Sender<Frame>) {
    while let Ok(Some(frame)) = Frame::read(&mut from) {
        if frame.channel == 0 {
            let _ = events.send(frame);
            continue;
        }
        let mut channels = lock(channels);
        let (id, last) = (frame.channel, frame.kind == FrameKind::Exit);
        if let Some(to) = channels.open.get(&id) {
            let _ = to.send(frame);
        }
        if last {
            channels.open.remove(&id);
        }
    }
    lock(channels).open.clear();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_to_the_command_that_they_belong_to() {
        let (ours, mut guest) = UnixStream::pair().unwrap();
        let (link, events) = Link::new(ours).unwrap();
        let (first, one) = link.exec(&Exec::default()).unwrap();
        let (second, two) = link.exec(&Exec::default()).unwrap();
        for (channel, text) in [(second, "two"), (0, "event"), (first, "one")] {
            Frame::new(FrameKind::Output, channel, text)
                .write(&mut guest)
                .unwrap();
        }
        Frame::new(FrameKind::Exit, first, "{}")
            .write(&mut guest)
            .unwrap();
        assert_eq!(one.recv().unwrap().text(), "one");
        assert_eq!(one.recv().unwrap().kind, FrameKind::Exit);
        assert!(one.recv().is_err(), "a channel ends with its exit");
        assert_eq!(two.recv().unwrap().text(), "two");
        assert_eq!(events.recv().unwrap().text(), "event");
    }

    #[test]
    fn every_command_ends_when_the_guest_is_gone() {
        let (ours, guest) = UnixStream::pair().unwrap();
        let (link, events) = Link::new(ours).unwrap();
        let (_, frames) = link.exec(&Exec::default()).unwrap();
        drop(guest);
        assert!(frames.recv().is_err());
        assert!(events.recv().is_err());
    }
}
