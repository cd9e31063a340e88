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
 * rest_dsq(llc)    all other tasks that wait, by weighted virtual time
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
#include <scx/common.bpf.h>
#include "intf.h"

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	(1000ULL * NSEC_PER_USEC)

#define MIN(a, b)	((a) < (b) ? (a) : (b))
#define MAX(a, b)	((a) > (b) ? (a) : (b))
#define CLAMP(v, low, high)	MIN(MAX(v, low), high)

long bpf_task_under_cgroup(struct task_struct *p, struct cgroup *ancestor) __ksym;

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* Longest slice of a task that does not share its CPU, or not yet. */
#define SLICE_NS		(20ULL * NSEC_PER_MSEC)

/*
 * Micro-quanta tasks that share a CPU with each other take turns of runtime_ns,
 * but not shorter than the first, below which switching costs more than it
 * brings, and not longer than the second, so that many of them still take turns
 * when the runtime is long.
 */
#define MIN_TURN_NS		(50ULL * NSEC_PER_USEC)
#define MAX_TURN_NS		(5ULL * NSEC_PER_MSEC)

/*
 * For so long after a name or a cgroup changed, the rules are asked each time:
 * the kernel tells of a new name just before it is there.
 */
#define CHANGING_NS		(1ULL * NSEC_PER_MSEC)

/*
 * A decision holds for this long at least. With the shortest periods a CPU would
 * otherwise do nothing but decide, and the tasks would not get on.
 */
#define MIN_DELAY_NS		(5ULL * NSEC_PER_USEC)

/*
 * When micro-quanta tasks started without credit, because nobody else seemed to
 * wait, and somebody does: look again after this.
 */
#define RETRY_NS		(50ULL * NSEC_PER_USEC)

/* Tasks in a queue that may not run on the CPU that asks. */
#define MAX_IN_THE_WAY		16

/* Credit stays within this many periods' worth of runtime. */
#define CREDIT_PERIODS		2

/* Slice of the other tasks. */
const volatile u64 rest_slice_ns = 3ULL * NSEC_PER_MSEC;

/* A task is a micro-quanta task when any of these matches. */
const volatile u32 nr_rules;
const volatile struct rule rules[MAX_RULES];

/* Topology: index of the last-level cache of each CPU. */
const volatile u32 nr_llcs = 1;
const volatile u32 cpu_llc[MAX_CPUS];

/*
 * Parameters may change at any time: user space writes the set that is not in
 * use and then its index.
 */
struct quanta_params params[2];
volatile u32 params_in_use;

/* When the answer of more tasks than one to the rules may last have changed. */
static volatile u64 changed_at;

/* User space grows it to begin a new interval for the worst wait. */
volatile u64 wait_epoch;

/* How many tasks there are that a rule matches. */
volatile u64 nr_quanta_tasks;

static u64 vtime_now;
static u64 nr_cpu_ids;

enum occupant {
	NOBODY = 0,	/* idle, or a task of another scheduling class */
	REST,
	QUANTA,
};

struct cpu_ctx {
	s64	credit_ns;
	u64	period_start;	/* of the period to which credit_ns belongs */
	u64	charged_at;	/* the running task is charged up to here */
	u64	turn_end;	/* of the running micro-quanta task */
	u64	throttled_at;	/* since then micro-quanta tasks wait for a boundary; or 0 */
	u64	timer_at;	/* what the timer is set to; 0 when it is not needed */
	u32	occupant;
	bool	contended;	/* others wait while a micro-quanta task runs */
	bool	online;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_ctx);
} cpu_ctxs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_stats);
} cpu_stats_map SEC(".maps");

struct decide_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct decide_timer);
} cpu_timers SEC(".maps");

struct task_ctx {
	u64	classified_at;	/* when is_quanta was found; 0: never */
	u64	renamed_at;
	u64	woken_at;	/* waits since this wakeup; 0 when it does not */
	u64	charged_at;	/* of another task that runs: charged up to here */
	s64	slice_left;	/* of another task */
	bool	is_quanta;
	bool	paused;		/* to be queued where it was interrupted */
	bool	requeued;	/* was running until now */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static u64 quanta_dsq(s32 cpu)
{
	return 0x10000 + cpu;
}

static u64 paused_dsq(s32 cpu)
{
	return 0x20000 + cpu;
}

static u64 rest_dsq(u32 llc)
{
	return 0x30000 + llc;
}

static u32 llc_of(s32 cpu)
{
	const volatile u32 *llc = MEMBER_VPTR(cpu_llc, [cpu]);

	return llc ? *llc : 0;
}

static struct cpu_ctx *get_cpu_ctx(s32 cpu)
{
	u32 zero = 0;

	return bpf_map_lookup_percpu_elem(&cpu_ctxs, &zero, cpu);
}

static struct cpu_stats *get_stats(s32 cpu)
{
	u32 zero = 0;

	return bpf_map_lookup_percpu_elem(&cpu_stats_map, &zero, cpu);
}

static struct task_ctx *get_task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

static struct quanta_params *get_params(void)
{
	return &params[params_in_use & 1];
}

static u64 turn_ns(void)
{
	return CLAMP(get_params()->runtime_ns, MIN_TURN_NS, MAX_TURN_NS);
}

static bool is_queued(const struct task_struct *p)
{
	return p->scx.flags & SCX_TASK_QUEUED;
}

/*
 * ---- Which tasks ----
 */

static bool has_name(const volatile struct rule *rule, const char *name)
{
	u32 i;

	bpf_for(i, 0, NAME_LEN) {
		if (i >= rule->len)
			return true;
		if (rule->name[i] != name[i])
			return false;
		if (!name[i])
			return true;
	}
	return true;
}

static bool is_in_cgroup(struct task_struct *p, u64 cgroup_id)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(cgroup_id);
	bool is_in;

	if (!cgroup)
		return false;
	is_in = bpf_task_under_cgroup(p, cgroup);
	bpf_cgroup_release(cgroup);
	return is_in;
}

static bool matches(struct task_struct *p, const volatile struct rule *rule)
{
	char name[NAME_LEN] = {};

	switch (rule->kind) {
	case RULE_CGROUP:
		return is_in_cgroup(p, rule->cgroup_id);
	case RULE_PROCESS:
		bpf_probe_read_kernel_str(name, sizeof(name), p->group_leader->comm);
		return has_name(rule, name);
	case RULE_THREAD:
		bpf_probe_read_kernel_str(name, sizeof(name), p->comm);
		return has_name(rule, name);
	}
	return false;
}

static bool matches_any(struct task_struct *p)
{
	u32 i;

	bpf_for(i, 0, MIN(nr_rules, MAX_RULES)) {
		const volatile struct rule *rule = MEMBER_VPTR(rules, [i]);

		if (rule && matches(p, rule))
			return true;
	}
	return false;
}

static void count_quanta_task(struct task_ctx *tctx, bool is_quanta)
{
	if (tctx->is_quanta == is_quanta)
		return;
	tctx->is_quanta = is_quanta;
	if (is_quanta)
		__sync_fetch_and_add(&nr_quanta_tasks, 1);
	else
		__sync_fetch_and_sub(&nr_quanta_tasks, 1);
}

/* Ask the rules again if the answer may have changed since the last time. */
static bool classify(struct task_struct *p, struct task_ctx *tctx)
{
	u64 changed = changed_at;

	if (time_before(changed, tctx->renamed_at))
		changed = tctx->renamed_at;
	if (!tctx->classified_at || time_before(tctx->classified_at, changed + CHANGING_NS)) {
		tctx->classified_at = bpf_ktime_get_ns();
		count_quanta_task(tctx, matches_any(p));
	}
	return tctx->is_quanta;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *p, const char *name)
{
	struct task_ctx *tctx = get_task_ctx(p);
	u64 now = bpf_ktime_get_ns();

	if (tctx)
		tctx->renamed_at = now;
	/* The name of a leader counts for its whole thread group. */
	if (p->pid == p->tgid)
		changed_at = now;
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach)
{
	changed_at = bpf_ktime_get_ns();
	return 0;
}

/*
 * ---- Accounts ----
 */

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
	       scx_bpf_dsq_nr_queued(rest_dsq(llc_of(cpu))) > 0;
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
 * @p waits and may get the CPU that a micro-quanta task has for itself: make one
 * such CPU decide again, @cpu if it is one.
 */
static void contend(struct task_struct *p, s32 cpu)
{
	s32 i;

	if (!nr_quanta_tasks)
		return;
	bpf_for(i, 0, nr_cpu_ids) {
		s32 other = (cpu + i) % nr_cpu_ids;

		if (is_uncontended(p, other)) {
			scx_bpf_kick_cpu(other, SCX_KICK_PREEMPT);
			return;
		}
	}
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

static void enqueue_quanta(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	s32 idle_cpu = pick_idle(p, cpu, 0);
	struct cpu_ctx *cctx;

	if (idle_cpu >= 0)
		cpu = idle_cpu;
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

/* An idle CPU looks for work, and will find @p. False when there is none. */
static bool wake_idle(struct task_struct *p, s32 cpu)
{
	s32 idle_cpu = pick_idle(p, cpu, 0);

	if (idle_cpu < 0)
		return false;
	scx_bpf_kick_cpu(idle_cpu, SCX_KICK_IDLE);
	return true;
}

static void enqueue_rest(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime, earliest = vtime_now - rest_slice_ns;

	/* Who slept does not come back with more than one slice of advance. */
	if (time_before(vtime, earliest))
		vtime = earliest;
	tctx->slice_left = rest_slice_ns;
	scx_bpf_dsq_insert_vtime(p, rest_dsq(llc_of(cpu)), rest_slice_ns, vtime, enq_flags);
	if (!wake_idle(p, cpu))
		contend(p, cpu);
}

static void enqueue_paused(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, paused_dsq(cpu), tctx->slice_left, enq_flags);
	wake_idle(p, cpu);
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
		cctx->occupant = QUANTA;
		cctx->turn_end = now + turn_ns();
	} else {
		cctx->occupant = REST;
		tctx->charged_at = now;
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

static bool move_rest(s32 cpu)
{
	u32 llc = llc_of(cpu), i;

	if (scx_bpf_dsq_move_to_local(paused_dsq(cpu), 0))
		return true;
	bpf_for(i, 0, MIN(nr_llcs, MAX_LLCS)) {
		if (scx_bpf_dsq_move_to_local(rest_dsq((llc + i) % MAX(nr_llcs, 1)), 0))
			return true;
	}
	return false;
}

/*
 * Does a waiting task that may run here come before one of this @vtime? When too
 * many are in the way to find out, say yes: then the queue itself decides.
 */
static bool comes_before(s32 cpu, u64 vtime)
{
	struct task_struct *p;
	u32 seen = 0;

	bpf_for_each(scx_dsq, p, rest_dsq(llc_of(cpu)), 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return time_before(p->scx.dsq_vtime, vtime);
		if (++seen == MAX_IN_THE_WAY)
			return true;
	}
	return false;
}

static void keep_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
		      struct task_ctx *prev_ctx, u64 now)
{
	if (prev_ctx->slice_left <= (s64)MIN_DELAY_NS)
		prev_ctx->slice_left = rest_slice_ns;
	scx_bpf_task_set_slice(prev, prev_ctx->slice_left);
	watch_rest(cpu, cctx, now);
}

/*
 * @prev was only asked to decide again and has slice left, or it is still the first
 * by virtual time. It is not in the queue, which so cannot tell.
 */
static bool goes_on(s32 cpu, struct task_struct *prev, struct task_ctx *prev_ctx)
{
	if (prev_ctx->slice_left > (s64)MIN_DELAY_NS)
		return true;
	return !scx_bpf_dsq_nr_queued(paused_dsq(cpu)) && !comes_before(cpu, prev->scx.dsq_vtime);
}

/* The others go first. False when none wants to run. */
static bool dispatch_rest(s32 cpu, struct cpu_ctx *cctx, struct task_struct *prev,
			  struct task_ctx *prev_ctx, u64 now)
{
	bool prev_is_rest = prev_ctx && cctx->occupant == REST;

	if (!(prev_is_rest && goes_on(cpu, prev, prev_ctx)) && move_rest(cpu))
		return true;
	if (prev_is_rest)
		keep_rest(cpu, cctx, prev, prev_ctx, now);
	return prev_is_rest;
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
		if (time_before(vtime_now, p->scx.dsq_vtime))
			vtime_now = p->scx.dsq_vtime;
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
	scx_bpf_task_set_dsq_vtime(p, vtime_now);
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
	*cctx = (struct cpu_ctx){ .online = online };
	cctx->period_start = bpf_ktime_get_ns();
}

/* Having these two tells the kernel that the set of CPUs may change. */
void BPF_STRUCT_OPS(microquanta_cpu_online, s32 cpu)
{
	reset_cpu(cpu, true);
}

/* What is queued there is moved by the kernel, which runs the CPU empty. */
void BPF_STRUCT_OPS(microquanta_cpu_offline, s32 cpu)
{
	reset_cpu(cpu, false);
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
	bpf_for(i, 0, MIN(nr_llcs, MAX_LLCS)) {
		err = create_dsq(rest_dsq(i));
		if (err)
			return err;
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
	       .yield		= (void *)microquanta_yield,
	       .enable		= (void *)microquanta_enable,
	       .init_task	= (void *)microquanta_init_task,
	       .exit_task	= (void *)microquanta_exit_task,
	       .cpu_online	= (void *)microquanta_cpu_online,
	       .cpu_offline	= (void *)microquanta_cpu_offline,
	       .dump_cpu	= (void *)microquanta_dump_cpu,
	       .init		= (void *)microquanta_init,
	       .exit		= (void *)microquanta_exit,
	       .timeout_ms	= 5000,
	       .name		= "microquanta");
