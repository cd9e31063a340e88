//! Addresses of requests as they are written, and the rule that traffic stays on this machine
//! unless the experiment says otherwise.
//!
//! Names are looked up in hosts(5) only: a measurement asks no name server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

/// `HOST[:PORT]`: an IP address, `localhost` or a name in the hosts file.
pub fn resolve(text: &str, usual_port: u16, hosts: &Path) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, usual_port));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, parse_port(port)?),
        None => (text, usual_port),
    };
    let ip = look_up(host, hosts).ok_or_else(|| {
        format!(
            "the host `{host}` is neither an IP address nor in {}",
            hosts.display()
        )
    })?;
    Ok(SocketAddr::new(ip, port))
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is not a port; ports are 1 to 65535")),
    }
}

fn look_up(host: &str, hosts: &Path) -> Option<IpAddr> {
    let text = doors::read::small_file_text(hosts).unwrap_or_default();
    let of_line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let ip = words.next()?.parse::<IpAddr>().ok()?;
        words
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(ip)
    };
    let found: Vec<IpAddr> = text.lines().filter_map(of_line).collect();
    // Servers listen on the IPv4 loopback address more often than on the other.
    let first_v4 = found.iter().find(|ip| ip.is_ipv4());
    let usual = || {
        host.eq_ignore_ascii_case("localhost")
            .then_some(Ipv4Addr::LOCALHOST.into())
    };
    first_v4.or(found.first()).copied().or_else(usual)
}

/// Refuses other machines, unless they are allowed.
pub fn check(address: SocketAddr, allow_remote: bool) -> Result<(), String> {
    if allow_remote || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "{address} is not on this machine; add allow-remote = true if that machine is yours to load"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "::1 localhost ip6\n127.0.0.1 localhost # here\n10.1.2.3 far.example\n";
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn resolved(text: &str) -> Result<String, String> {
        resolve(text, 80, hosts().path()).map(|address| address.to_string())
    }

    #[test]
    fn addresses_and_names_of_the_hosts_file_are_understood() {
        assert_eq!(resolved("127.0.0.1:11211").unwrap(), "127.0.0.1:11211");
        assert_eq!(resolved("127.0.0.1").unwrap(), "127.0.0.1:80");
        assert_eq!(resolved("[::1]:8080").unwrap(), "[::1]:8080");
        assert_eq!(resolved("[::1]").unwrap(), "[::1]:80");
        assert_eq!(resolved("LocalHost:1").unwrap(), "127.0.0.1:1");
        assert_eq!(resolved("ip6").unwrap(), "[::1]:80");
    }

    #[test]
    fn unknown_names_and_ports_are_refused() {
        assert!(
            resolved("nowhere.example")
                .unwrap_err()
                .contains("nowhere.example")
        );
        assert!(resolved("localhost:0").unwrap_err().contains("1 to 65535"));
        assert!(resolved("localhost:http").is_err());
    }

    #[test]
    fn other_machines_are_refused_unless_allowed() {
        let far = resolve("far.example", 80, hosts().path()).unwrap();
        assert!(check(far, false).unwrap_err().contains("allow-remote"));
        assert_eq!(check(far, true), Ok(()));
        assert_eq!(check("127.9.9.9:1".parse().unwrap(), false), Ok(()));
        assert_eq!(
            check("[::ffff:127.0.0.1]:1".parse().unwrap(), false),
            Ok(())
        );
    }
}
