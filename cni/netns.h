/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod's network namespace: found, checked, visited.
 *
 * Most of the work there needs no visit: a netlink socket stays in the namespace in
 * which it was made, whoever holds it. Only settings under /proc/sys follow the thread.
 */
#pragma once

#include "lib/cni/cni_error.h"
#include "lib/netlink/netlink.h"

struct netns {
	int fd, home; /* -1: none */
};
#define NETNS_NONE ((struct netns){ -1, -1 })

/*
 * 0, or CNI_CODE_NETNS: nothing there, not a network namespace, or the very one that this program
 * runs in, which only CNI_NETNS_OVERRIDE allows.
 */
int netns_open(const char *path, bool may_be_ours, struct netns *ret, struct cni_error *e);
void netns_close(struct netns *n);

/* A netlink socket in there; the thread itself is home again. 0 or -errno. */
int netns_netlink(const struct netns *n, struct netlink **ret);

/* There and back; each 0 or -errno. */
int netns_enter(const struct netns *n);
int netns_leave(const struct netns *n);
