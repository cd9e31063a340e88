//! Stores every key once before the load begins, some dozens at a time.

use super::request::{Keys, Operation, Request};
use doors::read::line_within;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const AT_ONCE: u32 = 64;
const LIMIT: Duration = Duration::from_secs(10);
/// A server that never ends its line must not fill the memory.
const MOST_LINE_BYTES: u64 = 512;

#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    #[error("store the keys at {address}: {source}")]
    Io {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(
        "store the keys at {address}: no answer for {} s; is there CPU time for the server?",
        LIMIT.as_secs()
    )]
    Silent { address: SocketAddr },
    #[error("store the keys at {address}: the server answered {answer:?}")]
    Refused { address: SocketAddr, answer: String },
}

pub fn preload(address: SocketAddr, keys: &Keys) -> Result<(), PreloadError> {
    let failed = |source: io::Error| match source.kind() {
        // How a socket says that its time-out is over.
        io::ErrorKind::WouldBlock => PreloadError::Silent { address },
        _ => PreloadError::Io { address, source },
    };
    let (mut stream, mut answers) = connect(address).map_err(failed)?;
    let (mut text, mut batch) = (Vec::new(), Vec::new());
    for first in (0..keys.count()).step_by(AT_ONCE as usize) {
        let last = first.saturating_add(AT_ONCE).min(keys.count());
        batch.clear();
        for key in first..last {
            let operation = Operation::Set;
            keys.write(Request { operation, key }, &mut text);
            batch.extend_from_slice(&text);
        }
        stream.write_all(&batch).map_err(failed)?;
        for _ in first..last {
            let line = line_within(&mut answers, MOST_LINE_BYTES).map_err(failed)?;
            let line = line.unwrap_or_default();
            if line != b"STORED\r\n" {
                let answer = String::from_utf8_lossy(&line).trim_end().to_owned();
                return Err(PreloadError::Refused { address, answer });
            }
        }
    }
    Ok(())
}

fn connect(address: SocketAddr) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_nodelay(true)?;
    let answers = BufReader::new(stream.try_clone()?);
    Ok((stream, answers))
}
