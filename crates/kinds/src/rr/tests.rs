use super::*;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

fn rr(protocol: Protocol) -> Rr {
    Rr {
        protocol,
        request_bytes: 1,
        response_bytes: 1,
        pair_cpus: None,
    }
}

/// A real run of two pairs for 300 ms with a server in this process.
fn run(params: &Rr) -> Result<Parsed, NativeError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let job = Job {
        server: Some(listener.local_addr().unwrap()),
        ..testing::job(KIND.with_params(params))
    };
    std::thread::spawn(move || serve::accept(&listener));
    testing::generate(params, &job)
}

fn value(parsed: &Parsed, name: &str) -> f64 {
    let mut metrics = parsed.metrics.iter();
    metrics.find(|m| m.metric == name).unwrap().value
}

#[test]
fn pairs_of_both_protocols_ask_and_answer() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let parsed = run(&rr(protocol)).unwrap();
        let rate = value(&parsed, "requests_per_sec");
        let slowest = value(&parsed, "slowest_pair_per_sec");
        assert!(rate > 100.0, "{protocol:?}: {rate}");
        assert!(
            0.0 < slowest && slowest <= rate / 2.0,
            "{slowest} of {rate}"
        );
        assert!(value(&parsed, "request_p50") > 1_000.0);
        assert_eq!(parsed.files[0].name, "request.hlog");
        assert_eq!(
            parsed.files[1].text.lines().count(),
            3,
            "a head and two pairs"
        );
    }
}

#[test]
fn messages_larger_than_a_segment_come_whole() {
    let large = Rr {
        request_bytes: 300_000,
        response_bytes: 200_000,
        ..rr(Protocol::Tcp)
    };
    assert!(value(&run(&large).unwrap(), "requests_per_sec") > 1.0);
    let most = Rr {
        request_bytes: MOST_UDP_BYTES,
        response_bytes: MOST_UDP_BYTES,
        ..rr(Protocol::Udp)
    };
    assert!(value(&run(&most).unwrap(), "requests_per_sec") > 1.0);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let job = Job {
        server: Some("127.0.0.1:1".parse().unwrap()),
        ..testing::job(KIND.with_params(&rr(Protocol::Tcp)))
    };
    let (theirs, _stdin) = std::io::pipe().unwrap();
    let mut phases = Phases::new(theirs, Vec::new()).unwrap();
    let error = rr(Protocol::Tcp).generate(&job, &mut phases).unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

#[test]
fn sizes_that_cannot_be_are_refused_by_their_key() {
    let empty = Rr {
        request_bytes: 0,
        ..rr(Protocol::Tcp)
    };
    assert_eq!(empty.check().unwrap_err().key, "request-size");
    let large = Rr {
        response_bytes: MOST_UDP_BYTES + 1,
        ..rr(Protocol::Udp)
    };
    let error = large.check().unwrap_err();
    assert_eq!(error.key, "response-size");
    assert!(error.what.contains("65507"), "{error}");
}

#[test]
fn a_cpu_that_is_not_there_is_a_problem_before_the_run() {
    let bound = Rr {
        pair_cpus: Some([0, 9_999]),
        ..rr(Protocol::Tcp)
    };
    let problems = bound.require(&testing::job(KIND.with_params(&bound)));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("CPU 9999"), "{:?}", problems[0]);
}

#[test]
fn the_first_words_come_as_they_were_said() {
    let params = Rr {
        request_bytes: 70_000,
        response_bytes: 3,
        pair_cpus: Some([0, 1]),
        ..rr(Protocol::Tcp)
    };
    let said = hello::Hello::from_params(&params, 40_000);
    let mut bytes = Vec::new();
    said.write_to(&mut bytes).unwrap();
    assert_eq!(
        hello::Hello::read_from(&mut bytes.as_slice()).unwrap(),
        said
    );
    assert!(hello::Hello::read_from(&mut &b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"[..]).is_err());
}

/// A socket for datagrams and the port of a server's thread that answers it alone.
fn datagram_pair(server: SocketAddr, request_bytes: u64) -> (TcpStream, UdpSocket, u16) {
    let params = Rr {
        request_bytes,
        ..rr(Protocol::Udp)
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let longest = Some(std::time::Duration::from_secs(10));
    socket.set_read_timeout(longest).unwrap();
    let mut words = TcpStream::connect(server).unwrap();
    let own_port = socket.local_addr().unwrap().port();
    hello::Hello::from_params(&params, own_port)
        .write_to(&mut words)
        .unwrap();
    let mut port = [0; 2];
    words.read_exact(&mut port).unwrap();
    (words, socket, u16::from_le_bytes(port))
}

#[test]
fn a_server_of_datagrams_answers_its_own_pair_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || serve::accept(&listener));
    let (_first, mine, to_mine) = datagram_pair(server, 1);
    let (_second, other, to_other) = datagram_pair(server, 1);
    assert_ne!(to_mine, to_other);
    // A stranger's datagram is dropped: a connected socket refuses it, and no answer comes.
    other.connect(("127.0.0.1", to_mine)).unwrap();
    other.send(&[9]).unwrap();
    let mut answer = [0; 8];
    let refused = other.recv(&mut answer).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    for (socket, port) in [(&mine, to_mine), (&other, to_other)] {
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.send(&[1]).unwrap();
        assert_eq!(socket.recv(&mut answer).unwrap(), 1);
    }
}
