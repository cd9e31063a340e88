/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks are micro-quanta tasks: the rules, and when they are asked again.
 */
#ifndef __MICROQUANTA_CHOICE_H
#define __MICROQUANTA_CHOICE_H

#include "state.bpf.h"

long bpf_task_under_cgroup(struct task_struct *p, struct cgroup *ancestor) __ksym;

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

#endif
