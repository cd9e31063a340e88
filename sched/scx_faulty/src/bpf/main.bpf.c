/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One global queue, first in first out, until the fault.
 */
#include "kernel.h"
#include "intf.h"

char _license[] SEC("license") = "GPL";

const volatile struct config config SEC(".rodata.config") = {};
struct exit_record exit_record SEC(".data.exit") = {};
u64 attached_at;

static bool is_due(enum fault fault)
{
	return config.fault == fault &&
	       bpf_ktime_get_ns() - attached_at >= config.after_ns;
}

static void raise_error(void)
{
	static char message[] = "the error that was asked for";
	unsigned long long no_data = 0;

	scx_bpf_error_bstr(message, &no_data, 0);
}

/*
 * Every task goes through the queue: the kernel's own choice would hand a task
 * straight to an idle CPU, and a stalling scheduler would seem to work.
 */
SEC("struct_ops/faulty_select_cpu")
s32 BPF_PROG(faulty_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

SEC("struct_ops/faulty_enqueue")
void BPF_PROG(faulty_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* The watchdog will find p runnable and never run. */
	if (is_due(FAULT_STALL))
		return;
	if (is_due(FAULT_ERROR))
		raise_error();
	dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SEC("struct_ops.s/faulty_init")
s32 BPF_PROG(faulty_init)
{
	attached_at = bpf_ktime_get_ns();
	return 0;
}

SEC("struct_ops/faulty_exit")
void BPF_PROG(faulty_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_record.reason, REASON_LEN, info->reason);
	bpf_probe_read_kernel_str(exit_record.message, MESSAGE_LEN, info->msg);
	/* A swap, because it orders the texts before the kind. */
	__sync_val_compare_and_swap(&exit_record.kind, 0, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops faulty_ops = {
	.select_cpu	= (void *)faulty_select_cpu,
	.enqueue	= (void *)faulty_enqueue,
	.init		= (void *)faulty_init,
	.exit		= (void *)faulty_exit,
	.timeout_ms	= 1000,
	.name		= "faulty",
};
