//! A thread of the server and its connections.

use super::connection::{Connection, Waits};
use super::store::Store;
use crate::openloop::{Events, Poller, Wait, events, index};
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

const RECEIVE_BYTES: usize = 64 * 1024;
/// Index of the inbox among the events.
const INBOX: usize = u32::MAX as usize;

/// New connections for a worker.
#[derive(Debug)]
pub struct Inbox {
    streams: Mutex<Vec<TcpStream>>,
    bell: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Inbox {
            streams: Mutex::default(),
            bell: eventfd(0, flags)?,
        })
    }

    pub fn push_stream(&self, stream: TcpStream) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(stream);
        // Fails only when the bell rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<TcpStream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: what is put later rings again.
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        std::mem::take(&mut streams)
    }
}

pub struct Worker {
    inbox: Arc<Inbox>,
    store: Arc<Store>,
    poller: Poller,
    buffer: Vec<u8>,
    /// A place for each connection, free ones among them.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
}

impl Worker {
    pub fn new(inbox: Arc<Inbox>, store: Arc<Store>) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add_socket(&inbox.bell, INBOX, EventFlags::IN)?;
        Ok(Worker {
            inbox,
            store,
            poller,
            buffer: vec![0; RECEIVE_BYTES],
            connections: Vec::new(),
            free: Vec::new(),
        })
    }

    /// Ends when the kernel refuses to wait, which it does not.
    pub fn run(mut self) {
        let mut events = events();
        while self.poller.wait(&mut events, Wait::Forever).is_ok() {
            self.handle(&events);
        }
    }

    fn handle(&mut self, events: &Events) {
        for event in events {
            match index(event) {
                Some(INBOX) => self.open_new(),
                Some(index) => self.serve(index, event.flags),
                None => {}
            }
        }
    }

    fn open_new(&mut self) {
        for stream in self.inbox.take() {
            // A client that is gone already is not missed.
            let _ = self.open(stream);
        }
    }

    fn open(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.poller.add_socket(&stream, index, EventFlags::IN)?;
        self.connections[index] = Some(Connection::new(stream));
        Ok(())
    }

    fn serve(&mut self, index: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let had_room = !flags.contains(EventFlags::OUT);
        let waits = if had_room {
            connection.receive(&mut self.buffer, &self.store)
        } else {
            connection.send()
        };
        let stream = connection.stream();
        let kept = match (waits, had_room) {
            (Waits::Nothing, _) => Err(io::ErrorKind::NotConnected.into()),
            (Waits::Room, true) => self.poller.modify(stream, index, EventFlags::OUT),
            (Waits::Requests, false) => self.poller.modify(stream, index, EventFlags::IN),
            _ => Ok(()),
        };
        if kept.is_err() {
            self.connections[index] = None;
            self.free.push(index);
        }
    }
}
