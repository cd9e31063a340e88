//! Figures that a sched_ext scheduler tells of itself, by the protocol of scx_stats: a line of JSON asks, and a
//! line of JSON answers. A scheduler answers when its own loop comes round, which may take a second. So
//! nobody waits here: a look takes the answer to the question of the look before.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const SOCKET: &str = "var/run/scx/root/stats";
const QUESTION: &[u8] = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
/// Bytes of an answer. That of scx_layered with its layers has some kilobytes.
const LONGEST_ANSWER: usize = 256 * 1024;
/// Figures of an answer; more would not be read by anybody.
const MOST_FIGURES: usize = 24;
/// Bytes of a name.
const LONGEST_NAME: usize = 40;

/// Connection to the scheduler in force. Many schedulers count from the question before on the same connection.
#[derive(Debug)]
pub struct Conversation {
    stream: UnixStream,
    answer: Vec<u8>,
}

/// Connection is over: the scheduler has ended, or does not speak the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over;

impl Conversation {
    /// Connection to the scheduler that is in force, with its first question; `None` if there is none or it
    /// tells nothing.
    pub fn open(root: &Path) -> Option<Conversation> {
        let stream = UnixStream::connect(root.join(SOCKET)).ok()?;
        stream.set_nonblocking(true).ok()?;
        let mut conversation = Conversation {
            stream,
            answer: Vec::new(),
        };
        conversation.ask().ok()?;
        Some(conversation)
    }

    /// Figures of the answer that has come since the last look, by the scheduler's own names, and asks again;
    /// none as long as the answer is not there.
    pub fn take_figures(&mut self) -> Result<BTreeMap<String, f64>, Over> {
        self.listen()?;
        let Some(end) = self.answer.iter().position(|byte| *byte == b'\n') else {
            return Ok(BTreeMap::new());
        };
        let figures = read_answer(&self.answer[..end])?;
        self.answer.clear();
        self.ask()?;
        Ok(figures)
    }

    fn ask(&mut self) -> Result<(), Over> {
        self.stream.write_all(QUESTION).map_err(|_| Over)
    }

    fn listen(&mut self) -> Result<(), Over> {
        let mut part = [0; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return Err(Over),
                Ok(n) => self.answer.extend_from_slice(&part[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Over),
            }
            if self.answer.len() > LONGEST_ANSWER {
                return Err(Over);
            }
        }
    }
}

/// Numbers at the top of an answer: what is nested is of parts of the machine.
fn read_answer(line: &[u8]) -> Result<BTreeMap<String, f64>, Over> {
    let answer: Value = serde_json::from_slice(line).map_err(|_| Over)?;
    let figures = answer.pointer("/args/resp").and_then(Value::as_object);
    if answer.get("errno").and_then(Value::as_i64) != Some(0) {
        return Err(Over);
    }
    let numbers = figures.ok_or(Over)?.iter().filter_map(|(name, value)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_short = name.len() <= LONGEST_NAME && name.chars().all(is_name);
        Some((name.clone(), value.as_f64().filter(|_| is_short)?))
    });
    Ok(numbers.take(MOST_FIGURES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;
    use std::os::unix::net::UnixListener;

    /// A scheduler that answers each question so, and how often it was asked.
    fn answering(root: &Path, answer: &str) -> std::thread::JoinHandle<usize> {
        let socket = root.join(SOCKET);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        let answer = answer.to_owned();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = 0;
            let questions = BufReader::new(stream.try_clone().unwrap());
            for byte in questions.bytes() {
                let Ok(byte) = byte else { break };
                if byte == b'\n' {
                    asked += 1;
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
            asked
        })
    }

    fn wait_for_answer(conversation: &mut Conversation) -> Result<BTreeMap<String, f64>, Over> {
        loop {
            let figures = conversation.take_figures()?;
            if !figures.is_empty() {
                return Ok(figures);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_scheduler_is_asked_again_after_each_answer() {
        let root = ::tests::tree(&[]);
        let answer = "{\"errno\":0,\"args\":{\"resp\":{\"nr_sched\":7,\"pc_lc\":2.5,\"power_mode\":\"x\",\
                      \"doms\":{\"a\":1},\"\\u001b[2J\":1}}}\n";
        let scheduler = answering(root.path(), answer);
        let mut conversation = Conversation::open(root.path()).unwrap();
        let expected = [("nr_sched".to_owned(), 7.0), ("pc_lc".to_owned(), 2.5)];
        for _ in 0..3 {
            assert_eq!(
                wait_for_answer(&mut conversation),
                Ok(expected.clone().into())
            );
        }
        drop(conversation);
        assert_eq!(scheduler.join().unwrap(), 4);
        assert!(Conversation::open(root.path()).is_none(), "it has ended");
    }

    #[test]
    fn what_is_no_answer_ends_it() {
        let long = format!("{}\n", "x".repeat(LONGEST_ANSWER + 1));
        for answer in [
            "nonsense\n",
            "{\"errno\":22,\"args\":{\"resp\":\"?\"}}\n",
            &long,
        ] {
            let root = ::tests::tree(&[]);
            let scheduler = answering(root.path(), answer);
            let mut conversation = Conversation::open(root.path()).unwrap();
            assert_eq!(
                wait_for_answer(&mut conversation),
                Err(Over),
                "{:.30}",
                answer
            );
            drop(conversation);
            scheduler.join().unwrap();
        }
    }

    #[test]
    fn nobody_waits_for_a_scheduler_that_does_not_answer() {
        let root = ::tests::tree(&[]);
        let scheduler = answering(root.path(), "");
        let mut conversation = Conversation::open(root.path()).unwrap();
        for _ in 0..100 {
            assert_eq!(conversation.take_figures(), Ok(BTreeMap::new()));
        }
        drop(conversation);
        assert_eq!(scheduler.join().unwrap(), 1);
    }
}
