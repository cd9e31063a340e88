//! Messages between host and init over the guest's control port: frames of a kind, a channel
//! and bytes. Channel 0 is the guest itself; every command that runs in the guest has a channel
//! of its own.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Names of the virtio serial ports.
pub(crate) const CONTROL_PORT: &str = "schedlab.control";
pub(crate) const AGENT_PORT: &str = "schedlab.agent";
/// Mount tag of the host's files.
pub(crate) const HOST_TAG: &str = "schedlab-host";
/// Last on the kernel command line, after `--`: the word that makes a program init.
pub(crate) const INIT_ARGUMENT: &str = "schedlab.init";
/// On the kernel command line: say that it boots, then power off.
pub(crate) const PROBE_ARGUMENT: &str = "schedlab.probe";
/// Line that init prints then.
pub(crate) const PROBE_ANSWER: &str = "schedlab: the guest boots";
/// Environment variable that tells a program that it runs in a guest of ours.
pub const GUEST_VARIABLE: &str = "SCHEDLAB_GUEST";

/// The largest payload; keeps one command from blocking the others.
pub(crate) const MAX_PAYLOAD: usize = 64 * 1024;
const HEADER: usize = 9;
/// Output of one command that nobody has taken yet. A command whose reader is slower
/// than it waits, and the others go on.
pub(crate) const WINDOW: usize = 1 << 20;
/// The part of the window that a frame takes beside its payload: small ones are many.
const FRAME_COST: usize = 64;

/// Meaning of a frame, and the direction in which it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// To the guest, once: `Setup` as JSON.
    Setup = 1,
    /// From the guest: `Ready` as JSON.
    Ready,
    /// From the guest: why it cannot be used, as text.
    Failed,
    /// From the guest: how the agent ended, as text.
    AgentEnded,
    /// To the guest: `Exec` as JSON; opens the channel.
    Exec,
    /// To the guest: bytes for the command's standard input.
    Input,
    /// To the guest: the command's standard input ends.
    InputEnd,
    /// From the guest: bytes of the command's standard output, or of its terminal.
    Output,
    /// From the guest: bytes of the command's standard error.
    Errors,
    /// From the guest: `Exit` as JSON; closes the channel.
    Exit,
    /// To the guest: `Window` as JSON.
    Resize,
    /// To the guest: the command's peer is gone, end it.
    Hangup,
    /// To the guest, on channel 0: power off at once.
    PowerOff,
    /// To the keeper of a guest, never to the guest: save it under this name.
    Snapshot,
    /// To the guest: room for so many more bytes of a command's output, as a little-endian u32.
    Room,
    /// To the guest: arguments of an agent as JSON, which is started then. A guest that was saved without one gets it.
    Agent,
}

impl FrameKind {
    const ALL: [FrameKind; 16] = [
        FrameKind::Setup,
        FrameKind::Ready,
        FrameKind::Failed,
        FrameKind::AgentEnded,
        FrameKind::Exec,
        FrameKind::Input,
        FrameKind::InputEnd,
        FrameKind::Output,
        FrameKind::Errors,
        FrameKind::Exit,
        FrameKind::Resize,
        FrameKind::Hangup,
        FrameKind::PowerOff,
        FrameKind::Snapshot,
        FrameKind::Room,
        FrameKind::Agent,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// One message of the control port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Meaning of the payload.
    pub kind: FrameKind,
    /// Command that the frame belongs to; 0 is the guest itself.
    pub channel: u32,
    /// Bytes of the message, at most 64 KiB.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of these bytes. Its size is checked where it is written.
    pub fn new(kind: FrameKind, channel: u32, payload: impl Into<Vec<u8>>) -> Self {
        Frame {
            kind,
            channel,
            payload: payload.into(),
        }
    }

    pub(crate) fn json(kind: FrameKind, channel: u32, value: &impl Serialize) -> io::Result<Self> {
        Ok(Frame::new(kind, channel, serde_json::to_vec(value)?))
    }

    /// The payload read as JSON.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> io::Result<T> {
        Ok(serde_json::from_slice(&self.payload)?)
    }

    /// Part of the window that it takes.
    pub(crate) fn cost(&self) -> usize {
        self.payload.len() + FRAME_COST
    }

    pub(crate) fn room(channel: u32, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Frame::new(FrameKind::Room, channel, bytes.to_le_bytes())
    }

    /// The bytes of a frame that makes room.
    pub(crate) fn room_bytes(&self) -> usize {
        let bytes = self.payload.first_chunk().copied().unwrap_or_default();
        u32::from_le_bytes(bytes) as usize
    }

    /// The payload as text; what is no UTF-8 is replaced.
    pub fn payload_text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// One write, so that frames of several threads do not mix below a lock.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let size = self.payload.len();
        let length = u32::try_from(size).ok().filter(|_| size <= MAX_PAYLOAD);
        // The reader would end the connection, and every other command with it.
        let Some(length) = length else {
            let what = format!("{size} bytes are too many for one frame");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        };
        let mut bytes = Vec::with_capacity(HEADER + self.payload.len());
        bytes.push(self.kind as u8);
        bytes.extend(self.channel.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.payload);
        to.write_all(&bytes)?;
        to.flush()
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0u8; HEADER];
        match from.read_exact(&mut header) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let kind = FrameKind::from_number(header[0]).ok_or_else(|| invalid("unknown frame"))?;
        let [_, c0, c1, c2, c3, l0, l1, l2, l3] = header;
        let size = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if size > MAX_PAYLOAD {
            return Err(invalid("a frame is too large"));
        }
        let mut payload = vec![0; size];
        from.read_exact(&mut payload)?;
        Ok(Some(Frame {
            kind,
            channel: u32::from_le_bytes([c0, c1, c2, c3]),
            payload,
        }))
    }
}

/// Description of the guest that is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub hostname: String,
    /// The whole environment of what runs in the guest.
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// The agent's arguments; `None`: no agent, stay until told to power off.
    pub agent: Option<Vec<String>>,
    /// The root is a disk image, not the host's files.
    pub image: bool,
    /// Directory on the host with the kernel's modules.
    pub modules: Option<PathBuf>,
    /// Bring up the user-mode network.
    pub network: bool,
    /// The root is in the initramfs, and so are all requests to the agent.
    #[serde(default)]
    pub packed: bool,
    /// Xen is below this kernel.
    pub xen: Option<XenSetup>,
}

/// Files of an initramfs whose guest is told nothing after it has booted: the [`Setup`], the
/// requests to the agent, and the root.
pub(crate) const PACKED_SETUP: &str = "setup.json";
pub(crate) const PACKED_REQUESTS: &str = "requests";
pub(crate) const PACKED_ROOT: &str = "packed";

/// First line that such a guest writes, when all is over; the agent's replies follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub ready: Ready,
    /// How the agent ended.
    pub agent: String,
}

/// Files of the host that dom0 needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct XenSetup {
    /// Directory with the unpacked toolstack.
    pub tools: PathBuf,
    /// Kernel for the guests of Xen: dom0's own.
    pub kernel: PathBuf,
}

/// Greeting of a guest that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// From `/sys/kernel/notes`; `None` where the kernel has no build ID.
    #[serde(default)]
    pub build_id: Option<String>,
    /// CLOCK_BOOTTIME when the guest was ready.
    pub uptime_ns: u64,
}

/// A command in the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Program and its arguments. A program without a slash is looked for on the guest's `PATH`.
    pub argv: Vec<String>,
    /// Variables that the command has besides those of the guest.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// `None`: the guest's.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Run on a terminal of this size.
    #[serde(default)]
    pub terminal: Option<Window>,
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Height of the terminal.
    pub rows: u16,
    /// Width of the terminal.
    pub columns: u16,
}

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Code as a shell has it: 128 + number for a signal, 127 for what is not found.
    pub code: u8,
    /// Why it was not started.
    #[serde(default)]
    pub error: Option<String>,
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_written() {
        let frames: Vec<Frame> = FrameKind::ALL
            .into_iter()
            .enumerate()
            .map(|(i, kind)| Frame::new(kind, i as u32, vec![i as u8; i * 100]))
            .collect();
        let mut stream = Vec::new();
        for frame in &frames {
            frame.write(&mut stream).unwrap();
        }
        let mut rest = &stream[..];
        for frame in &frames {
            assert_eq!(Frame::read(&mut rest).unwrap().as_ref(), Some(frame));
        }
        assert_eq!(Frame::read(&mut rest).unwrap(), None);
    }

    #[test]
    fn an_unknown_or_oversized_frame_is_an_error() {
        assert!(Frame::read(&mut &[0u8; HEADER][..]).is_err());
        let mut large = vec![FrameKind::Output as u8, 0, 0, 0, 0];
        large.extend(u32::MAX.to_le_bytes());
        assert!(Frame::read(&mut &large[..]).is_err());
        let large = Frame::new(FrameKind::Input, 1, vec![0; MAX_PAYLOAD + 1]);
        let mut stream = Vec::new();
        assert!(large.write(&mut stream).is_err() && stream.is_empty());
    }

    #[test]
    fn a_stream_that_breaks_inside_a_frame_is_an_error() {
        let mut stream = Vec::new();
        Frame::new(FrameKind::Output, 1, "hello")
            .write(&mut stream)
            .unwrap();
        assert!(Frame::read(&mut &stream[..stream.len() - 1]).is_err());
    }
}
