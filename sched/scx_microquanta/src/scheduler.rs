//! The BPF half: opened with the user's choices, attached, asked and changed
//! while it runs.

use crate::bpf_intf;
use crate::bpf_skel::{BpfSkel, BpfSkelBuilder, types};
use crate::params::Params;
use crate::select::{Name, Rule};
use crate::stats::{self, ClientId, ClientView, Counters, Metrics, Request, Response};
use anyhow::{Context, Result, ensure};
use crossbeam::channel::RecvTimeoutError;
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use log::info;
use scx_stats::prelude::*;
use scx_utils::{
    Topology, UserExitInfo, compat, scx_ops_attach, scx_ops_load, scx_ops_open,
    try_set_rlimit_infinity, uei_exited, uei_report,
};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

const MAX_CPUS: usize = bpf_intf::consts_MAX_CPUS as usize;

/// Settings that are fixed while the scheduler runs.
#[derive(Debug)]
pub struct Setup {
    pub rules: Vec<Rule>,
    pub slice: Duration,
    pub exit_dump_len: u32,
    pub verbose: bool,
}

/// Attached while this lives.
pub struct Scheduler<'a> {
    skel: BpfSkel<'a>,
    link: Option<Link>,
    params: Params,
    server: StatsServer<Request, Response>,
    clients: BTreeMap<ClientId, ClientView>,
}

impl<'a> Scheduler<'a> {
    pub fn attach(
        setup: &Setup,
        params: Params,
        object: &'a mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        try_set_rlimit_infinity();
        let mut builder = BpfSkelBuilder::default();
        builder.obj_builder.debug(setup.verbose);
        let mut skel = scx_ops_open!(builder, object, microquanta_ops, None)?;
        skel.struct_ops.microquanta_ops_mut().exit_dump_len = setup.exit_dump_len;
        if compat::ksym_exists("scx_bpf_reenqueue_local___v2")? {
            skel.struct_ops.microquanta_ops_mut().cpu_release = std::ptr::null_mut();
            skel.progs.microquanta_sched_switch.set_autoload(true);
        }
        let rodata = skel.maps.rodata_data.as_mut();
        let rodata = rodata.context("the BPF object has no constants")?;
        rodata.rest_slice_ns = setup.slice.as_nanos() as u64;
        set_rules(rodata, &setup.rules);
        set_topology(rodata)?;

        let mut skel = scx_ops_load!(skel, microquanta_ops, uei)?;
        set_params(&mut skel, params)?;
        let link = Some(scx_ops_attach!(skel, microquanta_ops)?);
        let server = StatsServer::new(stats::server_data()).launch()?;
        Ok(Scheduler {
            skel,
            link,
            params,
            server,
            clients: BTreeMap::new(),
        })
    }

    /// Until told to stop or ended by the kernel; says why it ended.
    pub fn run(&mut self, shutdown: &AtomicBool) -> Result<UserExitInfo> {
        let (responses, requests) = self.server.channels();
        while !shutdown.load(Ordering::Relaxed) && !uei_exited!(&self.skel, uei) {
            match requests.recv_timeout(Duration::from_millis(500)) {
                Ok(request) => responses.send(self.answer(request)?)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(error) => Err(error)?,
            }
        }
        drop(self.link.take());
        uei_report!(&self.skel, uei)
    }

    /// The parameters that are in force now.
    pub fn params(&self) -> Params {
        self.params
    }

    fn answer(&mut self, request: Request) -> Result<Response> {
        Ok(match request {
            Request::Open(client) => {
                let view = ClientView::from(&self.counters()?);
                self.clients.insert(client, view);
                Response::Done
            }
            Request::Read(client) => Response::Metrics(self.metrics(client)?),
            Request::Close(client) => {
                self.clients.remove(&client);
                Response::Done
            }
            Request::Change { period, runtime } => {
                let changed = self.change(period, runtime);
                Response::Changed(changed.map_err(|e| format!("{e:#}")))
            }
        })
    }

    fn change(&mut self, period: Option<Duration>, runtime: Option<Duration>) -> Result<Params> {
        let params = self.params.with(period, runtime)?;
        set_params(&mut self.skel, params)?;
        self.params = params;
        info!("{params:?}");
        Ok(params)
    }

    fn metrics(&mut self, client: ClientId) -> Result<Metrics> {
        let ended = self.begin_wait_epoch()?;
        let counters = self.counters()?;
        for view in self.clients.values_mut() {
            view.note_waits(&counters, ended);
        }
        let view = self.clients.entry(client).or_default();
        let bss = self.skel.maps.bss_data.as_ref();
        Ok(Metrics {
            period_ns: self.params.period_ns,
            runtime_ns: self.params.runtime_ns,
            nr_tasks: bss.map_or(0, |bss| bss.nr_quanta_tasks),
            cpus: view.take(&counters),
        })
    }

    /// Returns the epoch that ends.
    fn begin_wait_epoch(&mut self) -> Result<u64> {
        let bss = self.skel.maps.bss_data.as_mut();
        let bss = bss.context("the BPF object has no variables")?;
        let ended = bss.wait_epoch;
        bss.wait_epoch = ended + 1;
        fence(Ordering::SeqCst);
        Ok(ended)
    }

    fn counters(&self) -> Result<BTreeMap<usize, Counters>> {
        let map = &self.skel.maps.cpu_stats_map;
        let values = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        let values = values.context("the statistics have no entry")?;
        let counters = values.iter().map(|v| Counters::from_bytes(v));
        let counters = counters.collect::<Option<Vec<_>>>();
        let counters = counters.context("the statistics are too short")?;
        Ok(counters.into_iter().enumerate().collect())
    }
}

impl Drop for Scheduler<'_> {
    fn drop(&mut self) {
        info!("Unregister scx_microquanta scheduler");
    }
}

fn set_rules(rodata: &mut types::rodata, rules: &[Rule]) {
    rodata.nr_rules = rules.len() as u32;
    for (slot, rule) in rodata.rules.iter_mut().zip(rules) {
        let (kind, name) = match rule {
            Rule::Cgroup(id) => {
                slot.cgroup_id = *id;
                (bpf_intf::rule_kind_RULE_CGROUP, None)
            }
            Rule::Process(name) => (bpf_intf::rule_kind_RULE_PROCESS, Some(name)),
            Rule::Thread(name) => (bpf_intf::rule_kind_RULE_THREAD, Some(name)),
        };
        slot.kind = kind;
        if let Some(Name { bytes, len }) = name {
            slot.len = *len as u32;
            slot.name = bytes.map(|b| b as i8);
        }
    }
}

/// Which CPUs share their last-level cache.
fn set_topology(rodata: &mut types::rodata) -> Result<()> {
    for cpu in Topology::new()?.all_cpus.values() {
        ensure!(cpu.id < MAX_CPUS, "CPU {} is beyond {MAX_CPUS}", cpu.id);
        rodata.cpu_llc[cpu.id] = cpu.llc_id as u32;
    }
    Ok(())
}

/// The BPF half sees either the old pair or the new one, never one of each.
fn set_params(skel: &mut BpfSkel<'_>, params: Params) -> Result<()> {
    let bss = skel.maps.bss_data.as_mut();
    let bss = bss.context("the BPF object has no variables")?;
    let next = (bss.params_in_use + 1) & 1;
    bss.params[next as usize].period_ns = params.period_ns;
    bss.params[next as usize].runtime_ns = params.runtime_ns;
    fence(Ordering::SeqCst);
    bss.params_in_use = next;
    fence(Ordering::SeqCst);
    Ok(())
}
