//! The first words between the two of a pair: the load says over TCP what will be asked and from
//! which port, and the server answers with the port of its datagrams.

use super::{Protocol, Rr};
use std::io::{self, Read, Write};

const BYTES: usize = 24;
const NO_CPU: u32 = u32::MAX;

/// Work of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    pub protocol: Protocol,
    /// CPU of the server's thread; `None`: the scheduler chooses.
    pub cpu: Option<u32>,
    /// Port that the load's datagrams come from; 0 with TCP.
    pub datagrams_from: u16,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

impl Hello {
    pub fn from_params(params: &Rr, datagrams_from: u16) -> Self {
        Hello {
            protocol: params.protocol,
            cpu: params.pair_cpus.map(|[_, server]| server),
            datagrams_from,
            request_bytes: params.request_bytes,
            response_bytes: params.response_bytes,
        }
    }

    pub fn write_to(self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = [0; BYTES];
        bytes[0] = match self.protocol {
            Protocol::Tcp => 0,
            Protocol::Udp => 1,
        };
        bytes[2..4].copy_from_slice(&self.datagrams_from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.cpu.unwrap_or(NO_CPU).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.request_bytes.to_le_bytes());
        bytes[16..].copy_from_slice(&self.response_bytes.to_le_bytes());
        to.write_all(&bytes)
    }

    /// An error where something else was said, such as by who only looks whether the port is
    /// open.
    pub fn read_from(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        from.read_exact(&mut bytes)?;
        let protocol = match bytes[0] {
            0 => Protocol::Tcp,
            1 => Protocol::Udp,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let (head, sizes) = bytes.split_at(8);
        let (request, response) = sizes.split_at(8);
        let size = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |sum, b| sum << 8 | u64::from(*b))
        };
        let cpu = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let hello = Hello {
            protocol,
            cpu: (cpu != NO_CPU).then_some(cpu),
            datagrams_from: u16::from_le_bytes([head[2], head[3]]),
            request_bytes: size(request),
            response_bytes: size(response),
        };
        let allowed = 1..=protocol.most_bytes();
        match allowed.contains(&hello.request_bytes) && allowed.contains(&hello.response_bytes) {
            true => Ok(hello),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Bytes of a buffer for one request or response.
pub fn buffer(bytes: u64) -> Vec<u8> {
    // At most a few MiB, which a usize counts. Written, so that no page is new in the window.
    vec![1; usize::try_from(bytes).unwrap_or(usize::MAX)]
}
