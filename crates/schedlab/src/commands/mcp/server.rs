//! The protocol itself, with the official SDK: lines of JSON-RPC on the standard streams.

use super::Referee;
use super::front::{self, Incoming};
use super::tools::{self, TOOLS};
use crate::exit::CliError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Room of the pipes between the streams and the SDK.
const PIPE_BYTES: usize = 64 << 10;
/// Longest wait of `status`.
const LONGEST_WAIT: u64 = 60;
const LOOK: Duration = Duration::from_millis(200);
const BETWEEN_NOTICES: Duration = Duration::from_secs(1);

const INSTRUCTIONS: &str = "A referee for CPU schedulers. Ask `what_can_i_name` for your limits, \
    `compare` a proposal with its baseline, then `status` until it is answered. Every question pays \
    from an error of 5 % before it is measured, and an accepted one gives it back: think before you ask, and \
    stop when nothing is accepted any more. Only what is ACCEPTED is better; all else is not.";

/// The handler of the SDK.
#[derive(Clone)]
struct Handler(Arc<Referee>);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("schedlab", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let tools = TOOLS.iter();
        let tools = tools.map(|tool| Tool::new(tool.name, tool.text, Arc::new(tool.schema())));
        std::future::ready(Ok(ListToolsResult::with_all_items(tools.collect())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if request.name == "status" {
            let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
            let wait = number("wait_s").unwrap_or(0).min(LONGEST_WAIT);
            if let Some(job) = number("job") {
                self.wait_for_job(job, Duration::from_secs(wait), &context)
                    .await;
            }
        }
        let referee = Arc::clone(&self.0);
        let name = request.name.into_owned();
        let work = move || tools::call_tool(&referee, &name, arguments);
        let answer = tokio::task::spawn_blocking(work).await;
        let answer = answer.map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
        Ok(match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
        .into())
    }
}

impl Handler {
    /// Waits for the end of a job, at most so long, and says each second how far it is where the client
    /// wants to know. A client that cancels its request ends the wait and not the job.
    async fn wait_for_job(
        &self,
        number: u64,
        wait: Duration,
        context: &RequestContext<RoleServer>,
    ) {
        let Some(job) = self.0.jobs.find_job(number) else {
            return;
        };
        let token = context.meta.get_progress_token();
        let begun = Instant::now();
        let mut noticed: Option<Instant> = None;
        while job.is_running() && begun.elapsed() < wait {
            let is_due = noticed.is_none_or(|at| at.elapsed() >= BETWEEN_NOTICES);
            if let (Some(token), true) = (&token, is_due) {
                noticed = Some(Instant::now());
                let progress = job.elapsed().as_secs_f64();
                let notice = ProgressNotificationParam::new(token.clone(), progress)
                    .with_total(job.budget.as_secs_f64())
                    .with_message(format!("job {number} is measuring"));
                // Who does not hear it is gone, which the streams tell.
                let _ = context.peer.notify_progress(notice).await;
            }
            if tokio::time::timeout(LOOK, context.ct.cancelled())
                .await
                .is_ok()
            {
                return;
            }
        }
    }
}

/// Serves until the client closes its end, or a signal asks for an end.
pub fn serve(referee: &Arc<Referee>, interrupted: &AtomicBool) -> Result<(), CliError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .map_err(CliError::internal)?;
    let served = runtime.spawn(serve_streams(
        Handler(Arc::clone(referee)),
        handle(&runtime),
    ));
    while !served.is_finished() && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    let ended = match served.is_finished() {
        true => runtime.block_on(served).map_err(CliError::internal)?,
        false => Ok(()),
    };
    // The thread that reads the standard input cannot be woken.
    runtime.shutdown_background();
    ended.map_err(CliError::internal)
}

fn handle(runtime: &Runtime) -> tokio::runtime::Handle {
    runtime.handle().clone()
}

async fn serve_streams(handler: Handler, runtime: tokio::runtime::Handle) -> Result<(), String> {
    let (to_sdk, input) = tokio::io::duplex(PIPE_BYTES);
    let (output, from_sdk) = tokio::io::duplex(PIPE_BYTES);
    // Lines of the SDK and refusals of ours, each whole.
    let (lines, written) = mpsc::channel::<Vec<u8>>(64);
    let (incoming, read) = mpsc::channel::<Incoming>(64);
    std::thread::spawn(move || front::read_input(&incoming));
    let writer = std::thread::spawn(move || front::write_output(written));
    runtime.spawn(pass_on_input(read, to_sdk, lines.clone()));
    runtime.spawn(pass_on_output(from_sdk, lines));
    let served = handler.serve((input, output)).await;
    let running = served.map_err(|e| e.to_string())?;
    running.waiting().await.map_err(|e| e.to_string())?;
    // All that was answered is written when the last sender is gone.
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(())
}

/// Lines that are short enough to the SDK; the others are answered here.
async fn pass_on_input(
    mut read: mpsc::Receiver<Incoming>,
    mut to_sdk: DuplexStream,
    answers: mpsc::Sender<Vec<u8>>,
) {
    while let Some(incoming) = read.recv().await {
        let passed = match incoming {
            Incoming::Line(line) => to_sdk.write_all(&line).await,
            Incoming::TooLong { bytes, id } => {
                let answer = front::refuse_long_line(bytes, &id);
                answers.send(answer).await.map_err(io::Error::other)
            }
        };
        if passed.is_err() {
            return;
        }
    }
}

async fn pass_on_output(mut from_sdk: DuplexStream, lines: mpsc::Sender<Vec<u8>>) {
    let mut whole = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    while let Ok(size @ 1..) = from_sdk.read(&mut buffer).await {
        whole.extend_from_slice(&buffer[..size]);
        while let Some(end) = whole.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = whole.drain(..=end).collect();
            if lines.send(line).await.is_err() {
                return;
            }
        }
    }
}
