/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The others: fair by weight on each CPU, and evened out between CPUs.
 *
 * Each CPU has a virtual time of its own, as in the kernel's fair class: how fast
 * it goes depends on who runs and waits there, so one CPU's means nothing on
 * another. A task that goes to another CPU takes along how far it is ahead there,
 * or behind.
 */
#ifndef __MICROQUANTA_FAIR_H
#define __MICROQUANTA_FAIR_H

#include "account.bpf.h"

/*
 * @vtime of the CPU @from, as of the CPU @to. Who slept does not come back with
 * more than one slice to catch up.
 */
static u64 vtime_on(struct cpu_ctx *to, u64 vtime, struct cpu_ctx *from)
{
	s64 ahead = vtime - from->vtime;

	return to->vtime + MAX(ahead, -(s64)rest_slice_ns);
}

/* @p no longer runs or waits as one of the others. */
static void leave_rest(struct task_ctx *tctx)
{
	struct cpu_ctx *home = get_cpu_ctx(tctx->home);

	if (home && tctx->weight)
		__sync_fetch_and_sub(&home->weight, tctx->weight);
	tctx->weight = 0;
}

/* @p runs on @cpu or waits for it. Gives its virtual time there. */
static u64 join_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *p, struct task_ctx *tctx)
{
	struct cpu_ctx *home = get_cpu_ctx(tctx->home);
	u64 vtime = vtime_on(cctx, p->scx.dsq_vtime, home ?: cctx);

	if (tctx->home != cpu || tctx->weight != p->scx.weight) {
		leave_rest(tctx);
		tctx->home = cpu;
		tctx->weight = p->scx.weight;
		__sync_fetch_and_add(&cctx->weight, tctx->weight);
	}
	return vtime;
}

/* @vtime, or that of the first task that waits for this CPU if it is less. */
static u64 least_waiting(s32 cpu, u64 vtime)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, rest_dsq(cpu), 0)
		return time_before(p->scx.dsq_vtime, vtime) ? p->scx.dsq_vtime : vtime;
	return vtime;
}

/*
 * The CPU's virtual time follows the least of those that run and wait there: a
 * task of little weight is soon far ahead of the others.
 */
static void advance_vtime(s32 cpu, struct cpu_ctx *cctx, u64 running)
{
	u64 vtime = least_waiting(cpu, running);

	if (time_before(cctx->vtime, vtime))
		cctx->vtime = vtime;
}

/*
 * The last in the order of virtual time may be far ahead: someone of little weight
 * beside many or heavy ones, or beside micro-quanta tasks that leave little. Who
 * waits for OVERDUE_NS goes first, or the kernel would take it for starved.
 */
static bool move_overdue(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	struct task_struct *p;
	u32 seen = 0;

	if (time_before(now, cctx->overdue_at + OVERDUE_LOOK_NS))
		return false;
	bpf_for_each(scx_dsq, p, rest_dsq(cpu), 0) {
		struct task_ctx *tctx = get_task_ctx(p);

		if (tctx && time_after(now, tctx->queued_at + OVERDUE_NS) &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		if (++seen == MAX_LOOKED_AT)
			break;
	}
	cctx->overdue_at = now;
	return false;
}

/* @weight of others on a CPU, as that of a CPU that they have for themselves. */
static u64 pressure(s32 cpu, struct cpu_ctx *cctx, s64 weight)
{
	struct quanta_params *pm = get_params();
	u64 period = pm->period_ns, runtime = pm->runtime_ns;

	if (cctx->occupant != QUANTA && !quanta_wait(cpu))
		return weight;
	return weight * period / MAX((s64)(period - runtime), 1);
}

/*
 * May the first task that waits for @other and can run on @cpu come here, before
 * what has @vtime? Not if there would then be more here than there was.
 */
static bool may_come(s32 cpu, struct cpu_ctx *cctx, u64 vtime, s32 other, struct cpu_ctx *octx)
{
	struct task_struct *p;
	u32 seen = 0;

	bpf_for_each(scx_dsq, p, rest_dsq(other), 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return pressure(cpu, cctx, cctx->weight + p->scx.weight) <=
				       pressure(other, octx, octx->weight) &&
			       time_before(vtime_on(cctx, p->scx.dsq_vtime, octx), vtime);
		if (++seen == MAX_IN_THE_WAY)
			return false;
	}
	return false;
}

/* It is offline, or real-time tasks have had it for a while. */
static bool is_out_of_reach(struct cpu_ctx *cctx, u64 now)
{
	return !cctx->online ||
	       (cctx->occupant == NOBODY && time_after(now, cctx->charged_at + rest_slice_ns));
}

/*
 * Take over from a CPU that is out of reach; or from one of the same last-level
 * cache that has more to do, if that task comes before what has @vtime here.
 */
static bool even_out(s32 cpu, struct cpu_ctx *cctx, u64 vtime, u64 now)
{
	s32 i;

	if (time_before(now, cctx->evened_at + rest_slice_ns))
		return false;
	cctx->evened_at = now;
	bpf_for(i, 1, nr_cpu_ids) {
		s32 other = (cpu + i) % nr_cpu_ids;
		struct cpu_ctx *octx = get_cpu_ctx(other);

		/* All that wait are counted. */
		if (!octx || !octx->weight)
			continue;
		if (!is_out_of_reach(octx, now) &&
		    (llc_of(other) != llc_of(cpu) || !may_come(cpu, cctx, vtime, other, octx)))
			continue;
		if (scx_bpf_dsq_move_to_local(rest_dsq(other), 0))
			return true;
	}
	return false;
}

/* Nobody of the others waits for this CPU: take whom any other CPU has waiting. */
static bool steal_rest(s32 cpu, bool same_llc)
{
	s32 i;

	bpf_for(i, 1, nr_cpu_ids) {
		s32 other = (cpu + i) % nr_cpu_ids;
		struct cpu_ctx *octx = get_cpu_ctx(other);

		if (octx && octx->weight && (llc_of(other) == llc_of(cpu)) == same_llc &&
		    scx_bpf_dsq_move_to_local(rest_dsq(other), 0))
			return true;
	}
	return false;
}

#endif
