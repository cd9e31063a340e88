/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time from a task's becoming runnable to its being given a CPU: from
 * sched_wakeup, or from the sched_switch that took its CPU away, to the
 * sched_switch that gives it one (include/trace/events/sched.h). This is what
 * runqlat(8) of bcc calls run queue latency; here for the processes of roles, and
 * counted on the CPU where the wait ended.
 */
#include "kernel_types.h"

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_ANY = 0,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

struct task_struct {
	s32 pid;
	s32 tgid;
	unsigned int __state;
} __attribute__((preserve_access_index));

/* Before 5.14, commit 2f064a59a11f. */
struct task_struct___before {
	volatile long state;
} __attribute__((preserve_access_index));

/* By process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} roles SEC(".maps");

/* By thread: since when it is runnable without a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u64);
} waiting SEC(".maps");

/* By role and slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_ROLES * SLOTS);
	__type(key, u32);
	__type(value, u64);
} waits SEC(".maps");

/* Tasks and processes for which a map had no room. */
u64 lost SEC(".data.lost") = 0;

static u32 slot_of(u64 ns)
{
	u32 shift = 0;

	if (ns < SUB)
		return ns;
	if (ns >> (SLOTS / SUB + SUB_BITS - 1))
		return SLOTS - 1;
	/* As far as SUB_BITS + 1 bits are left. */
	for (u32 step = 32; step; step /= 2)
		if (ns >> (shift + step) >= SUB)
			shift += step;
	return (shift + 1) * SUB + (ns >> shift) % SUB;
}

static void begin_wait(u32 pid, u32 tgid)
{
	u8 *role = bpf_map_lookup_elem(&roles, &tgid);
	u64 now;

	if (!role || *role & ROLE_OF_CHILDREN)
		return;
	now = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waiting, &pid, &now, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
}

static void end_wait(u32 pid, u32 tgid)
{
	u64 *since = bpf_map_lookup_elem(&waiting, &pid);
	u64 *count, waited;
	u32 key;
	u8 *role;

	if (!since)
		return;
	waited = bpf_ktime_get_ns() - *since;
	bpf_map_delete_elem(&waiting, &pid);
	/* The clock may step back by a little from one CPU to another. */
	if ((__s64)waited < 0)
		return;
	role = bpf_map_lookup_elem(&roles, &tgid);
	if (!role)
		return;
	key = (*role & (MAX_ROLES - 1)) * SLOTS + slot_of(waited);
	count = bpf_map_lookup_elem(&waits, &key);
	if (count)
		*count += 1;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	begin_wait(p->pid, p->tgid);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	begin_wait(p->pid, p->tgid);
	return 0;
}

static bool is_runnable(struct task_struct *p)
{
	if (bpf_core_field_exists(p->__state))
		return p->__state == 0;
	return BPF_CORE_READ((struct task_struct___before *)p, state) == 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	if (preempted || is_runnable(prev))
		begin_wait(prev->pid, prev->tgid);
	end_wait(next->pid, next->tgid);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = parent->tgid, to = child->tgid;
	u8 *found, role;

	if (from == to)
		return 0;
	found = bpf_map_lookup_elem(&roles, &from);
	if (!found)
		return 0;
	role = *found & ~ROLE_OF_CHILDREN;
	if (bpf_map_update_elem(&roles, &to, &role, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	u32 pid = p->pid;

	bpf_map_delete_elem(&waiting, &pid);
	return 0;
}

/* A process is over when its leader is freed; its number is used again. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *p)
{
	u32 tgid = p->tgid;

	if (p->pid == p->tgid)
		bpf_map_delete_elem(&roles, &tgid);
	return 0;
}
