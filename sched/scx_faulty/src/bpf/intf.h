/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the BPF half and src/main.rs, which reads and writes
 * these structures as bytes.
 */
#ifndef __FAULTY_INTF_H
#define __FAULTY_INTF_H

enum fault {
	FAULT_NONE = 0,		/* schedule as the kernel's built-in FIFO does */
	FAULT_STALL = 1,	/* forget every task that is enqueued */
	FAULT_ERROR = 2,	/* call scx_bpf_error() */
};

/* In the map .rodata.config; written before the program is loaded. */
struct config {
	unsigned int fault;
	unsigned int reserved;
	unsigned long long after_ns;	/* from attaching to the fault */
};

#define REASON_LEN 128
#define MESSAGE_LEN 1024

/* In the map .data.exit; kind is written last, and is 0 until then. */
struct exit_record {
	int kind;			/* enum scx_exit_kind */
	char reason[REASON_LEN];
	char message[MESSAGE_LEN];
};

#endif
