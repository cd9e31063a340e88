//! The threads that answer: `schedlab serve --pairs`.

use super::Protocol;
use super::hello::{Hello, buffer};
use load::sys;
use services::serve::LISTENING;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::Builder;

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "rr-server";

const STACK_BYTES: usize = 256 * 1024;

/// Serves pairs until the process is killed. Port 0: any free one. The first line on `stdout`
/// is [`LISTENING`] and the address.
pub fn serve_pairs_main(at: SocketAddr, mut stdout: impl Write) -> Result<(), String> {
    let listener = TcpListener::bind(at).map_err(|e| format!("listen at {at}: {e}"))?;
    listener
        .local_addr()
        .and_then(|address| writeln!(stdout, "{LISTENING}{address}"))
        .and_then(|()| stdout.flush())
        .map_err(|e| format!("write to standard output: {e}"))?;
    accept(&listener);
    Ok(())
}

/// One thread for each connection.
pub(super) fn accept(listener: &TcpListener) {
    for stream in listener.incoming() {
        let started = stream.and_then(|stream| {
            Builder::new()
                .name(THREAD.to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || answer(stream))
        });
        if started.is_err() {
            // Too many open files or threads: some will be closed.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// The load ends its side of the pair when it is done, which is no error.
fn answer(stream: TcpStream) {
    let _ = try_answer(stream);
}

fn try_answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let hello = Hello::read_from(&mut stream)?;
    if let Some(cpu) = hello.cpu {
        sys::pin_to(cpu)?;
    }
    let mut request = buffer(hello.request_bytes);
    let response = buffer(hello.response_bytes);
    match hello.protocol {
        Protocol::Tcp => {
            stream.write_all(&0_u16.to_le_bytes())?;
            loop {
                stream.read_exact(&mut request)?;
                stream.write_all(&response)?;
            }
        }
        Protocol::Udp => {
            let socket = datagrams(&mut stream, hello.datagrams_from)?;
            loop {
                socket.recv(&mut request)?;
                socket.send(&response)?;
            }
        }
    }
}

/// The socket that answers the datagrams of one pair, whose port the load is told. Connected,
/// because the kernel then looks up neither route nor address for each response, and drops the
/// datagrams of anybody else.
fn datagrams(stream: &mut TcpStream, from: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((stream.local_addr()?.ip(), 0))?;
    socket.connect((stream.peer_addr()?.ip(), from))?;
    stream.write_all(&socket.local_addr()?.port().to_le_bytes())?;
    Ok(socket)
}
