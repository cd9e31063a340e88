/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types and functions that this scheduler uses. Members are
 * found by name in the running kernel's BTF when the program is loaded, so the
 * layouts here need not be complete (include/linux/sched/ext.h,
 * kernel/sched/ext_internal.h).
 */
#ifndef __FAULTY_KERNEL_H
#define __FAULTY_KERNEL_H

#include "kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* With a member, because a forward declaration matches no kernel type. */
struct task_struct {
	s32 pid;
} __attribute__((preserve_access_index));

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
} __attribute__((preserve_access_index));

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 timeout_ms;
	char name[128];
};

#define SCX_DSQ_GLOBAL	((1ULL << 63) | 1)
#define SCX_SLICE_DFL	(20ULL * 1000 * 1000)

/*
 * scx_bpf_dsq_insert() has had its name since 6.13 (scx_bpf_dispatch() before)
 * and returns bool since 6.19. libbpf takes what follows "___" off a name and
 * compares the rest's type with the kernel's.
 */
bool scx_bpf_dsq_insert___v2(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_dispatch(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;

static __always_inline void dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2))
		scx_bpf_dsq_insert___v2(p, dsq, slice, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___v1))
		scx_bpf_dsq_insert___v1(p, dsq, slice, flags);
	else
		scx_bpf_dispatch(p, dsq, slice, flags);
}

#endif
