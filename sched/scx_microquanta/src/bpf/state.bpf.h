/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants, parameters, what is kept of CPUs and tasks, and the names of queues.
 */
#ifndef __MICROQUANTA_STATE_H
#define __MICROQUANTA_STATE_H

#include <scx/common.bpf.h>
#include "intf.h"

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	(1000ULL * NSEC_PER_USEC)
#define NSEC_PER_SEC	(1000ULL * NSEC_PER_MSEC)

#define MIN(a, b)	((a) < (b) ? (a) : (b))
#define MAX(a, b)	((a) > (b) ? (a) : (b))
#define CLAMP(v, low, high)	MIN(MAX(v, low), high)

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

/* Priorities below are of real-time and deadline tasks (include/linux/sched/prio.h). */
#define MAX_RT_PRIO		100

/* Tasks in a queue that may not run on the CPU that asks. */
#define MAX_IN_THE_WAY		16

/*
 * Who of the others has waited for the first goes before them; who has is looked for
 * every so often, among so many that wait for a CPU.
 */
#define OVERDUE_NS		(2ULL * NSEC_PER_SEC)
#define OVERDUE_LOOK_NS		(100ULL * NSEC_PER_MSEC)
#define MAX_LOOKED_AT		1024

/* Beyond any virtual time that a task may have. */
#define NEVER_NS		(1ULL << 62)

/* Credit stays within this many periods' worth of runtime. */
#define CREDIT_PERIODS		2

/* Slice of the other tasks. */
const volatile u64 rest_slice_ns = 3ULL * NSEC_PER_MSEC;

/* A task is a micro-quanta task when any of these matches. */
const volatile u32 nr_rules;
const volatile struct rule rules[MAX_RULES];

/* Topology: the last-level cache of each CPU. */
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
	u64	vtime;		/* the least of the others that run or wait here; it never goes back */
	s64	weight;		/* the sum of those of the others that run or wait here */
	u64	evened_at;	/* when other CPUs were last asked for what they have more */
	u64	overdue_at;	/* when nobody was found who waits for too long */
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
	u64	queued_at;	/* of another task that waits: since when */
	s32	home;		/* the CPU whose virtual time its own belongs to */
	u32	weight;		/* what it adds to that CPU's; 0 when it neither runs nor waits */
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

static u64 rest_dsq(s32 cpu)
{
	return 0x30000 + cpu;
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

#endif
