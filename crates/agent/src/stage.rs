//! The stage on which an arm is measured: the processes beside the load, the collectors, and the fences
//! that keep all of them together.

use crate::arm::changes::InForce;
use crate::collectors::def::Start;
use crate::collectors::events::RoleEvents;
use crate::collectors::{self, Collectors};
use crate::context::Context;
use crate::error::AgentError;
use crate::fence::Fence;
use crate::kept_files::Kept;
use crate::process::Origin;
use crate::processes::{self, KILL_LIMIT};
use crate::roles::{Ground, Roles, stack};
use crate::stop::Stop;
use crate::{files, settle};
use collect::tasks::Pid;
use load::{Driver, GroupAt};
use model::stack::LOAD;
use model::{KEEP_LIMIT_BYTES, Part, Role, Service, TrialSpec, Warning};
use std::time::Duration;

/// A stage for one trial. An earlier trial may have set up the processes on it.
pub struct Stage {
    /// Length of the journal before it was set up.
    began: u64,
    /// Around the load, and what prepares for it.
    pub fence: Fence,
    /// Around all others, which the end of the load does not end.
    pub beside: Fence,
    /// The processes beside the load.
    pub roles: Roles,
    /// Counters of the processes of all roles.
    pub events: RoleEvents,
    pub collectors: Collectors,
    /// Processes of the loads beside that of the trial.
    pub co_runners: Vec<Pid>,
    /// Processes that could not be ended, and so run still.
    pub unended: Vec<String>,
    /// The kernel that the trial began on.
    pub kernel_release: String,
    is_set_up: bool,
}

/// The processes that a trial left running, for the next one to be measured on.
#[derive(Debug)]
pub struct LeftStage {
    began: u64,
    beside: Fence,
    roles: Roles,
    events: RoleEvents,
}

impl Stage {
    /// The stage that an earlier trial left, or an empty one.
    pub fn new(
        context: &mut Context,
        spec: &TrialSpec,
        left: Option<LeftStage>,
    ) -> Result<Self, AgentError> {
        let is_set_up = left.is_some();
        let began = match &left {
            Some(left) => left.began,
            None => context.journal.length()?,
        };
        let mut fence = |mark| Fence::set_up(context.root, mark, context.journal);
        let own = fence(context.mark.clone())?;
        let (beside, roles, events) = match left {
            Some(left) => (left.beside, left.roles, left.events),
            None => (
                fence(format!("{}-beside", context.mark))?,
                Roles::default(),
                RoleEvents::new(&spec.observe.perf),
            ),
        };
        Ok(Stage {
            began,
            fence: own,
            beside,
            roles,
            events,
            collectors: Collectors::default(),
            co_runners: Vec::new(),
            unended: Vec::new(),
            kernel_release: collect::machine::kernel_release(),
            is_set_up,
        })
    }

    /// Makes the folders of what runs here, with their files.
    pub fn lay_out(&mut self, context: &mut Context, spec: &TrialSpec) -> Result<(), Stop> {
        if self.is_set_up {
            return Ok(());
        }
        let workload = &spec.workload;
        self.roles.listen_at(spec.part.address());
        let driver = load::driver(&workload.kind);
        if workload.has_folders() || driver.is_ok_and(|driver| driver.needs_folder()) {
            let folder = context.folders.join(&context.mark);
            self.roles
                .lay_out(services_here(spec), &folder, context.journal)?;
        }
        match &spec.part {
            Part::Beside { .. } => Ok(()),
            Part::Whole => self.roles.write_files_of_load(workload),
            Part::Load { services, .. } => {
                self.roles.run_elsewhere(services);
                self.roles.write_files_of_load(workload)
            }
        }
    }

    /// Starts the services, the server and the antagonists, in this order.
    pub fn start_roles(
        &mut self,
        context: &mut Context,
        spec: &TrialSpec,
        in_force: &InForce,
    ) -> Result<(), Stop> {
        let workload = &spec.workload;
        if self.is_set_up || matches!(spec.part, Part::Load { .. }) {
            return Ok(());
        }
        for service in &workload.services {
            let limit = stack::start_limit(service) + KILL_LIMIT;
            context.progress(format!("starting {}", service.name), limit);
            let (roles, ground) = self.ground(context, in_force);
            roles.start_service(&workload.services, service, ground)?;
        }
        if let Some(server) = &workload.server {
            let limit = Duration::from_nanos(server.ready_limit_ns);
            context.progress("starting the server", limit + KILL_LIMIT);
        }
        let (roles, ground) = self.ground(context, in_force);
        roles.start(workload, &spec.calibration, ground)
    }

    /// The roles, and what starting one needs.
    fn ground<'a>(
        &'a mut self,
        context: &'a mut Context,
        in_force: &'a InForce<'a>,
    ) -> (&'a mut Roles, Ground<'a>) {
        let ground = Ground {
            root: context.root,
            executable: context.executable,
            in_force,
            fence: &self.beside,
            journal: context.journal,
            interrupt: context.interrupt,
            events: &mut self.events,
        };
        (&mut self.roles, ground)
    }

    /// Makes the cgroup of a load that the arm limits.
    pub fn limit_load(&mut self, context: &mut Context, in_force: &InForce) -> Result<(), Stop> {
        let name = format!("{}-load", self.fence.name());
        let limited = self
            .roles
            .limit_load(context.root, &name, in_force, context.journal);
        limited.map_err(|e| Stop::Void(format!("the load: {e}")))
    }

    /// Makes the cgroups that parts of the load are to be in.
    pub fn groups_of_load(
        &mut self,
        context: &mut Context,
        driver: &dyn Driver,
    ) -> Result<Vec<GroupAt>, Stop> {
        let (root, journal) = (context.root, &mut *context.journal);
        let made = self
            .roles
            .make_parts(root, &self.fence.name(), driver.groups(), journal);
        made.map_err(|e| Stop::Void(format!("the load: {e}")))
    }

    /// Starts the collectors that the trial asks for. The load has `load_limit` from here on.
    pub fn start_collectors(
        &mut self,
        context: &mut Context,
        spec: &TrialSpec,
        in_force: &InForce,
        load_limit: Duration,
    ) {
        let wanted = collectors::wanted_collectors(spec);
        let longest = load_limit + collectors::limit(&wanted) + KILL_LIMIT;
        context.progress("measuring", longest);
        let scheduler = in_force.processes().next();
        let start = Start {
            root: context.root,
            origin: Origin {
                executable: context.executable,
                fence: &self.beside,
            },
            journal: context.journal,
            interrupt: context.interrupt,
            folders: &context.folders,
            mark: &context.mark,
        };
        self.collectors.prepare(&wanted, scheduler, start);
        self.collectors.count_events(&spec.observe.events);
    }

    /// The processes that lead the roles, the loads first.
    pub fn leaders(&self, load: Option<Pid>) -> Vec<(Role, Pid)> {
        let loads = load.into_iter().chain(self.co_runners.iter().copied());
        let loads = loads.map(|pid| (Role::Load, pid));
        loads.chain(self.roles.leaders()).collect()
    }

    /// Processes of the trial that the end of the load does not end.
    pub fn others(&self, context: &Context, in_force: &InForce) -> Vec<Pid> {
        let mut others = context.guard.processes();
        others.extend(in_force.processes());
        others.extend(self.roles.leaders().map(|(_, pid)| pid));
        others.extend(self.collectors.processes());
        others.extend(self.beside.members());
        others
    }

    /// Waits until what the load left to do is done, as the machine is to be saved.
    pub fn settle(&self, context: &mut Context, spec: &TrialSpec) -> Result<(), Stop> {
        let workload = &spec.workload;
        let load_ns = workload.warmup_ns.saturating_add(workload.duration_ns);
        let limit = settle::limit(Duration::from_nanos(load_ns));
        context.progress("waiting until the machine is at rest", limit + KILL_LIMIT);
        match settle::wait_for_rest(context.root, context.interrupt, limit) {
            true => Err(Stop::interrupted()),
            false => Ok(()),
        }
    }

    /// Ends the load's part and leaves the rest as it is; gives what could not be ended, too.
    pub fn leave(
        &mut self,
        context: &mut Context,
        in_force: &mut InForce,
    ) -> (Result<(), String>, LeftStage) {
        let mut errors = std::mem::take(&mut self.unended);
        errors.extend(self.collectors.stop());
        errors.extend(in_force.take_back(context.root).errors);
        errors.extend(self.fence.remove().err());
        let left = LeftStage {
            began: self.began,
            beside: self.beside.clone(),
            roles: std::mem::take(&mut self.roles),
            events: std::mem::take(&mut self.events),
        };
        let ended = match errors.is_empty() {
            true => Ok(()),
            false => Err(errors.join("; ")),
        };
        (ended, left)
    }

    /// Ends everything that stands and takes the arm back; the errors say what could not be.
    pub fn clear(
        &mut self,
        context: &mut Context,
        spec: &TrialSpec,
        in_force: &mut InForce,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), String> {
        let ending = KILL_LIMIT * self.kills() + self.roles.farewell_limit();
        context.progress("ending its processes", ending);
        let mut errors = std::mem::take(&mut self.unended);
        errors.extend(self.collectors.stop());
        errors.extend(self.end_roles(context));
        context.progress("undoing the arm", in_force.undo_limit() + KILL_LIMIT);
        let taken_back = in_force.take_back(context.root);
        errors.extend(taken_back.errors);
        for log in taken_back.logs {
            files::send(context.say, &log.name, &log.text);
        }
        if errors.is_empty() {
            errors.extend(self.end_all(context).err());
            let (warning, left) = self.keep_files(context, spec);
            warnings.extend(warning);
            errors.extend(left);
            errors.extend(self.roles.remove_folders().err());
        }
        processes::reap_orphans(&context.guard.processes());
        if errors.is_empty() {
            let forgotten = context.journal.forget_from(self.began);
            return forgotten.map_err(|e| e.to_string());
        }
        // The journal says what is left, and the next trial begins with that.
        Err(errors.join("; "))
    }

    /// Ends the roles; gives the errors of those that could not be ended.
    fn end_roles(&mut self, context: &mut Context) -> Vec<String> {
        let (outputs, errors) = self.roles.end_all(&self.beside);
        for (name, output) in outputs {
            let text = output.stdout + &output.stderr;
            files::send(context.say, &format!("{name}.log"), &text);
        }
        errors
    }

    /// Nothing that the trial started runs on.
    fn end_all(&self, context: &Context) -> Result<(), String> {
        let keep = context.guard.processes();
        processes::kill_until_gone(|| processes::descendants(&keep))?;
        self.fence.remove()?;
        self.beside.remove()
    }

    /// Each role, and what has left them.
    fn kills(&self) -> u32 {
        u32::try_from(self.roles.leaders().count() + 2).unwrap_or(u32::MAX)
    }

    /// Sends the files that the trial is to keep, to which nobody writes any more. Gives a warning of those that
    /// are not kept, and the errors of what could not be removed.
    fn keep_files(
        &mut self,
        context: &mut Context,
        spec: &TrialSpec,
    ) -> (Option<Warning>, Vec<String>) {
        let workload = &spec.workload;
        let of_services = services_here(spec)
            .iter()
            .map(|s| (s.name.as_str(), &s.keep));
        // Each part keeps what is on its machine.
        let load = match spec.part {
            Part::Whole | Part::Load { .. } => Some((LOAD, &workload.keep)),
            Part::Beside { .. } => None,
        };
        let limit = workload.keep_limit_bytes.unwrap_or(KEEP_LIMIT_BYTES);
        let mut kept = Kept::new(limit, context.say);
        for (name, keep) in of_services.chain(load) {
            let Some(folder) = self.roles.folder_of(name) else {
                continue;
            };
            keep.iter()
                .for_each(|path| kept.keep_files(name, &folder, path));
        }
        let errors = self.collectors.keep_files(&mut kept);
        (kept.warning(), errors)
    }
}

/// The services that run on this machine.
fn services_here(spec: &TrialSpec) -> &[Service] {
    match spec.part {
        Part::Load { .. } => &[],
        Part::Whole | Part::Beside { .. } => &spec.workload.services,
    }
}
