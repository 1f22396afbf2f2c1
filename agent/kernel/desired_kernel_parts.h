/* SPDX-License-Identifier: Apache-2.0 */
/* What is being made, for desired_*.c of the kernel alone. */
#pragma once

#include "agent/kernel/desired_kernel.h"

struct making {
	struct desired d;
	const struct kernel_desired *state;
	const struct kernel_view *view;
	const struct prefixes *protect;
	struct prefix *singles; /* blocks of one address, sorted */
	size_t n_singles;
	struct prefix *own;        /* all blocks of ours, sorted */
	struct address *underlays; /* where other nodes' tunnels end, sorted */
	size_t n_underlays;
	struct desired_link *tunnel_links[2];
};

int by_prefix(const void *a, const void *b);
/* Whether a route for all of the block would take away what the node itself needs: then why. */
bool covers_own(const struct making *m, const struct prefix *block, char *why, size_t size);
int refuse(struct making *m, const struct refused_block *refused);

/* --- desired_tunnel.c: the overlay --- */

/* Before pods and blocks: links are found by it. */
void add_tunnels(struct making *m);
int add_remotes(struct making *m);
