//! The view as a page of this machine: one file, and a stream of events (server-sent events of the HTML
//! standard). One thread serves all clients, and their number is bounded.
//!
//! A web page of somebody else may send requests to this machine, too. So the address has a secret,
//! the host of a request must be this machine, and its origin must be the page itself.

mod client;
mod request;

use crate::scene::Scene;
use client::{Client, Served};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients at a time. One more is not heard before another has gone.
const MOST_CLIENTS: usize = 128;
/// Time between two scenes for each client that there is: what they cost together does not grow with them.
const PAUSE_OF_EACH: Duration = Duration::from_millis(40);
/// Time in which clients take what is left at the end.
const FAREWELL: Duration = Duration::from_secs(2);
/// The page itself.
const PAGE: &str = include_str!("page.html");

/// What all clients get.
#[derive(Debug, Clone, Default)]
struct Event {
    /// As it is sent.
    bytes: Arc<Vec<u8>>,
    /// Number of the event, so that each client gets it once.
    number: u64,
    /// Can it wait for a moment?
    is_scene: bool,
}

/// The event for all clients.
#[derive(Debug, Default)]
struct Shared {
    last: Event,
    is_over: bool,
}

/// A page that is served until this is dropped.
#[derive(Debug)]
pub struct Page {
    address: String,
    shared: Arc<Mutex<Shared>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Serves the page at this address of this machine; port 0 is any that is free.
    ///
    /// # Errors
    /// A port that is taken, and what the system gives.
    pub fn listen_at(at: SocketAddr) -> io::Result<Page> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let secret = new_secret()?;
        let shared = Arc::<Mutex<Shared>>::default();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags)?);
        let server = Server {
            listener,
            wake: Arc::clone(&wake),
            shared: Arc::clone(&shared),
            secret: secret.clone(),
            at,
            clients: Vec::new(),
            current: Event::default(),
            next_scene: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("page".to_owned())
            .spawn(move || server.serve())?;
        Ok(Page {
            address: format!("http://{at}/{secret}/"),
            shared,
            wake,
            thread: Some(thread),
        })
    }

    /// The address, with its secret.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a scene to all that have the page open.
    pub fn show(&self, scene: &Scene) {
        match serde_json::to_string(scene) {
            Ok(json) => self.send("scene", &json),
            Err(error) => tracing::warn!("a scene is not sent: {error}"),
        }
    }

    /// Puts the report in the place of the page.
    pub fn show_report(&self, html: &str) {
        // One line: an event of the stream ends with a line.
        if let Ok(json) = serde_json::to_string(html) {
            self.send("report", &json);
        }
    }

    fn send(&self, name: &str, json: &str) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.last = Event {
            bytes: Arc::new(format!("event: {name}\ndata: {json}\n\n").into_bytes()),
            number: shared.last.number + 1,
            is_scene: name == "scene",
        };
        drop(shared);
        self.wake_up();
    }

    fn wake_up(&self) {
        // Fails only when the counter is full, and then it is awake.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_over = true;
        self.wake_up();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A word that nobody can guess.
fn new_secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    // So few bytes come at once (getrandom(2)).
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The thread of the page.
struct Server {
    listener: TcpListener,
    wake: Arc<OwnedFd>,
    shared: Arc<Mutex<Shared>>,
    secret: String,
    at: SocketAddr,
    clients: Vec<Client>,
    /// The event that is sent now.
    current: Event,
    /// Time from which on the next scene may be sent.
    next_scene: Instant,
}

impl Server {
    fn serve(mut self) {
        let mut farewell = None;
        loop {
            let (is_over, is_waiting) = self.take_event();
            let served = Served {
                secret: &self.secret,
                at: self.at,
                page: PAGE,
                event: &self.current.bytes,
                number: self.current.number,
            };
            self.clients.retain_mut(|client| client.serve(&served));
            let number = self.current.number;
            let is_done = self.clients.iter().all(|client| client.has_all(number));
            let end = is_over.then(|| *farewell.get_or_insert_with(|| Instant::now() + FAREWELL));
            if end.is_some_and(|end| is_done || Instant::now() >= end) {
                return;
            }
            let next = is_waiting.then_some(self.next_scene);
            if self.wait(end.into_iter().chain(next)).is_err() {
                // Without poll(2) there is no page; the run goes on.
                return;
            }
            self.accept();
        }
    }

    /// Takes the last event if its time has come. Gives whether the page is over, and whether a scene waits.
    fn take_event(&mut self) -> (bool, bool) {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = shared.last.number > self.current.number;
        let may_wait = shared.last.is_scene && !shared.is_over;
        if is_new && may_wait && Instant::now() < self.next_scene {
            return (false, true);
        }
        if is_new {
            let clients = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
            self.next_scene = Instant::now() + PAUSE_OF_EACH.saturating_mul(clients);
            self.current = shared.last.clone();
        }
        (shared.is_over, false)
    }

    /// Until somebody comes, asks, or can take more, there is something new, or one of these moments is there.
    fn wait(&self, moments: impl Iterator<Item = Instant>) -> io::Result<()> {
        let listens = match self.clients.len() < MOST_CLIENTS {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        let mut fds = vec![
            PollFd::new(&*self.wake, PollFlags::IN),
            PollFd::new(&self.listener, listens),
        ];
        fds.extend(self.clients.iter().map(Client::awaited));
        let deadlines = self.clients.iter().filter_map(Client::deadline);
        let deadlines = deadlines.chain(moments);
        let limit = deadlines.min().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            // Not a moment too early.
            rustix::event::Timespec::try_from(left + Duration::from_millis(1))
        });
        let limit = limit.transpose().map_err(io::Error::other)?;
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Empties the counter, if it was raised.
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
        Ok(())
    }

    fn accept(&mut self) {
        while self.clients.len() < MOST_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client::new(stream));
            }
        }
    }
}

#[cfg(test)]
mod tests;
