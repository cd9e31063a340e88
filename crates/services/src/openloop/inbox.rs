//! Receiving with the time at which the kernel had the bytes: SO_TIMESTAMPNS of
//! socket(7), which TCP fills with the arrival of the last segment that was read
//! (`tcp_recv_timestamp` in net/ipv4/tcp.c).
//!
//! An answer is then timed without the wake-up of the thread that takes it, which is
//! the generator's own, and may be taken when the thread runs next anyway; so does
//! Lancet (Kogias, Mallon, Bugnion, USENIX ATC 2019) with stamps of network cards.

use load::sys::monotonic_minus_realtime_ns;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};

const BYTES: usize = 256 * 1024;

/// One for all connections of a thread, allocated once.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    control: [u8; cmsg_space::<TimeSpec>()],
    to_monotonic_ns: i64,
}

/// Received bytes, and their time.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Empty at the end of the stream.
    pub bytes: &'a [u8],
    /// CLOCK_MONOTONIC; `None` where the kernel gives no such time.
    pub arrived_ns: Option<u64>,
}

/// Asks for times of arrival. A kernel that has none says so with each piece.
pub fn stamp(socket: impl AsFd) {
    let _ = setsockopt(&socket, ReceiveTimestampns, &true);
}

impl Inbox {
    pub fn new() -> Self {
        Inbox {
            // Written to, so that no page of it is first touched under load.
            bytes: vec![1; BYTES],
            control: [0; cmsg_space::<TimeSpec>()],
            to_monotonic_ns: monotonic_minus_realtime_ns(),
        }
    }

    /// Stamps are of CLOCK_REALTIME, which may be set; to be called now and then.
    pub fn compare_clocks(&mut self) {
        self.to_monotonic_ns = monotonic_minus_realtime_ns();
    }

    pub fn receive(&mut self, socket: impl AsFd) -> Result<Piece<'_>, Errno> {
        let mut space = [IoSliceMut::new(&mut self.bytes)];
        let fd = socket.as_fd().as_raw_fd();
        let control = Some(&mut self.control[..]);
        let message = recvmsg::<()>(fd, &mut space, control, MsgFlags::empty())
            .map_err(|e| Errno::from_raw_os_error(e as i32))?;
        let stamp = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(time) => Some(time.num_nanoseconds() as u64),
                _ => None,
            })
        });
        let size = message.bytes;
        Ok(Piece {
            bytes: &self.bytes[..size],
            arrived_ns: stamp.and_then(|ns| ns.checked_add_signed(self.to_monotonic_ns)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::sys::now_ns;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn bytes_have_the_time_at_which_they_came_not_at_which_they_were_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        stamp(&here);
        let mut inbox = Inbox::new();
        // The kernel begins to stamp when somebody asks, a moment later.
        for _ in 0..100 {
            let before_ns = now_ns();
            there.write_all(b"answer").unwrap();
            let written_ns = now_ns();
            std::thread::sleep(Duration::from_millis(20));
            let piece = inbox.receive(&here).unwrap();
            assert_eq!(piece.bytes, b"answer");
            let Some(arrived_ns) = piece.arrived_ns else {
                continue;
            };
            // The two clocks are compared a little off.
            let slack_ns = 1_000_000;
            assert!(arrived_ns + slack_ns >= before_ns);
            assert!(arrived_ns <= written_ns + slack_ns + 10_000_000);
            return;
        }
        panic!("this kernel gives no times of arrival");
    }

    #[test]
    fn the_end_of_the_stream_is_a_piece_without_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stamp(&here);
        drop(listener.accept().unwrap());
        let mut inbox = Inbox::new();
        assert!(inbox.receive(&here).unwrap().bytes.is_empty());
    }
}
