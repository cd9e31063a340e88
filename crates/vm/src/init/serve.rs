//! Work of init while the guest lives: one thread reads the control port, the main thread reaps
//! children and hands their status to whom it belongs.

use super::super::frame::{AGENT_PORT, Exec, Exit, Frame, FrameKind, Setup};
use super::children::{Children, Host, base_command, lock};
use super::command::{self, Running};
use super::{Failure, at, log, port, power_off};
use rustix::process::WaitStatus;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

pub fn run(
    control: &File,
    setup: &Setup,
    agent: Option<(Vec<String>, File)>,
) -> Result<(), Failure> {
    let host: Host = Arc::new(Mutex::new(
        control.try_clone().map_err(at("share the port"))?,
    ));
    let children = Arc::new(Children::default());
    if let Some((args, port)) = agent {
        start_agent(&children, setup, &args, port, host.clone())?;
    }
    let reader = control.try_clone().map_err(at("share the port"))?;
    let server = Server {
        setup: setup.clone(),
        host,
        children: children.clone(),
        running: BTreeMap::new(),
    };
    std::thread::spawn(move || server.serve(reader));
    children.reap()
}

fn start_agent(
    children: &Children,
    setup: &Setup,
    args: &[String],
    port: File,
    host: Host,
) -> Result<(), Failure> {
    let mut command = base_command(super::root::PROGRAM, setup);
    command
        .args(args)
        .stdin(Stdio::from(
            port.try_clone().map_err(at("share the agent's port"))?,
        ))
        .stdout(Stdio::from(port))
        .stderr(console());
    let (tell, ended) = channel();
    children
        .start(&mut command, tell)
        .map_err(at("start the agent"))?;
    std::thread::spawn(move || {
        let how = ended.recv().map_or_else(|_| "unknown".to_owned(), describe);
        let frame = Frame::new(FrameKind::AgentEnded, 0, how.as_bytes());
        let _ = frame.write(&mut *lock(&host));
        power_off()
    });
    Ok(())
}

pub fn console() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/console")
        .map_or_else(|_| Stdio::null(), Stdio::from)
}

pub fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

struct Server {
    setup: Setup,
    host: Host,
    children: Arc<Children>,
    running: BTreeMap<u32, Running>,
}

impl Server {
    fn serve(mut self, mut from: File) {
        loop {
            match Frame::read(&mut from) {
                Ok(Some(frame)) => self.handle(frame),
                Ok(None) => break,
                Err(e) => {
                    log(&format!("control port: {e}"));
                    break;
                }
            }
        }
        power_off()
    }

    fn handle(&mut self, frame: Frame) {
        match frame.kind {
            FrameKind::PowerOff => power_off(),
            FrameKind::Exec => self.exec(&frame),
            FrameKind::Agent => self.start_agent(&frame),
            FrameKind::InputEnd => {
                if let Some(running) = self.running.get_mut(&frame.channel) {
                    running.close_input();
                }
            }
            FrameKind::Hangup => {
                if let Some(running) = self.running.remove(&frame.channel) {
                    running.hang_up();
                }
            }
            _ => {
                if let Some(running) = self.running.get(&frame.channel) {
                    running.pass_frame(frame);
                }
            }
        }
        self.running.retain(|_, running| !running.has_ended());
    }

    fn start_agent(&self, frame: &Frame) {
        let args = frame.parse::<Vec<String>>();
        let started = args
            .map_err(at("read the agent's arguments"))
            .and_then(|args| {
                let port = port::open(AGENT_PORT)?;
                start_agent(&self.children, &self.setup, &args, port, self.host.clone())
            });
        if let Err(Failure(why)) = started {
            log(&why);
            power_off();
        }
    }

    fn exec(&mut self, frame: &Frame) {
        let started = frame.parse::<Exec>().and_then(|exec| {
            command::start(
                &exec,
                frame.channel,
                &self.setup,
                &self.host,
                &self.children,
            )
        });
        match started {
            Ok(running) => drop(self.running.insert(frame.channel, running)),
            Err(e) => refuse(&self.host, frame.channel, &e),
        }
    }
}

/// 127 for what is not there, 126 for what does not start.
fn refuse(host: &Host, channel: u32, error: &std::io::Error) {
    let exit = Exit {
        code: if error.kind() == std::io::ErrorKind::NotFound {
            127
        } else {
            126
        },
        error: Some(error.to_string()),
    };
    if let Ok(frame) = Frame::json(FrameKind::Exit, channel, &exit) {
        let _ = frame.write(&mut *lock(host));
    }
}
