/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the BPF half and the program that loads it.
 */
#ifndef __MICROQUANTA_INTF_H
#define __MICROQUANTA_INTF_H

#ifndef __VMLINUX_H__
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

enum consts {
	MAX_CPUS	= 1024,
	MAX_RULES	= 16,
	NAME_LEN	= 16,	/* TASK_COMM_LEN, with the terminating 0 */
};

/* Field of a task that a rule compares. */
enum rule_kind {
	RULE_CGROUP	= 0,	/* the task is in this cgroup (v2) or below it */
	RULE_PROCESS	= 1,	/* the name of the thread group's leader */
	RULE_THREAD	= 2,	/* the name of the thread */
};

/*
 * One way to be a micro-quanta task. A name matches when its first @len bytes
 * do; a whole name is compared with its terminating 0.
 */
struct rule {
	u32	kind;
	u32	len;
	u64	cgroup_id;
	char	name[NAME_LEN];
};

/*
 * On every CPU, micro-quanta tasks may take @runtime_ns of every @period_ns
 * from the others.
 */
struct quanta_params {
	u64	period_ns;
	u64	runtime_ns;
};

/* The longest wait that was recorded while @epoch was the current one. */
struct worst_wait {
	u64	epoch;
	u64	ns;
};

/*
 * Per CPU, since the scheduler was attached. Only u64, in this order: user
 * space reads it as an array of them.
 */
struct cpu_stats {
	u64	quanta_ns;	/* CPU time of micro-quanta tasks */
	u64	rest_ns;	/* CPU time of all other tasks */
	u64	throttled_ns;	/* time for which micro-quanta tasks waited for the next period */
	u64	nr_throttled;	/* how often they had to */
	u64	nr_wakeups;	/* waits of micro-quanta tasks that a wakeup began */
	struct worst_wait worst[2];	/* from a wakeup to running; by parity of the epoch */
};

#endif
