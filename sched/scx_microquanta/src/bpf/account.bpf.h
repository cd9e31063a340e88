/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accounts of credit, time and waits, and the timer that makes a CPU decide again.
 */
#ifndef __MICROQUANTA_ACCOUNT_H
#define __MICROQUANTA_ACCOUNT_H

#include "state.bpf.h"

/*
 * Credit of a micro-quanta task that ran all the time since it was last charged
 * while nobody else waited. It cannot fall below 0, so at worst the credit is
 * what is left of the runtime of the period that the clock is in.
 */
static s64 credit_alone(s64 credit, u64 periods, u64 into_period, u64 runtime)
{
	s64 fresh = periods ? (s64)runtime - (s64)into_period : 0;

	return MAX(credit, MAX(fresh, 0));
}

/*
 * Bring the CPU's credit up to date: what boundaries added, and what the running
 * micro-quanta task used.
 */
static void settle(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	struct quanta_params *pm = get_params();
	u64 period = MAX(pm->period_ns, 1), runtime = pm->runtime_ns;
	s64 limit = CREDIT_PERIODS * runtime, credit;
	u64 periods = (now - cctx->period_start) / period;
	struct cpu_stats *stats = get_stats(cpu);
	u64 used = 0;

	cctx->period_start += periods * period;
	if (cctx->occupant == QUANTA)
		used = now - cctx->charged_at;
	credit = cctx->credit_ns + (s64)(periods * runtime) - (s64)used;
	if (used && !cctx->contended)
		credit = credit_alone(credit, periods, now - cctx->period_start, runtime);
	cctx->credit_ns = CLAMP(credit, -limit, limit);
	cctx->charged_at = now;
	if (stats)
		stats->quanta_ns += used;
}

/* Charge a running task of the rest, by its weight. */
static void charge_rest(s32 cpu, struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	u64 used = now - tctx->charged_at;
	struct cpu_stats *stats = get_stats(cpu);

	tctx->charged_at = now;
	tctx->slice_left -= used;
	scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime + scale_by_task_weight_inverse(p, used));
	if (stats)
		stats->rest_ns += used;
}

static void record_wait(s32 cpu, struct task_ctx *tctx, u64 now)
{
	struct cpu_stats *stats = get_stats(cpu);
	u64 epoch = wait_epoch, wait = now - tctx->woken_at;
	struct worst_wait *worst;

	if (!stats || !tctx->woken_at)
		return;
	tctx->woken_at = 0;
	stats->nr_wakeups++;
	worst = &stats->worst[epoch & 1];
	if (worst->epoch != epoch) {
		worst->epoch = epoch;
		worst->ns = 0;
	}
	worst->ns = MAX(worst->ns, wait);
}

/*
 * ---- The timer ----
 */

static bool quanta_wait(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(quanta_dsq(cpu)) > 0;
}

static bool rest_waits(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(paused_dsq(cpu)) > 0 ||
	       scx_bpf_dsq_nr_queued(rest_dsq(cpu)) > 0;
}

static int on_timer(void *map, u32 *key, struct decide_timer *timer)
{
	s32 cpu = *key;
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	if (!cctx || !cctx->timer_at ||
	    time_before(bpf_ktime_get_ns() + MIN_DELAY_NS, cctx->timer_at))
		return 0;
	cctx->timer_at = 0;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

static void set_timer(s32 cpu, struct cpu_ctx *cctx, u64 now, u64 at)
{
	struct decide_timer *timer;
	u64 delay = MIN_DELAY_NS;
	u32 key = cpu;

	if (cctx->timer_at == at)
		return;
	timer = bpf_map_lookup_elem(&cpu_timers, &key);
	if (!timer)
		return;
	if (time_after(at, now + MIN_DELAY_NS))
		delay = at - now;
	cctx->timer_at = at;
	if (bpf_timer_start(&timer->timer, delay, BPF_F_TIMER_CPU_PIN))
		scx_bpf_error("the timer of CPU %d could not be set", cpu);
}

static void begin_throttle(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	struct cpu_stats *stats = get_stats(cpu);

	if (cctx->throttled_at)
		return;
	cctx->throttled_at = now;
	if (stats)
		stats->nr_throttled++;
}

static void end_throttle(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	struct cpu_stats *stats = get_stats(cpu);

	if (!cctx->throttled_at)
		return;
	if (stats)
		stats->throttled_ns += now - cctx->throttled_at;
	cctx->throttled_at = 0;
}

/*
 * A micro-quanta task runs, and others may want the CPU or not. @credit_end is
 * when the latter go first.
 */
static void watch_quanta(s32 cpu, struct cpu_ctx *cctx, u64 now, bool contended, u64 credit_end)
{
	u64 at = contended ? credit_end : 0;

	end_throttle(cpu, cctx, now);
	cctx->contended = contended;
	if (quanta_wait(cpu) && (!at || time_before(cctx->turn_end, at)))
		at = cctx->turn_end;
	if (at)
		set_timer(cpu, cctx, now, at);
	else
		cctx->timer_at = 0;
}

/* A task of the rest runs; micro-quanta tasks that wait have no credit. */
static void watch_rest(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	if (quanta_wait(cpu)) {
		begin_throttle(cpu, cctx, now);
		set_timer(cpu, cctx, now, cctx->period_start + get_params()->period_ns);
	} else {
		end_throttle(cpu, cctx, now);
		cctx->timer_at = 0;
	}
}

#endif
