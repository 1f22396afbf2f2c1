/* SPDX-License-Identifier: Apache-2.0 */
/* For delta_*.c of the kernel alone. */
#pragma once

#include "agent/kernel/delta_kernel.h"

/* 0 or -ENOMEM. */
int add_change(struct changes *c, const struct change *change);
/* Whether somebody fights over it and it is not due yet; h may be NULL. */
bool put_off(const struct holding *h, uint64_t now, struct changes *c);

/* --- delta_pair.c --- */

/* What the view has under the keys of what should be: at the same places, NULL where nothing. */
struct paired {
	const struct desired *desired;
	const struct held_route **routes; /* the first of its key */
	const struct held_neighbour **neighbours;
};
/* 0 or -ENOMEM; release with paired_done() in any case. */
int pair_held(const struct desired *d, const struct kernel_view *view, struct paired *ret);
void paired_done(struct paired *p);

/* --- delta_tunnel.c: the overlay's devices --- */

int missing_tunnels(const struct desired *d, const struct kernel_view *view, uint64_t now,
		    struct changes *ret);
int missing_addresses(const struct desired *d, const struct kernel_view *view, uint64_t now,
		      struct changes *ret);
/* Devices and addresses on them. */
int surplus_tunnels(const struct desired *d, const struct kernel_view *view, struct changes *ret);
/* Whether this link is to go, and all that is on it with it. */
bool tunnel_goes(const struct desired *d, const struct held_link *l);
void confirm_tunnels(const struct desired *d, struct kernel_view *view);
void print_tunnel(const struct change *c, char text[CHANGE_TEXT]);
