/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each static route is, read back from the kernel.
 *
 *   static_decide, kernel_view -> [static_status] -> kernel_desired; JSON -> static_report
 *
 * Pure; the time is given. Applied is what the kernel holds. A route that somebody took away is
 * put back by the kernel's part; where the record says just to report it, what is there instead
 * is left.
 */
#pragma once

#include "agent/kernel/kernel_view.h"
#include "agent/static/static_entries.h"

/* Before the kernel is compared: whether somebody has taken a route that is only reported. */
void static_watch(struct static_entries *t, const struct kernel_view *view, const char *now);

/*
 * All that is to be in the kernel. What is kept of a record that cannot be read, or left as
 * somebody has made it, is in it as it is held; so are strays, which lose those that somebody
 * removed or that have a record now. free() ret.
 */
int static_routes_wanted(const struct static_entries *t, const struct kernel_view *view,
			 struct kroute *strays, size_t *n_strays, struct kroute **ret,
			 size_t *ret_n);
/* All static routes of ours that the kernel holds; free() ret. */
int static_held(const struct kernel_view *view, struct kroute **ret, size_t *ret_n);

/* After a pass: what is so now. Sets status of each. 0 or -ENOMEM. */
int static_status(struct static_entries *t, const struct kernel_view *view, const char *node,
		  const char *now);
/* The kernel's part has put it back. */
void static_restored(struct static_entries *t, const struct kroute *route, const char *now);
/* What our own status said in a former life; text NULL: there was none. */
void static_remember(struct static_entry *e, const char *key, const char *text, size_t len);

struct static_counts static_count(const struct static_entries *t);
