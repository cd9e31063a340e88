//! The servers: nginx, memcached, and schedlab's own, one worker on one CPU each.

use crate::side::pinned;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_LIMIT: Duration = Duration::from_secs(10);

/// Killed when dropped.
pub struct Server {
    pub address: SocketAddr,
    process: Child,
    /// Its configuration.
    _directory: Option<TempDir>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    pub fn nginx(cpu: u32, realtime: bool) -> Result<Server, Box<dyn Error>> {
        let (directory, address) = (tempfile::tempdir()?, free_address()?);
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, nginx_conf(directory.path(), address))?;
        let mut command = pinned(Path::new("nginx"), cpu, realtime);
        command.arg("-c").arg(&file);
        command.arg("-e").arg(directory.path().join("error.log"));
        Server::started(command, address, Some(directory))
    }

    pub fn memcached(cpu: u32, realtime: bool) -> Result<Server, Box<dyn Error>> {
        let address = free_address()?;
        let mut command = pinned(Path::new("memcached"), cpu, realtime);
        command.args(["-t", "1", "-u", "root", "-l", "127.0.0.1"]);
        command.args(["-p", &address.port().to_string()]);
        Server::started(command, address, None)
    }

    /// Speaks both protocols.
    pub fn echo(schedlab: &Path, cpu: u32, realtime: bool) -> Result<Server, Box<dyn Error>> {
        let mut command = pinned(schedlab, cpu, realtime);
        command.args(["serve", "--threads", "1"]);
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().strip_prefix(services::serve::LISTENING);
        Ok(Server {
            address: address.ok_or("schedlab serve did not listen")?.parse()?,
            process,
            _directory: None,
        })
    }

    fn started(
        mut command: Command,
        address: SocketAddr,
        directory: Option<TempDir>,
    ) -> Result<Server, Box<dyn Error>> {
        let process = command.stdin(Stdio::null()).spawn()?;
        let server = Server {
            address,
            process,
            _directory: directory,
        };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > START_LIMIT {
                return Err(format!("{command:?} does not listen at {address}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A single process, so that killing it leaves nothing behind.
fn nginx_conf(directory: &Path, address: SocketAddr) -> String {
    let directory = directory.display();
    format!(
        "daemon off; master_process off; worker_processes 1; pid {directory}/pid;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n\
           access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;\n\
           client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;\n\
           fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi;\n\
           scgi_temp_path {directory}/scgi;\n\
           server {{ listen {address}; location / {{ return 200 \"ok\\n\"; }} }}\n\
         }}\n"
    )
}
