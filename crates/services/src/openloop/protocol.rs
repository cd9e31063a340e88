//! A protocol as the engine sees it: bytes to send, and the point where the answer is whole.

/// Makes the requests of one thread.
pub trait Protocol: Send + 'static {
    /// Small and complete: the same request always has the same bytes.
    type Request: Copy + Send;
    /// Parser of the answers on one connection.
    type Answer: Answer<Self::Request>;

    /// The next request.
    fn next_request(&mut self) -> Self::Request;
    /// Bytes of the request, as they are sent.
    fn bytes(&mut self, request: Self::Request) -> &[u8];
    /// A parser for one connection, with all the memory that it usually needs.
    fn answer(&self) -> Self::Answer;
    /// Does the server do the same when it gets this request twice?
    fn is_idempotent(&self, request: Self::Request) -> bool;

    /// Names of the kinds of request that have figures of their own, by number. Two may have
    /// the same name, and are counted together.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Number of the kind of a request.
    fn kind(&self, _request: Self::Request) -> usize {
        0
    }

    /// Judges a whole answer, of which `done` says what its parser found.
    fn judge(
        &mut self,
        _request: Self::Request,
        _answer: &Self::Answer,
        done: Done,
    ) -> Result<(), Wrong> {
        match done.ok {
            true => Ok(()),
            false => Err(Wrong::Refused),
        }
    }
}

/// Finds the end of an answer in whatever pieces it comes.
pub trait Answer<Request>: Send {
    /// A request was sent: its answer begins with the next byte.
    fn expect(&mut self, request: Request);
    /// Takes the next bytes of the connection, which end with the answer or before it does.
    fn take_bytes(&mut self, bytes: &[u8]) -> Result<Taken, Fault>;
    /// The server has closed the connection. An answer may end that way.
    fn end_of_stream(&mut self) -> Result<Done, Fault>;
    /// The beginning of what the answer says, for people; empty where it is not kept.
    fn answer_text(&self) -> &[u8] {
        &[]
    }
}

/// The state of an answer after the bytes that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The answer is not whole yet.
    More,
    /// The answer is whole.
    Done(Done),
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// `false`: the server says that it could not do what was asked.
    pub ok: bool,
    /// Was the key there? `None` where that was not the question.
    pub hit: Option<bool>,
    /// The connection takes another request.
    pub keep: bool,
}

/// The fault of a whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The server says that it could not do what was asked.
    Refused,
    /// It has another HTTP status than the right answer.
    Status(u16),
    /// Its content is not that of the right answer.
    Content,
}

/// Reason for which there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection ended before the first byte of the answer.
    HangUp,
    /// The connection ended inside the answer.
    HalfAnswer,
    /// Bytes that are no answer, or more than one.
    Garbage,
}
