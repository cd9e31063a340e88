//! The processes beside the load: the server that answers and the antagonists that
//! disturb. Fresh ones for each trial, ended with it.
//!
//! Invariants: the load starts only when the server is ready; a server that
//! ends makes the trial fail; an antagonist that ends, or gets no CPU inside the
//! window, makes it void.

pub mod cgroup;
mod check;
mod container;
pub mod parts;
pub(crate) mod placement;
mod server;
pub mod stack;

pub use check::{check, kept_to, least_threads};

use crate::arm::changes::InForce;
use crate::collectors::events::RoleEvents;
use crate::fence::Fence;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::memory;
use crate::network::OwnNetwork;
use crate::process::{Event, Origin, Process};
use crate::spawn::SpawnError;
use crate::stop::Stop;
use cgroup::{Cgroup, CgroupError, Groups, Quota};
use collect::tasks::{self, Pid};
use load::roles::{ANTAGONISTS, SERVERS};
use load::{Launch, Output};
use model::{Calibration, Class, Measurement, Placement, Role, format_duration_ns};
use server::NotReady;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the one that `[workload.server]` is.
const SERVER: &str = "server";
/// Between two looks at a server that is not ready.
const PROBE_EVERY: Duration = Duration::from_millis(5);
/// Longest time between two looks at what is slow to answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Parts of a trial that starting a role needs.
pub struct Ground<'a> {
    pub root: &'a Path,
    pub executable: &'a Path,
    pub in_force: &'a InForce<'a>,
    /// Keeps the processes of the roles together.
    pub fence: &'a Fence,
    pub journal: &'a mut Journal,
    pub interrupt: &'a Interrupt,
    /// Counters of processes, opened before they run.
    pub events: &'a mut RoleEvents,
}

/// A process of a role, with all that it starts.
#[derive(Debug)]
struct Running {
    role: Role,
    /// For messages and for the name of its log.
    name: String,
    process: Process,
    /// First process of its container, if it is in one.
    inside: Option<container::Inside>,
    group: Option<Cgroup>,
    /// CPU time of its tree when the window opened.
    cpu_at_begin_ns: u64,
    /// Way in which it is asked to end; `None`: it is killed.
    farewell: Option<stack::Farewell>,
}

/// Wait for a process that was started to be ready.
struct Wait<'a> {
    what: &'a str,
    /// Name of its log.
    log: &'a str,
    limit_ns: u64,
    /// Time between two looks.
    every: Duration,
}

/// All processes beside the load.
#[derive(Debug, Default)]
pub struct Roles {
    running: Vec<Running>,
    groups: Groups,
    /// The group of the load, where the arm asks for one.
    load_group: Option<Cgroup>,
    /// Groups of parts of the load, with what each was given.
    parts: Vec<parts::Made>,
    /// Environment that the load was started with ([`Process::environment`]).
    pub load_environments: BTreeMap<Pid, Vec<u8>>,
    layout: stack::Layout,
    /// Containers that are to be removed.
    containers: Vec<container::Made>,
    /// Held while processes of the trial are started, by the server's wish.
    network: Option<OwnNetwork>,
    /// Address that requests go to.
    pub server: Option<SocketAddr>,
}

impl Roles {
    /// Starts the server, waits until it is ready, then starts the antagonists. What
    /// has been started stays in `self` also when something fails.
    pub fn start(
        &mut self,
        workload: &model::Workload,
        calibration: &Calibration,
        mut ground: Ground,
    ) -> Result<(), Stop> {
        if let Some(server) = &workload.server {
            let program = SERVERS.open(&server.program).map_err(Stop::Failed)?;
            if program.has_own_network() {
                // The load and the antagonists are started in it, too.
                self.network = Some(OwnNetwork::enter().map_err(Stop::Failed)?);
            }
            let address = server::address(&*program, self.layout.ip()).map_err(Stop::Failed)?;
            let launch = program.launch(address, workload.client.as_ref());
            let name = SERVER.to_owned();
            self.run(Role::Server, name, &launch, &server.placement, &mut ground)?;
            let wait = Wait {
                what: "the server",
                log: "server.log",
                limit_ns: server.ready_limit_ns,
                every: PROBE_EVERY,
            };
            let ready = program.readiness();
            self.wait_until(&wait, ground.interrupt, |_, left| {
                Ok(server::probe(&ready, server::find_answering(address), left))
            })?;
            self.server = Some(address);
        }
        for antagonist in &workload.antagonists {
            let program = ANTAGONISTS.open(&antagonist.program);
            let program = program.map_err(Stop::Failed)?;
            let launch = program.launch(&antagonist.placement, calibration);
            let name = format!("antagonist-{}", antagonist.name);
            self.run(
                Role::Antagonist,
                name,
                &launch,
                &antagonist.placement,
                &mut ground,
            )?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        role: Role,
        name: String,
        launch: &Launch,
        placement: &Placement,
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let origin = Origin {
            executable: ground.executable,
            fence: ground.fence,
        };
        // Not by its name, which users choose.
        let group_name = format!("{}-{}", ground.fence.name(), self.running.len());
        let settings =
            placement::group_settings(placement).overlaid(ground.in_force.group_settings(&role));
        let refused = |e: CgroupError| Stop::Void(format!("the {name}: {e}"));
        let group = self
            .groups
            .make(ground.root, &group_name, settings, ground.journal)
            .map_err(refused)?;
        if let Some(group) = group
            .as_ref()
            .filter(|_| is_realtime(&role, placement, ground.in_force))
        {
            group.allow_realtime().map_err(refused)?;
        }
        let launch = ground.in_force.launch(&role, launch);
        let launch = placement::with_memory(&launch, placement, ground.executable);
        let (root, events, in_force) = (ground.root, &mut *ground.events, ground.in_force);
        let started = Process::start(&launch, origin, ground.journal, |pid| {
            events.open(root, &role, pid)?;
            placement::apply(pid, placement, group.as_ref())?;
            in_force.before_exec(root, &role, pid)
        });
        let process = started.map_err(|error| match error {
            SpawnError::Refused(why) => Stop::Void(format!("the {name}: {why}")),
            error => Stop::Failed(format!("the {name}: {error}")),
        })?;
        self.running.push(Running {
            role,
            name,
            process,
            inside: None,
            group,
            cpu_at_begin_ns: 0,
            farewell: None,
        });
        Ok(())
    }

    /// Looks until what was started last is ready; each look has the time that is left. The inner
    /// error of a look says what is not there yet. What gives wrong answers until the end, from its
    /// first answer on, would give them to another attempt, too.
    fn wait_until(
        &mut self,
        wait: &Wait,
        interrupt: &Interrupt,
        mut look: impl FnMut(&mut Self, Duration) -> Result<Result<(), NotReady>, Stop>,
    ) -> Result<(), Stop> {
        let deadline = Instant::now() + Duration::from_nanos(wait.limit_ns);
        let mut answers_wrong = false;
        let mut wavered = false;
        loop {
            let began = Instant::now();
            let looked = look(self, deadline.saturating_duration_since(began))?;
            let took = began.elapsed();
            // Looked at after the probe: somebody else may have answered it.
            self.check_alive(interrupt)?;
            let (why, is_wrong) = match looked {
                Ok(()) => return Ok(()),
                Err(NotReady::Yet(why)) => (why, false),
                Err(NotReady::WrongAnswer(why)) => (why, true),
            };
            wavered |= answers_wrong && !is_wrong;
            answers_wrong = is_wrong;
            if Instant::now() >= deadline {
                let stop = Stop::Failed(format!(
                    "{} was not ready after {}: {why}; look at its {}, or change what is \
                     waited for with ready and ready-limit",
                    wait.what,
                    format_duration_ns(wait.limit_ns),
                    wait.log
                ));
                return Err(match answers_wrong && !wavered {
                    true => stop.for_good(),
                    false => stop,
                });
            }
            // Questions are not to keep it from starting: they have a tenth of the time.
            let pause = (took * 9).clamp(wait.every, LONGEST_PAUSE);
            self.pause(interrupt, pause)?;
        }
    }

    fn pause(&mut self, interrupt: &Interrupt, pause: Duration) -> Result<(), Stop> {
        let Some(running) = self.running.last_mut() else {
            return Ok(());
        };
        match running.process.wait(interrupt, Instant::now() + pause) {
            Event::Interrupted => Err(Stop::interrupted()),
            Event::Exited => Err(running.ended()),
            Event::Line(_) | Event::Timeout => Ok(()),
        }
    }

    /// A role that has ended ends the trial.
    pub fn check_alive(&mut self, interrupt: &Interrupt) -> Result<(), Stop> {
        for running in &mut self.running {
            let event = running.process.wait(interrupt, Instant::now());
            if event == Event::Exited {
                return Err(running.ended());
            }
            if running.process.prints_too_much() {
                return Err(Stop::Failed(format!(
                    "the {} printed too much",
                    running.name
                )));
            }
        }
        Ok(())
    }

    /// The processes that lead a role.
    pub fn leaders(&self) -> impl Iterator<Item = (Role, Pid)> {
        self.running.iter().map(|r| (r.role.clone(), r.leader()))
    }

    /// The weights of the cgroups of a role, as the kernel has them; `None` of one whose process is not
    /// in its group. What has no group has no weight.
    pub fn weights_of(&self, role: &Role) -> Vec<Option<u32>> {
        let of_role = self.running.iter().filter(|r| r.role == *role);
        let weight = |r: &Running| Some(r.group.as_ref()?.weight_of(r.leader()));
        of_role.filter_map(weight).collect()
    }

    /// Peaks of memory of the roles beside the load, and of the groups of all.
    pub fn peaks_of_memory(&self, root: &Path) -> Vec<Measurement> {
        let beside = self.running.iter().map(|running| memory::Peaked {
            role: &running.role,
            leader: Some(running.leader()),
            group: running.group.as_ref().map(Cgroup::path),
        });
        let load = memory::Peaked {
            role: &Role::Load,
            leader: None,
            group: self.load_group.as_ref().map(Cgroup::path),
        };
        memory::peaks(root, &beside.chain([load]).collect::<Vec<_>>())
    }

    /// Makes the group of a load that the arm limits. It is removed with those of the others.
    pub fn limit_load(
        &mut self,
        root: &Path,
        name: &str,
        in_force: &InForce,
        journal: &mut Journal,
    ) -> Result<(), CgroupError> {
        let settings = in_force.group_settings(&Role::Load);
        self.load_group = self.groups.make(root, name, settings, journal)?;
        Ok(())
    }

    /// Gives the groups that are there what another arm asks of them, where arms take turns.
    pub fn regroup(&self, in_force: &InForce) -> Result<(), CgroupError> {
        let groups = self.running.iter().map(|r| (&r.role, r.group.as_ref()));
        for (role, group) in groups.chain([(&Role::Load, self.load_group.as_ref())]) {
            if let Some(group) = group {
                group.set(in_force.group_settings(role))?;
            }
        }
        Ok(())
    }

    /// The group that the load is to run in.
    pub fn load_group(&self) -> Option<&Cgroup> {
        self.load_group.as_ref()
    }

    /// The quota of the group of a process that leads a role; any other is the load's.
    pub fn quota_of(&self, root: &Path, leader: Pid) -> Option<Quota> {
        let running = self.running.iter().find(|r| r.leader() == leader);
        let group = match running {
            Some(running) => running.group.as_ref(),
            None => self.load_group.as_ref(),
        };
        group?.quota_of(root, leader)
    }

    /// Environment that a process which leads a role was started with; `None` where it was not read.
    pub fn environment_of(&self, role: &Role, leader: Pid) -> Option<&[u8]> {
        let mut running = self.running.iter();
        let environment = match role {
            Role::Load => self.load_environments.get(&leader)?,
            _ => running.find(|r| r.leader() == leader)?.environment(),
        };
        (!environment.is_empty()).then_some(environment)
    }

    /// The window opens.
    pub fn begin_window(&mut self, root: &Path) {
        for running in &mut self.running {
            running.cpu_at_begin_ns = running.cpu_ns(root);
        }
    }

    /// The window has closed: everybody is still there, and every antagonist ran.
    pub fn prove(&mut self, root: &Path, interrupt: &Interrupt) -> Result<(), Stop> {
        self.check_alive(interrupt)?;
        for running in self.running.iter().filter(|r| r.role == Role::Antagonist) {
            if running.cpu_ns(root) <= running.cpu_at_begin_ns {
                return Err(Stop::Void(format!(
                    "the {} got no CPU inside the window",
                    running.name
                )));
            }
        }
        Ok(())
    }

    /// Ends all of them; gives their names with what they printed, and what could
    /// not be ended.
    pub fn end_all(&mut self, fence: &Fence) -> (Vec<(String, Output)>, Vec<String>) {
        let (mut outputs, mut errors) = (Vec::new(), Vec::new());
        self.server = None;
        self.network = None;
        self.load_group = None;
        self.parts.clear();
        self.say_farewell();
        errors.extend(self.remove_containers());
        for running in self.running.drain(..).rev() {
            errors.extend(running.process.kill_rest(fence).err());
            match running.process.reap() {
                Ok((output, _)) => outputs.push((running.name, output)),
                Err(e) => errors.push(format!("wait for the {}: {e}", running.name)),
            }
        }
        errors.extend(self.groups.remove_all());
        (outputs, errors)
    }
}

/// Will the role be `fifo` or `rr`, by its own placement or by the arm?
fn is_realtime(role: &Role, placement: &Placement, in_force: &InForce) -> bool {
    let own = placement.policy.as_ref();
    in_force.is_realtime(role)
        || own.is_some_and(|policy| matches!(policy.class, Class::Fifo | Class::Rr))
}

impl Running {
    /// The process that leads all others of it: in a container its first one.
    fn leader(&self) -> Pid {
        let inside = self.inside.as_ref();
        inside.map_or(self.process.pid, |inside| inside.leader)
    }

    fn environment(&self) -> &Vec<u8> {
        match &self.inside {
            Some(inside) => &inside.environment,
            None => &self.process.environment,
        }
    }

    /// Its end comes too early, whenever it comes.
    fn ended(&mut self) -> Stop {
        let errors = self.process.last_errors();
        let colon = if errors.is_empty() { "" } else { ": " };
        let why = format!(
            "the {} ended{} before the window closed{colon}{errors}",
            self.name,
            self.process.end_in_words()
        );
        let stop = match self.role {
            Role::Antagonist => Stop::Void(why),
            _ => Stop::Failed(why),
        };
        stop.by_exit(self.process.exit_code())
    }

    /// CPU time of its living tree, and of children that it has waited for.
    fn cpu_ns(&self, root: &Path) -> u64 {
        let of = |pid: Pid| tasks::read_stat(root, pid).map_or(0, |stat| stat.cpu_ns());
        tasks::process_tree(root, self.leader())
            .into_iter()
            .map(of)
            .sum()
    }
}
