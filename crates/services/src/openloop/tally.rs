//! Counts of one thread while it runs.

use super::kinds::{KindTally, Why};
use super::protocol::Wrong;
use load::recording::{Recorder, Window};
use load::stalls;
use load::worst::At;
use model::Turns;

/// Failures of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No answer in time.
    Timeout,
    /// A connection that the server closed or refused.
    HangUp,
    /// An answer that ended before its end.
    HalfAnswer,
    /// Bytes that are no answer.
    Garbage,
    /// A whole answer that says no: an HTTP status of 400 or above, `SERVER_ERROR`.
    Refused,
    /// A whole answer with another content than the one that is right.
    Wrong,
    /// No answer, or not even sent, when the load ended.
    Unanswered,
}

impl Failure {
    /// All of them, in the order of the counts.
    pub const ALL: [Failure; 7] = [
        Failure::Timeout,
        Failure::HangUp,
        Failure::HalfAnswer,
        Failure::Garbage,
        Failure::Refused,
        Failure::Wrong,
        Failure::Unanswered,
    ];

    /// In warnings, after a number.
    pub fn words(self) -> &'static str {
        match self {
            Failure::Timeout => "timed out",
            Failure::HangUp => "met a connection that the server closed or refused",
            Failure::HalfAnswer => "got half an answer",
            Failure::Garbage => "got garbage",
            Failure::Refused => "got an error from the server",
            Failure::Wrong => "got another answer than the right one",
            Failure::Unanswered => "were not answered when the load ended",
        }
    }
}

/// When a request should have been sent, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Time at which it should have been sent.
    pub intended_ns: u64,
    /// Time at which it was.
    pub sent_ns: u64,
    /// Number of the kind of the request.
    pub kind: usize,
}

/// Counts of one thread.
#[derive(Debug)]
pub struct Tally {
    window: Window,
    /// From the intended start; every request that was intended inside the window.
    pub request: Recorder,
    /// From the actual start.
    pub service: Recorder,
    /// Lateness of the generator itself.
    pub lateness: Recorder,
    /// Time to connect, of connections that were begun inside the window.
    pub connect: Recorder,
    /// Number of those.
    pub connects: u64,
    /// Intended inside the window.
    pub offered: u64,
    /// Answered well inside the window, whenever they were intended.
    pub done: u64,
    /// Failures among the offered requests, by [`Failure`].
    pub failures: [u64; Failure::ALL.len()],
    /// Sent for the second time, because the first met a closed connection.
    pub resent: u64,
    /// Values that were found.
    pub hits: u64,
    /// Values that were not there.
    pub misses: u64,
    /// CPU time of the thread inside the window.
    pub cpu_ns: u64,
    /// By number; empty where all requests are of one kind.
    pub kinds: Vec<KindTally>,
}

impl Tally {
    /// Everything is allocated here, before the load begins.
    pub fn new(duration_ns: u64, longest_ns: u64) -> Result<Self, String> {
        let recorder = Recorder::new(duration_ns, longest_ns)?;
        Ok(Tally {
            window: Window {
                begin_ns: u64::MAX,
                end_ns: u64::MAX,
            },
            request: recorder
                .clone()
                .with_stalls_from(stalls::REQUEST_NS)
                .watched_as("request", At::Due),
            service: recorder.clone(),
            lateness: recorder.clone(),
            connect: recorder,
            connects: 0,
            offered: 0,
            done: 0,
            failures: [0; Failure::ALL.len()],
            resent: 0,
            hits: 0,
            misses: 0,
            cpu_ns: 0,
            kinds: Vec::new(),
        })
    }

    /// The same by turn, where arms take turns. The lateness stays one for all.
    pub fn in_turns(mut self, turns: Option<&Turns>) -> Self {
        self.request = self.request.in_turns_by_start(turns);
        self.service = self.service.in_turns_by_start(turns);
        self.connect = self.connect.in_turns_by_start(turns);
        self
    }

    /// The same with counts for kinds of these names.
    pub fn with_kinds(mut self, names: Vec<String>, longest_ns: u64) -> Result<Self, String> {
        let kinds = names
            .into_iter()
            .map(|name| KindTally::new(name, longest_ns));
        self.kinds = kinds.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The counts of a request's kind, if it was intended inside the window.
    fn kind(&mut self, times: Times) -> Option<&mut KindTally> {
        let inside = self.window.contains(times.intended_ns);
        self.kinds.get_mut(times.kind).filter(|_| inside)
    }

    /// Says when the window is.
    pub fn open(&mut self, window: Window) {
        self.window = window;
        self.request.open(window);
        self.service.open(window);
        self.lateness.open(window);
        self.connect.open(window);
    }

    /// A request was taken from the schedule and sent `late_ns` after it could have been.
    pub fn count_sent(&mut self, times: Times, late_ns: u64) {
        self.offer(times);
        self.lateness.record(times.intended_ns, late_ns);
    }

    /// A request was sent, and nobody knows how late that was.
    pub fn offer(&mut self, times: Times) {
        self.offered += u64::from(self.window.contains(times.intended_ns));
        self.kind(times).map(KindTally::offer);
    }

    /// A request was sent once more.
    pub fn count_resent(&mut self, times: Times) {
        self.resent += u64::from(self.window.contains(times.intended_ns));
    }

    /// A connection was made.
    pub fn connected(&mut self, since_ns: u64, at_ns: u64) {
        self.connects += u64::from(self.window.contains(since_ns));
        self.connect
            .record(since_ns, at_ns.saturating_sub(since_ns));
    }

    /// The answer was whole at `at_ns`.
    pub fn count_answered(&mut self, times: Times, at_ns: u64, hit: Option<bool>) {
        self.record(times, at_ns);
        if let Some(kind) = self.kind(times) {
            kind.succeed(at_ns.saturating_sub(times.intended_ns));
        }
        self.done += u64::from(self.window.contains(at_ns));
        if self.window.contains(times.intended_ns) {
            self.hits += u64::from(hit == Some(true));
            self.misses += u64::from(hit == Some(false));
        }
    }

    /// The answer was whole at `at_ns`, and is not the right one; `text` is its beginning.
    pub fn count_wrong(&mut self, times: Times, at_ns: u64, wrong: Wrong, text: &[u8]) {
        let failure = match wrong {
            Wrong::Refused | Wrong::Status(400..) => Failure::Refused,
            Wrong::Status(_) | Wrong::Content => Failure::Wrong,
        };
        self.fail(times, at_ns, failure, Why::Wrong(wrong), text);
    }

    /// It counts with the time that it has taken so far.
    pub fn count_failed(&mut self, times: Times, at_ns: u64, failure: Failure) {
        self.fail(times, at_ns, failure, Why::No(failure), &[]);
    }

    fn fail(&mut self, times: Times, at_ns: u64, failure: Failure, why: Why, text: &[u8]) {
        self.record(times, at_ns);
        if let Some(kind) = self.kind(times) {
            kind.fail(at_ns.saturating_sub(times.intended_ns), why, text);
        }
        self.failures[failure as usize] += u64::from(self.window.contains(times.intended_ns));
    }

    /// A request that was never sent.
    pub fn count_unsent(&mut self, kind: usize, intended_ns: u64, at_ns: u64) {
        if !self.window.contains(intended_ns) {
            return;
        }
        let waited_ns = at_ns.saturating_sub(intended_ns);
        self.offered += 1;
        self.failures[Failure::Unanswered as usize] += 1;
        self.request.record(intended_ns, waited_ns);
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.offer();
            kind.fail(waited_ns, Why::No(Failure::Unanswered), &[]);
        }
    }

    fn record(&mut self, times: Times, at_ns: u64) {
        let since = |start_ns| at_ns.saturating_sub(start_ns);
        self.request
            .record(times.intended_ns, since(times.intended_ns));
        self.service.record(times.intended_ns, since(times.sent_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::recording::Recording;

    const WINDOW: Window = Window {
        begin_ns: 1_000,
        end_ns: 2_000,
    };

    fn tally() -> Tally {
        let mut tally = Tally::new(1_000, 1_000_000).unwrap();
        tally.open(WINDOW);
        tally
    }

    fn at(intended_ns: u64) -> Times {
        Times {
            intended_ns,
            sent_ns: intended_ns + 10,
            kind: 0,
        }
    }

    #[test]
    fn a_request_belongs_to_the_window_in_which_it_was_intended() {
        let mut tally = tally();
        for intended in [999, 1_000, 1_999, 2_000] {
            tally.count_sent(at(intended), 3);
            tally.count_answered(at(intended), 5_000, None);
        }
        assert_eq!((tally.offered, tally.done), (2, 0));
        let recording = Recording::merge([tally.request]).unwrap();
        assert_eq!((recording.count(), recording.max_ns()), (2, Some(4_001)));
    }

    #[test]
    fn failed_and_unsent_requests_stay_in_the_distribution() {
        let mut tally = tally();
        tally.count_sent(at(1_000), 0);
        tally.count_failed(at(1_000), 1_500, Failure::Timeout);
        tally.count_unsent(0, 1_100, 1_900);
        assert_eq!(tally.failures.iter().sum::<u64>(), 2);
        let recording = Recording::merge([tally.request]).unwrap();
        assert_eq!((recording.count(), recording.max_ns()), (2, Some(800)));
    }

    #[test]
    fn an_answer_that_says_no_is_a_failure_with_a_latency() {
        let mut tally = tally();
        tally.count_sent(at(1_000), 0);
        tally.count_wrong(at(1_000), 1_200, Wrong::Refused, b"");
        assert_eq!(tally.failures[Failure::Refused as usize], 1);
        assert_eq!(tally.done, 0);
    }

    #[test]
    fn every_failure_has_a_place_of_its_own() {
        for (place, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, place);
        }
    }
}
