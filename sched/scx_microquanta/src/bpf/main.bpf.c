/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_microquanta: a bounded share of every CPU, at once.
 *
 * Some tasks, the micro-quanta tasks, run before all others, but only for
 * runtime_ns of every period_ns on each CPU. When nobody else wants the CPU
 * they may have all of it.
 *
 * Queues (DSQs)
 * -------------
 * quanta_dsq(cpu)  micro-quanta tasks that wait for this CPU, first in first out
 * paused_dsq(cpu)  other tasks that a micro-quanta task interrupted on this CPU
 *                  and that have slice left: they go on here, with warm caches
 * rest_dsq(cpu)    all other tasks that wait for this CPU, by weighted virtual time
 *
 * Credit
 * ------
 * Each CPU has a credit of CPU time. At every period's boundary it grows by
 * runtime_ns; micro-quanta tasks that run while others wait use it up. Above
 * 0 they go first, at 0 the others do until the next boundary. It stays within
 * two periods' worth of runtime: a CPU that had no such tasks for an hour has
 * not saved up an hour of priority, and one long section in the kernel is not
 * paid for with a long exclusion. Time that nobody else wanted costs nothing.
 *
 * Nothing here happens at ticks. Each CPU has a timer, set only while somebody
 * waits: to the end of the credit or of the turn when a micro-quanta task runs,
 * to the period's boundary when one waits for it. All it does is to make the
 * CPU decide again; every decision is made in dispatch() on the CPU itself, from
 * the clock, so an early, late or useless timer changes no account.
 */
#include "state.bpf.h"
#include "choice.bpf.h"
#include "account.bpf.h"
#include "fair.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/*
 * ---- Where to ----
 */

/*
 * An idle core, else an idle thread of one; of these the one nearest to
 * @prev_cpu where the kernel can tell.
 */
static s32 pick_idle(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu;

	/* It may still be allowed more CPUs than it can use; Linux 6.12 asks nevertheless. */
	if (is_migration_disabled(p))
		return -EBUSY;
	if (__COMPAT_HAS_scx_bpf_select_cpu_and)
		return scx_bpf_select_cpu_and(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC,
					      p->cpus_ptr, 0);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, SCX_PICK_IDLE_CORE);
	if (cpu >= 0)
		return cpu;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

static bool is_free_of_quanta(struct task_struct *p, s32 cpu)
{
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	return cctx && cctx->online && cctx->occupant != QUANTA && !quanta_wait(cpu) &&
	       bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* A CPU without micro-quanta tasks, @prev_cpu and its neighbours first. */
static s32 pick_free_of_quanta(struct task_struct *p, s32 prev_cpu)
{
	s32 i;

	bpf_for(i, 0, nr_cpu_ids) {
		s32 cpu = (prev_cpu + i) % nr_cpu_ids;

		if (is_free_of_quanta(p, cpu))
			return cpu;
	}
	return -EBUSY;
}

/* A micro-quanta task runs there, and no timer ends it for the others' sake. */
static bool is_uncontended(struct task_struct *p, s32 cpu)
{
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	return cctx && cctx->occupant == QUANTA && !cctx->contended &&
	       bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * A CPU that a micro-quanta task has for itself and that @p, which waits, may have
 * a part of; @cpu if it is one.
 */
static s32 pick_uncontended(struct task_struct *p, s32 cpu)
{
	s32 i;

	if (!nr_quanta_tasks || is_migration_disabled(p))
		return -EBUSY;
	bpf_for(i, 0, nr_cpu_ids) {
		s32 other = (cpu + i) % nr_cpu_ids;

		if (is_uncontended(p, other))
			return other;
	}
	return -EBUSY;
}

/*
 * ---- Operations ----
 */

s32 BPF_STRUCT_OPS(microquanta_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = get_task_ctx(p);
	s32 cpu;

	if (!tctx)
		return prev_cpu;
	cpu = pick_idle(p, prev_cpu, wake_flags);
	if (cpu >= 0) {
		classify(p, tctx);
		tctx->slice_left = rest_slice_ns;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL,
				   tctx->is_quanta ? SLICE_NS : rest_slice_ns, 0);
		return cpu;
	}
	if (classify(p, tctx)) {
		cpu = pick_free_of_quanta(p, prev_cpu);
		if (cpu >= 0)
			return cpu;
	}
	return prev_cpu;
}

/*
 * A CPU will decide in time when its timer is set: to the boundary when micro-quanta
 * tasks wait already, else to the end of the credit, which may be after the turn.
 */
static bool will_decide(struct cpu_ctx *cctx)
{
	return cctx->timer_at &&
	       (cctx->occupant != QUANTA || !time_before(cctx->turn_end, cctx->timer_at));
}

/* Another CPU than @cpu, which real-time tasks have taken, if there is one without quanta. */
static s32 leave_to_real_time(struct task_struct *p, s32 cpu)
{
	s32 other = pick_free_of_quanta(p, (cpu + 1) % nr_cpu_ids);

	return other < 0 || is_migration_disabled(p) ? cpu : other;
}

static void enqueue_quanta(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	s32 idle_cpu = pick_idle(p, cpu, 0);
	struct cpu_ctx *cctx;

	leave_rest(tctx);
	if (idle_cpu >= 0)
		cpu = idle_cpu;
	else if (enq_flags & SCX_ENQ_REENQ)
		cpu = leave_to_real_time(p, cpu);
	scx_bpf_dsq_insert(p, quanta_dsq(cpu), SLICE_NS, enq_flags);
	if (idle_cpu >= 0) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	/* A task that was running until now is queued by a CPU that is about to decide. */
	cctx = get_cpu_ctx(cpu);
	if (cctx && !tctx->requeued && !will_decide(cctx))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* For an idle CPU, else for one that a micro-quanta task has for itself, else for @cpu. */
static void enqueue_rest(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	u64 kick = SCX_KICK_IDLE;
	s32 other = pick_idle(p, cpu, 0);
	struct cpu_ctx *cctx;

	if (other < 0) {
		kick = SCX_KICK_PREEMPT;
		other = pick_uncontended(p, cpu);
	}
	if (other >= 0)
		cpu = other;
	cctx = get_cpu_ctx(cpu);
	if (!cctx)
		return;
	tctx->slice_left = rest_slice_ns;
	tctx->queued_at = bpf_ktime_get_ns();
	scx_bpf_dsq_insert_vtime(p, rest_dsq(cpu), rest_slice_ns, join_rest(cpu, cctx, p, tctx),
				 enq_flags);
	if (other >= 0)
		scx_bpf_kick_cpu(other, kick);
}

static void enqueue_paused(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	s32 idle_cpu = pick_idle(p, cpu, 0);

	scx_bpf_dsq_insert(p, paused_dsq(cpu), tctx->slice_left, enq_flags);
	if (idle_cpu >= 0)
		scx_bpf_kick_cpu(idle_cpu, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(microquanta_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = get_task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!tctx) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, rest_slice_ns, enq_flags);
		return;
	}
	if (classify(p, tctx))
		enqueue_quanta(p, tctx, cpu, enq_flags);
	else if (tctx->paused)
		enqueue_paused(p, tctx, cpu, enq_flags);
	else
		enqueue_rest(p, tctx, cpu, enq_flags);
	tctx->paused = false;
	tctx->requeued = false;
}

static void begin_run(s32 cpu, struct cpu_ctx *cctx, struct task_struct *p, struct task_ctx *tctx,
		      u64 now)
{
	settle(cpu, cctx, now);
	if (tctx->is_quanta) {
		leave_rest(tctx);
		cctx->occupant = QUANTA;
		cctx->turn_end = now + turn_ns();
	} else {
		cctx->occupant = REST;
		tctx->charged_at = now;
		scx_bpf_task_set_dsq_vtime(p, join_rest(cpu, cctx, p, tctx));
	}
}

static void end_run(s32 cpu, struct cpu_ctx *cctx, struct task_struct *p, struct task_ctx *tctx,
		    u64 now)
{
	settle(cpu, cctx, now);
	if (cctx->occupant == REST)
		charge_rest(cpu, p, tctx, now);
	cctx->occupant = NOBODY;
	cctx->contended = false;
}

/* Let the micro-quanta task @prev go on. */
static void keep_quanta(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev, u64 now,
			bool contended)
{
	if (!time_before(now, cctx->turn_end))
		cctx->turn_end = now + turn_ns();
	scx_bpf_task_set_slice(prev, SLICE_NS);
	watch_quanta(cpu, cctx, now, contended, now + MAX(cctx->credit_ns, 0));
}

static bool may_keep_quanta(s32 cpu, struct cpu_ctx *cctx, u64 now)
{
	return cctx->occupant == QUANTA && (time_before(now, cctx->turn_end) || !quanta_wait(cpu));
}

/*
 * A micro-quanta task takes the place of @prev, which keeps its place on this CPU
 * if it has slice left.
 */
static void pause(struct task_ctx *tctx)
{
	tctx->paused = tctx->slice_left > (s64)MIN_DELAY_NS;
}

/* Micro-quanta tasks go first. False when none wants to run. */
static bool dispatch_quanta(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
			    struct task_ctx *prev_ctx, u64 now)
{
	if (prev_ctx && may_keep_quanta(cpu, cctx, now)) {
		keep_quanta(cpu, cctx, prev, now, rest_waits(cpu));
		return true;
	}
	if (!scx_bpf_dsq_move_to_local(quanta_dsq(cpu), 0))
		return false;
	if (prev_ctx && cctx->occupant == REST)
		pause(prev_ctx);
	return true;
}

static void keep_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
		      struct task_ctx *prev_ctx, u64 now)
{
	if (prev_ctx->slice_left <= (s64)MIN_DELAY_NS)
		prev_ctx->slice_left = rest_slice_ns;
	scx_bpf_task_set_slice(prev, prev_ctx->slice_left);
	advance_vtime(cpu, cctx, prev->scx.dsq_vtime);
	watch_rest(cpu, cctx, now);
}

/*
 * The first of the others by virtual time, of which @prev may be one. It is not in
 * the queue, which so cannot tell.
 */
static bool move_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev, u64 now)
{
	u64 own = prev ? prev->scx.dsq_vtime : cctx->vtime + NEVER_NS;
	u64 least = least_waiting(cpu, own);

	if (scx_bpf_dsq_move_to_local(paused_dsq(cpu), 0) || move_overdue(cpu, cctx, now) ||
	    even_out(cpu, cctx, least, now))
		return true;
	return least != own && scx_bpf_dsq_move_to_local(rest_dsq(cpu), 0);
}

/* The others go first. False when none wants to run. */
static bool dispatch_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
			  struct task_ctx *prev_ctx, u64 now)
{
	bool prev_is_rest = prev_ctx && cctx->occupant == REST;
	/* It was only asked to decide again. */
	bool goes_on = prev_is_rest && prev_ctx->slice_left > (s64)MIN_DELAY_NS;

	if (!goes_on && move_rest(cpu, cctx, prev_is_rest ? prev : NULL, now))
		return true;
	if (prev_is_rest)
		keep_rest(cpu, cctx, prev, prev_ctx, now);
	return prev_is_rest || steal_rest(cpu, true) || steal_rest(cpu, false);
}

/*
 * Before it goes idle a CPU takes what waits for another one: micro-quanta tasks
 * that have no credit there, or a task that one of them interrupted there.
 */
static void steal(s32 cpu)
{
	s32 i;

	if (!nr_quanta_tasks)
		return;
	bpf_for(i, 1, nr_cpu_ids) {
		s32 other = (cpu + i) % nr_cpu_ids;

		if (scx_bpf_dsq_move_to_local(quanta_dsq(other), 0) ||
		    scx_bpf_dsq_move_to_local(paused_dsq(other), 0))
			return;
	}
}

/* Charge @prev, which is running and wants to go on, as what it is by now. */
static void settle_prev(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
			struct task_ctx *prev_ctx, u64 now)
{
	bool was_quanta = prev_ctx->is_quanta;

	if (classify(prev, prev_ctx) != was_quanta) {
		end_run(cpu, cctx, prev, prev_ctx, now);
		begin_run(cpu, cctx, prev, prev_ctx, now);
		return;
	}
	settle(cpu, cctx, now);
	if (cctx->occupant == REST)
		charge_rest(cpu, prev, prev_ctx, now);
}

void BPF_STRUCT_OPS(microquanta_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);
	struct task_ctx *prev_ctx = NULL;
	u64 now = bpf_ktime_get_ns();

	if (!cctx)
		return;
	if (prev && is_queued(prev))
		prev_ctx = get_task_ctx(prev);
	if (prev_ctx)
		settle_prev(cpu, cctx, prev, prev_ctx, now);
	else
		settle(cpu, cctx, now);

	if (cctx->credit_ns > 0 && dispatch_quanta(cpu, cctx, prev, prev_ctx, now))
		return;
	if (dispatch_rest(cpu, cctx, prev, prev_ctx, now))
		return;
	/* Nobody else wants this CPU, or may have it: no credit needed. */
	if (prev_ctx && may_keep_quanta(cpu, cctx, now))
		keep_quanta(cpu, cctx, prev, now, false);
	else if (!scx_bpf_dsq_move_to_local(quanta_dsq(cpu), 0) && !prev_ctx)
		steal(cpu);
}

void BPF_STRUCT_OPS(microquanta_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = get_task_ctx(p);

	if (tctx)
		tctx->woken_at = bpf_ktime_get_ns();
}

void BPF_STRUCT_OPS(microquanta_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);
	struct task_ctx *tctx = get_task_ctx(p);
	u64 now = bpf_ktime_get_ns();

	if (!cctx || !tctx)
		return;
	tctx->requeued = false;
	begin_run(cpu, cctx, p, tctx, now);
	if (tctx->is_quanta) {
		record_wait(cpu, tctx, now);
		watch_quanta(cpu, cctx, now, rest_waits(cpu),
			     now + MAX(cctx->credit_ns, (s64)RETRY_NS));
	} else {
		/* Not to be counted if it becomes a micro-quanta task. */
		tctx->woken_at = 0;
		advance_vtime(cpu, cctx, p->scx.dsq_vtime);
		watch_rest(cpu, cctx, now);
	}
}

void BPF_STRUCT_OPS(microquanta_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);
	struct task_ctx *tctx = get_task_ctx(p);

	if (!cctx || !tctx)
		return;
	end_run(cpu, cctx, p, tctx, bpf_ktime_get_ns());
	cctx->timer_at = 0;
	tctx->requeued = runnable;
}

void BPF_STRUCT_OPS(microquanta_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = get_task_ctx(p);

	if (tctx)
		leave_rest(tctx);
}

/* sched_yield(2): the turn or the slice is over. */
bool BPF_STRUCT_OPS(microquanta_yield, struct task_struct *from, struct task_struct *to)
{
	struct cpu_ctx *cctx = get_cpu_ctx(scx_bpf_task_cpu(from));
	struct task_ctx *tctx = get_task_ctx(from);

	if (to || !cctx || !tctx)
		return false;
	if (cctx->occupant == QUANTA)
		cctx->turn_end = bpf_ktime_get_ns();
	else
		tctx->slice_left = 0;
	scx_bpf_task_set_slice(from, 0);
	return true;
}

void BPF_STRUCT_OPS(microquanta_enable, struct task_struct *p)
{
	struct task_ctx *tctx = get_task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	if (!tctx || !cctx)
		return;
	tctx->home = cpu;
	/* After those that wait: who starts one child after the other gets no more for it. */
	scx_bpf_task_set_dsq_vtime(
		p, cctx->vtime + scale_by_task_weight_inverse(p, rest_slice_ns));
}

s32 BPF_STRUCT_OPS(microquanta_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -ENOMEM;
	return 0;
}

void BPF_STRUCT_OPS(microquanta_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tctx = get_task_ctx(p);

	if (tctx)
		count_quanta_task(tctx, false);
}

static void reset_cpu(s32 cpu, bool online)
{
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	if (!cctx)
		return;
	cctx->online = online;
	cctx->occupant = NOBODY;
	cctx->contended = false;
	cctx->credit_ns = 0;
	cctx->throttled_at = 0;
	cctx->timer_at = 0;
	cctx->period_start = bpf_ktime_get_ns();
}

/* Having these two tells the kernel that the set of CPUs may change. */
void BPF_STRUCT_OPS(microquanta_cpu_online, s32 cpu)
{
	reset_cpu(cpu, true);
}

static void move_to_local(s32 cpu, u64 dsq)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq, 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
}

/*
 * The kernel moves what it finds in the local queue to other CPUs, and waits until
 * nothing is left. Linux 6.12 no longer looks into the others, also for tasks that may
 * run nowhere else.
 */
void BPF_STRUCT_OPS(microquanta_cpu_offline, s32 cpu)
{
	reset_cpu(cpu, false);
	move_to_local(cpu, quanta_dsq(cpu));
	move_to_local(cpu, paused_dsq(cpu));
	move_to_local(cpu, rest_dsq(cpu));
}

/*
 * A real-time or deadline task takes the CPU: what was about to run there is queued
 * again. The first is how kernels before 6.19 tell, the second how later ones may be
 * asked; user space leaves out the other one.
 */
void BPF_STRUCT_OPS(microquanta_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(microquanta_sched_switch, bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	if (next->prio < MAX_RT_PRIO && prev->prio >= MAX_RT_PRIO)
		scx_bpf_reenqueue_local_from_anywhere();
	return 0;
}

void BPF_STRUCT_OPS(microquanta_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct cpu_ctx *cctx = get_cpu_ctx(cpu);

	if (!cctx || idle)
		return;
	scx_bpf_dump("microquanta: occupant=%d contended=%d credit=%lld quanta=%d paused=%d",
		     cctx->occupant, cctx->contended, cctx->credit_ns,
		     scx_bpf_dsq_nr_queued(quanta_dsq(cpu)),
		     scx_bpf_dsq_nr_queued(paused_dsq(cpu)));
	scx_bpf_dump("microquanta: rest=%d weight=%lld vtime=%llu",
		     scx_bpf_dsq_nr_queued(rest_dsq(cpu)), cctx->weight, cctx->vtime);
}

static s32 create_dsq(u64 id)
{
	s32 err = scx_bpf_create_dsq(id, -1);

	if (err)
		scx_bpf_error("queue %llx could not be created: %d", id, err);
	return err;
}

static s32 init_timer(s32 cpu)
{
	struct decide_timer *timer;
	u32 key = cpu;

	timer = bpf_map_lookup_elem(&cpu_timers, &key);
	if (!timer)
		return -ESRCH;
	bpf_timer_init(&timer->timer, &cpu_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&timer->timer, on_timer);
}

static s32 init_cpu(s32 cpu, const struct cpumask *online)
{
	s32 err;

	reset_cpu(cpu, bpf_cpumask_test_cpu(cpu, online));
	err = create_dsq(quanta_dsq(cpu));
	if (!err)
		err = create_dsq(paused_dsq(cpu));
	if (!err)
		err = create_dsq(rest_dsq(cpu));
	if (!err)
		err = init_timer(cpu);
	return err;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(microquanta_init)
{
	const struct cpumask *online;
	s32 i, err = 0;

	nr_cpu_ids = scx_bpf_nr_cpu_ids();
	if (nr_cpu_ids > MAX_CPUS) {
		scx_bpf_error("more than %d CPUs", MAX_CPUS);
		return -EINVAL;
	}
	online = scx_bpf_get_online_cpumask();
	bpf_for(i, 0, nr_cpu_ids) {
		err = init_cpu(i, online);
		if (err)
			break;
	}
	scx_bpf_put_cpumask(online);
	return err;
}

void BPF_STRUCT_OPS(microquanta_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(microquanta_ops,
	       .select_cpu	= (void *)microquanta_select_cpu,
	       .enqueue		= (void *)microquanta_enqueue,
	       .dispatch	= (void *)microquanta_dispatch,
	       .runnable	= (void *)microquanta_runnable,
	       .running		= (void *)microquanta_running,
	       .stopping	= (void *)microquanta_stopping,
	       .quiescent	= (void *)microquanta_quiescent,
	       .yield		= (void *)microquanta_yield,
	       .enable		= (void *)microquanta_enable,
	       .init_task	= (void *)microquanta_init_task,
	       .exit_task	= (void *)microquanta_exit_task,
	       .cpu_online	= (void *)microquanta_cpu_online,
	       .cpu_offline	= (void *)microquanta_cpu_offline,
	       .cpu_release	= (void *)microquanta_cpu_release,
	       .dump_cpu	= (void *)microquanta_dump_cpu,
	       .init		= (void *)microquanta_init,
	       .exit		= (void *)microquanta_exit,
	       .timeout_ms	= 5000,
	       .name		= "microquanta");
