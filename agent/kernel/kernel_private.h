/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct kernel, for kernel*.c alone. */
#pragma once

#include "agent/kernel/apply_kernel.h"
#include "agent/kernel/kernel.h"
#include "lib/base/pass.h"
#include "lib/netlink/netlink.h"

struct kernel {
	struct kernel_options options;
	struct netlink *netlink; /* requests and dumps */
	struct netlink *events;  /* joined before the first dump */
	sd_event_source *source, *deliver;
	struct pass *pass;
	struct timer compare_timer, later_timer;
	struct kernel_view view;
	struct kernel_stats stats;
	uint32_t export_table; /* as of the last pass */
	bool open;             /* what is surplus may go */
	bool compared;
	bool working;       /* within a pass */
	bool reread;        /* the view must be read again before anything is decided */
	bool whole;         /* the pass under way compares everything that was read again */
	struct err trouble; /* of the last pass; "" if there was none */
};

/* --- kernel_read.c: the kernel -> view --- */

int kernel_join(struct kernel *k, struct err *err);
/* All that is waiting; what was lost makes for a new reading. Before anything is decided. */
void kernel_drain(struct kernel *k);
/* Everything. On failure the view and the need for it stay. */
int kernel_reread(struct kernel *k, struct err *err);
/* One link by its name: 0 with it in the view, -ENODEV, or another -errno: nobody knows. */
int kernel_read_link(struct kernel *k, struct kernel_view *view, const char *name, struct err *err);
/* All of one link's, into a view of its own; kernel_view_done() it in any case. */
int kernel_read_pod(struct kernel *k, const char *name, struct kernel_view *ret, struct err *err);
int kernel_read_gateways(struct kernel *k);

/* --- kernel_pass.c --- */

pass_fn kernel_pass;
