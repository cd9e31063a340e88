//! Forms of demand that both programs can be asked for.

/// Work that is asked for, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Work of a job, in microseconds.
    pub work_us: u32,
    /// True if jobs are due at fixed times; else each waits after the one before.
    pub periodic: bool,
}

/// Time between two jobs, or from the end of one to the start of the next.
pub const BETWEEN_US: u32 = 10_000;

/// Short and long jobs, at fixed times and after a wait.
pub const DEMANDS: [Demand; 4] = [
    Demand {
        work_us: 70,
        periodic: true,
    },
    Demand {
        work_us: 70,
        periodic: false,
    },
    Demand {
        work_us: 1000,
        periodic: true,
    },
    Demand {
        work_us: 1000,
        periodic: false,
    },
];

impl Demand {
    pub fn name(self) -> String {
        let Demand { work_us, .. } = self;
        match self.periodic {
            true => format!("{work_us} us every 10 ms"),
            false => format!("{work_us} us, wait 10 ms"),
        }
    }

    /// Word in the names of its workloads.
    fn word(self) -> String {
        let when = if self.periodic { "every" } else { "wait" };
        format!("{when}-{}", self.work_us)
    }

    pub fn burnwait(self) -> String {
        format!("burnwait-{}", self.word())
    }

    pub fn rt_app(self) -> String {
        format!("rt-app-{}", self.word())
    }

    /// Workload of burnwait: a worker, whose intervals are short enough to hold one job each.
    fn burnwait_table(self, seconds: u64) -> String {
        let name = self.burnwait();
        let every = if self.periodic { "every " } else { "" };
        let event = format!("{} {every}{BETWEEN_US}us", self.work_us);
        format!(
            "[[workload]]\nname = \"{name}\"\nkind = \"burnwait\"\nloads = [1]\nwarmup = \"500ms\"\n\
             duration = \"{seconds}s\"\ninterval = \"10ms\"\n\
             [[workload.set]]\nname = \"one\"\nevents = [\"{event}\"]\n"
        )
    }

    fn rt_app_table(self, seconds: u64, program: &str, ns_per_loop: u64) -> String {
        let name = self.rt_app();
        let phase = self.rt_app_phase();
        let json = rt_app_file(&ns_per_loop.to_string(), "{folder}", seconds + 1, &phase);
        format!(
            "[[workload]]\nname = \"{name}\"\nkind = \"command\"\n\
             command = [\"{program}\", \"{{folder}}/task.json\"]\nkeep = [\"{LOG}\"]\n\
             [workload.files]\n\"task.json\" = '''{json}'''\n"
        )
    }

    fn rt_app_phase(self) -> String {
        let work_us = self.work_us;
        match self.periodic {
            true => format!(
                "\"run\": {work_us}, \"timer\": {{ \"ref\": \"unique\", \"period\": {BETWEEN_US} }}"
            ),
            false => format!("\"run\": {work_us}, \"sleep\": {BETWEEN_US}"),
        }
    }
}

/// Log that rt-app leaves of its one thread.
pub const LOG: &str = "log-one-0.log";

/// Task file of rt-app.
pub fn rt_app_file(calibration: &str, folder: &str, seconds: u64, phase: &str) -> String {
    format!(
        "{{ \"global\": {{ \"duration\": {seconds}, \"calibration\": {calibration}, \
         \"default_policy\": \"SCHED_OTHER\", \"logdir\": \"{folder}\", \"log_basename\": \"log\", \
         \"log_size\": 2 }}, \"tasks\": {{ \"one\": {{ \"loop\": -1, {phase} }} }} }}"
    )
}

/// Experiment of one round.
pub fn experiment(seconds: u64, rt_app: &str, ns_per_loop: u64) -> String {
    let tables = DEMANDS.iter().map(|demand| {
        let own = demand.burnwait_table(seconds);
        own + &demand.rt_app_table(seconds, rt_app, ns_per_loop)
    });
    let tables: String = tables.collect();
    format!(
        "name = \"precision\"\n[[arm]]\nname = \"default\"\n{tables}[stop]\nmin-blocks = 1\n\
         max-blocks = 1\n"
    )
}
