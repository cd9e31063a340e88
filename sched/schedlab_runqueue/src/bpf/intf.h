/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the BPF half and src/, which reads and writes these maps
 * as bytes.
 */
#ifndef __RUNQUEUE_INTF_H
#define __RUNQUEUE_INTF_H

/* Roles are numbers from 0; the value of a process in the map `roles`. */
#define MAX_ROLES 4
/* The process itself does not count, what it forks does. */
#define ROLE_OF_CHILDREN 0x80

/*
 * Waits in nanoseconds: below SUB each has a slot of its own, above that SUB slots
 * for each power of two, so a slot is at most 1/SUB of its value wide. Waits from
 * 2^42 ns (73 minutes) on are in the last slot.
 */
#define SUB_BITS 6
#define SUB (1 << SUB_BITS)
#define SLOTS (37 * SUB)

#endif
