//! The host's end of the control port: frames to the guest, and the guest's frames
//! handed to whom they belong.

use super::frame::{Exec, Frame, FrameKind, MAX_PAYLOAD, WINDOW};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Frames about the guest itself that nobody has read yet; there are a few in its life.
const EVENTS: usize = 16;
/// The end of a command is sent whether there is room or not.
const MOST_WAITING: usize = WINDOW + MAX_PAYLOAD;

/// Cheap to clone; all clones are the same link.
#[derive(Debug, Clone)]
pub struct Link {
    stream: Arc<Mutex<UnixStream>>,
    channels: Arc<Mutex<Channels>>,
}

#[derive(Debug, Default)]
struct Channels {
    last: u32,
    open: BTreeMap<u32, Open>,
}

/// A command that runs.
#[derive(Debug)]
struct Open {
    tell: Sender<Frame>,
    /// The cost of the frames that were not taken yet.
    waiting: usize,
}

impl Link {
    /// The link, and the frames that are about the guest itself.
    pub(crate) fn new(stream: UnixStream) -> io::Result<(Self, Receiver<Frame>)> {
        let reader = stream.try_clone()?;
        let link = Link {
            stream: Arc::new(Mutex::new(stream)),
            channels: Arc::default(),
        };
        let (tell, events) = sync_channel(EVENTS);
        let channels = link.channels.clone();
        std::thread::spawn(move || hand_out(reader, &channels, &tell));
        Ok((link, events))
    }

    /// Sends a frame to the guest. Frames of several threads do not mix.
    pub fn send(&self, frame: &Frame) -> io::Result<()> {
        frame.write(&mut *lock(&self.stream))
    }

    /// True while a command runs.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.channels).open.is_empty()
    }

    /// Start a command. Its output ends with an `Exit`, or without one when the guest is
    /// gone.
    pub fn exec(&self, exec: &Exec) -> io::Result<Output> {
        let (tell, frames) = channel();
        let channel = {
            let mut channels = lock(&self.channels);
            channels.last += 1;
            let id = channels.last;
            channels.open.insert(id, Open { tell, waiting: 0 });
            id
        };
        self.send(&Frame::json(FrameKind::Exec, channel, exec)?)?;
        Ok(Output {
            channel,
            frames,
            link: self.clone(),
            taken: 0,
        })
    }

    /// Frames were taken, so that the guest may send more.
    fn make_room(&self, channel: u32, bytes: usize) {
        if let Some(open) = lock(&self.channels).open.get_mut(&channel) {
            open.waiting = open.waiting.saturating_sub(bytes);
            // A guest that is gone needs no room.
            let _ = self.send(&Frame::room(channel, bytes));
        }
    }
}

/// The output of a command in the guest.
#[derive(Debug)]
pub struct Output {
    /// Channel of the command, for its input, size and hangup.
    pub channel: u32,
    frames: Receiver<Frame>,
    link: Link,
    /// The cost of the frames that were taken and not told yet.
    taken: usize,
}

impl Output {
    /// The next frame of the command. The error tells a time limit from a guest that is gone.
    pub fn next_within(&mut self, limit: Duration) -> Result<Frame, RecvTimeoutError> {
        self.tell_taken();
        let frame = self.frames.recv_timeout(limit)?;
        self.taken += frame.cost();
        Ok(frame)
    }

    /// Asking for a frame says that the one before was dealt with.
    fn tell_taken(&mut self) {
        if self.taken > WINDOW / 4 {
            self.link.make_room(self.channel, self.taken);
            self.taken = 0;
        }
    }
}

impl Iterator for Output {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        self.tell_taken();
        let frame = self.frames.recv().ok()?;
        self.taken += frame.cost();
        Some(frame)
    }
}

/// Ends, and with it every receiver, when the stream does.
fn hand_out(mut from: UnixStream, channels: &Mutex<Channels>, events: &SyncSender<Frame>) {
    while let Ok(Some(frame)) = Frame::read(&mut from) {
        if frame.channel == 0 {
            // A guest that says more than it has to is not listened to.
            let _ = events.try_send(frame);
            continue;
        }
        let mut channels = lock(channels);
        let (id, last) = (frame.channel, frame.kind == FrameKind::Exit);
        let Some(open) = channels.open.get_mut(&id) else {
            continue;
        };
        open.waiting += frame.cost();
        let in_order = open.waiting <= MOST_WAITING;
        if in_order {
            let _ = open.tell.send(frame);
        }
        // A guest that does not keep to its window loses the command.
        if last || !in_order {
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
        let mut one = link.exec(&Exec::default()).unwrap();
        let mut two = link.exec(&Exec::default()).unwrap();
        for (channel, text) in [(two.channel, "two"), (0, "event"), (one.channel, "one")] {
            Frame::new(FrameKind::Output, channel, text)
                .write(&mut guest)
                .unwrap();
        }
        Frame::new(FrameKind::Exit, one.channel, "{}")
            .write(&mut guest)
            .unwrap();
        assert_eq!(one.next().unwrap().payload_text(), "one");
        assert_eq!(one.next().unwrap().kind, FrameKind::Exit);
        assert!(one.next().is_none(), "a channel ends with its exit");
        assert_eq!(two.next().unwrap().payload_text(), "two");
        assert_eq!(events.recv().unwrap().payload_text(), "event");
    }

    #[test]
    fn every_command_ends_when_the_guest_is_gone() {
        let (ours, guest) = UnixStream::pair().unwrap();
        let (link, events) = Link::new(ours).unwrap();
        let mut output = link.exec(&Exec::default()).unwrap();
        drop(guest);
        assert!(output.next().is_none());
        assert!(events.recv().is_err());
    }

    #[test]
    fn a_guest_is_told_when_there_is_room_for_more() {
        let (ours, mut guest) = UnixStream::pair().unwrap();
        let (link, _events) = Link::new(ours).unwrap();
        let mut output = link.exec(&Exec::default()).unwrap();
        assert_eq!(
            Frame::read(&mut guest).unwrap().unwrap().kind,
            FrameKind::Exec
        );
        let frame = Frame::new(FrameKind::Output, output.channel, vec![0; MAX_PAYLOAD]);
        let frames = WINDOW / 4 / frame.cost() + 2;
        for _ in 0..frames {
            frame.write(&mut guest).unwrap();
        }
        for _ in 0..frames {
            output.next().unwrap();
        }
        let room = Frame::read(&mut guest).unwrap().unwrap();
        assert_eq!(room.kind, FrameKind::Room);
        assert!(room.room_bytes() > WINDOW / 4, "{}", room.room_bytes());
    }

    #[test]
    fn a_guest_that_does_not_wait_for_room_loses_the_command_and_no_other() {
        let (ours, mut guest) = UnixStream::pair().unwrap();
        let (link, _events) = Link::new(ours).unwrap();
        let flood = link.exec(&Exec::default()).unwrap();
        let mut other = link.exec(&Exec::default()).unwrap();
        let frame = Frame::new(FrameKind::Output, flood.channel, vec![0; MAX_PAYLOAD]);
        for _ in 0..1000 {
            frame.write(&mut guest).unwrap();
        }
        Frame::new(FrameKind::Output, other.channel, "here")
            .write(&mut guest)
            .unwrap();
        assert_eq!(other.next().unwrap().payload_text(), "here");
        let kept: usize = flood.map(|frame| frame.cost()).sum();
        assert!(kept <= MOST_WAITING, "{kept}");
    }
}
