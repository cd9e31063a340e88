//! Address of the server, and the check by which it is ready.
//!
//! Every server listens on the IPv4 loopback address only, or at the address that the experiment asks
//! for, on a port that was free a moment ago unless its program names one.

use load::roles::{Readiness, ServerProgram};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A listening socket takes a connection at once, also while its program is busy.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);
/// Longest wait for an answer. A service that starts may take seconds for one, and if it were
/// given up sooner, it would go on with it and the next question would come on top.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Address on which the server shall listen. An error if the port that it names is taken.
pub fn address(server: &dyn ServerProgram, at: IpAddr) -> Result<SocketAddr, String> {
    let wanted = server.port().unwrap_or(0);
    let listener = TcpListener::bind((at, wanted))
        .map_err(|e| format!("port {wanted} of the server cannot be listened on at {at}: {e}"))?;
    listener
        .local_addr()
        .map_err(|e| format!("choose a port for the server: {e}"))
}

/// The reason why something is not ready.
#[derive(Debug, PartialEq, Eq)]
pub enum NotReady {
    /// It does not do yet what is waited for.
    Yet(String),
    /// It runs and answers, but with another status.
    WrongAnswer(String),
}

impl From<String> for NotReady {
    fn from(why: String) -> Self {
        NotReady::Yet(why)
    }
}

/// One look, in the time that is left for it; the error says what the server does not do yet.
pub fn probe(ready: &Readiness, address: SocketAddr, left: Duration) -> Result<(), NotReady> {
    match ready {
        Readiness::Http { path, status } => check_answer(address, path, *status, left),
        Readiness::Tcp => Ok(connect_to(address).map(drop)?),
    }
}

/// The address, or the loopback one in its place where only that takes connections: services that no load asks
/// need not be reached from elsewhere.
pub fn find_answering(address: SocketAddr) -> SocketAddr {
    let at_home = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
    let is_only_there = || connect_to(address).is_err() && connect_to(at_home).is_ok();
    match address.ip() != at_home.ip() && is_only_there() {
        true => at_home,
        false => address,
    }
}

pub fn connect_to(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, CONNECT_LIMIT)
        .map_err(|e| format!("{address} takes no connection ({e})"))
}

/// A `GET` of the path is answered with this status.
pub fn check_answer(
    address: SocketAddr,
    path: &str,
    status: u16,
    left: Duration,
) -> Result<(), NotReady> {
    let limit = left.clamp(CONNECT_LIMIT, ANSWER_LIMIT);
    match http_status(connect_to(address)?, address, path, limit) {
        Ok(found) if found == status => Ok(()),
        Ok(found) => Err(NotReady::WrongAnswer(format!(
            "GET {path} was answered with {found}, not {status}"
        ))),
        Err(e) => Err(format!("GET {path}: {}", fault(&e)).into()),
    }
}

/// Words for the failure of a request for a status.
fn fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection was closed without an answer".to_owned(),
        io::ErrorKind::WouldBlock => "no answer came".to_owned(),
        io::ErrorKind::InvalidData => "the answer is not HTTP".to_owned(),
        _ => error.to_string(),
    }
}

fn http_status(
    mut stream: TcpStream,
    address: SocketAddr,
    path: &str,
    limit: Duration,
) -> io::Result<u16> {
    stream.set_read_timeout(Some(limit))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut start = [0u8; 12];
    stream.read_exact(&mut start)?;
    let text = std::str::from_utf8(&start).ok();
    let status = text
        .filter(|text| text.starts_with("HTTP/"))
        .and_then(|text| text.get(9..)?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use services::programs::server_command::ServerCommand;

    const LEFT: Duration = Duration::from_secs(30);

    #[test]
    fn a_port_that_is_taken_is_named() {
        let command = |port| ServerCommand {
            argv: vec!["serve".to_owned(), "{port}".to_owned()],
            port,
            ready: Readiness::Tcp,
        };
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let at = IpAddr::from(Ipv4Addr::LOCALHOST);
        let error = address(&command(Some(port)), at).unwrap_err();
        assert!(error.contains(&format!("port {port}")), "{error}");
        assert_ne!(address(&command(None), at).unwrap().port(), 0);
    }

    fn answering(answer: &'static [u8]) -> SocketAddr {
        answering_after(Duration::ZERO, answer)
    }

    fn answering_after(pause: Duration, answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                std::thread::sleep(pause);
                let _ = stream.write_all(answer);
            }
        });
        address
    }

    fn ready(status: u16) -> Readiness {
        Readiness::Http {
            path: "/health".to_owned(),
            status,
        }
    }

    #[test]
    fn what_is_no_answer_is_said_in_words() {
        let said = |answer| match probe(&ready(200), answering(answer), LEFT) {
            Err(NotReady::Yet(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            said(b"220 smtp.example ESMTP\r\n"),
            "GET /health: the answer is not HTTP"
        );
        assert!(said(b"HTTP/1.1").contains("without an answer"));
    }

    #[test]
    fn an_answer_that_takes_its_time_is_waited_for_while_there_is_some_left() {
        let slow = || answering_after(Duration::from_millis(900), b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(probe(&ready(200), slow(), LEFT), Ok(()));
        let over = probe(&ready(200), slow(), Duration::ZERO);
        assert_eq!(
            over,
            Err(NotReady::Yet("GET /health: no answer came".to_owned()))
        );
    }

    #[test]
    fn readiness_by_http_needs_the_right_status() {
        let address = answering(b"HTTP/1.1 503 Not yet\r\n\r\n");
        assert_eq!(probe(&ready(503), address, LEFT), Ok(()));
        let error = probe(&ready(200), address, LEFT).unwrap_err();
        let why = "GET /health was answered with 503, not 200".to_owned();
        assert_eq!(error, NotReady::WrongAnswer(why));
    }
}
