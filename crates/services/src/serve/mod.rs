//! `schedlab serve`: a small server that answers HTTP requests and memcached `get` and
//! `set` on one port, of the loopback address unless it is told another. What an experiment uses that names no other server.
//!
//! One thread accepts and deals the connections out in turn; each worker waits in
//! epoll(7) and answers whatever has come as a whole.

mod connection;
mod http;
mod memcached;
mod session;
mod store;
mod worker;

pub use session::Session;
pub use store::Store;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use worker::{Inbox, Worker};

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "serve-worker";

/// Before the address, on the line that says that the server is ready.
pub const LISTENING: &str = "listening ";

/// Serves until the process is killed. Port 0: any free one. The first line on
/// `stdout` is [`LISTENING`] and the address.
pub fn serve_main(threads: u32, at: SocketAddr, mut stdout: impl Write) -> Result<(), String> {
    let server = Server::start_at(threads, at).map_err(|e| format!("listen at {at}: {e}"))?;
    writeln!(stdout, "{LISTENING}{}", server.address)
        .and_then(|()| stdout.flush())
        .map_err(|e| format!("write to standard output: {e}"))?;
    server.join();
    Ok(())
}

/// A server that runs. Its threads live as long as the process.
#[derive(Debug)]
pub struct Server {
    /// Address at which it listens.
    pub address: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl Server {
    /// Server on the loopback address with its threads running; port 0 is any free one. An error
    /// where the port is taken or a thread cannot be made.
    pub fn start(threads: u32, port: u16) -> io::Result<Self> {
        // Never more than this machine can reach it, unless that was asked for.
        Server::start_at(threads, (Ipv4Addr::LOCALHOST, port).into())
    }

    /// The same at any address of this machine.
    pub fn start_at(threads: u32, at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let store = Arc::new(Store::default());
        let inboxes = (0..threads.max(1))
            .map(|_| start_worker(Arc::clone(&store)))
            .collect::<io::Result<Vec<_>>>()?;
        let acceptor = Builder::new()
            .name("serve-accept".to_owned())
            .spawn(move || accept(&listener, &inboxes))?;
        Ok(Server { address, acceptor })
    }

    fn join(self) {
        // A panic of the acceptor has been printed; there is nothing to add.
        let _ = self.acceptor.join();
    }
}

fn start_worker(store: Arc<Store>) -> io::Result<Arc<Inbox>> {
    let inbox = Arc::new(Inbox::new()?);
    let worker = Worker::new(Arc::clone(&inbox), store)?;
    Builder::new()
        .name(THREAD.to_owned())
        .spawn(move || worker.run())?;
    Ok(inbox)
}

fn accept(listener: &TcpListener, inboxes: &[Arc<Inbox>]) {
    let mut turns = inboxes.iter().cycle();
    for stream in listener.incoming() {
        match (stream, turns.next()) {
            (Ok(stream), Some(inbox)) => inbox.push_stream(stream),
            // Too many open files: some will be closed.
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

/// Result of reading a request at the beginning of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is not whole.
    More,
    /// It took so many bytes, and its answer was written.
    Answered(usize),
    /// Its answer was written, and the connection ends.
    Last,
}

/// Answers the request at the beginning of `input`. HTTP methods have capital
/// letters, memcached's commands small ones.
fn answer(input: &[u8], store: &Store, output: &mut Vec<u8>) -> Step {
    match input.first() {
        None => Step::More,
        Some(byte) if byte.is_ascii_uppercase() => http::answer(input, output),
        Some(_) => memcached::answer(input, store, output),
    }
}
