/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the view, for kernel_view*.c alone. */
#pragma once

#include "agent/kernel/kernel_view.h"

/* The kernel does not hold it any more; it stays only if somebody might put it back. */
void kernel_view_lose_route(struct kernel_view *v, struct held_route *r);
void kernel_view_lose_neighbour(struct kernel_view *v, struct held_neighbour *n);
void kernel_view_end_conflict(struct kernel_view *v, struct held_route *r);
/* NULL: no memory. */
struct held_link *kernel_view_new_link(struct kernel_view *v, const struct klink *link);
/* For those who know it by its name it is gone. */
int kernel_view_rename_link(struct kernel_view *v, struct held_link *l, const char *to);
