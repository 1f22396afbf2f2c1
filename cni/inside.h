/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod's side of its link: addresses, routes, the neighbour behind which the node is.
 *
 *   ADD -> [inside_make] -> one batch over a netlink socket in the pod
 *   CHECK -> [inside_check] -> the same, read back
 *
 * The gateway is a permanent neighbour, so nothing is ever asked for on the wire. A
 * further interface finds the pod's routes taken: it gets a table of its own and a rule for
 * its addresses, so that answers leave where the question came in.
 */
#pragma once

#include "cni/netns.h"
#include "cni/sandbox.h"

/*
 * 0 if the pod has no such interface; else CNI_CODE_ATTACHED. One that a DEL has left to be
 * destroyed is waited for until the deadline.
 */
int inside_is_free(struct netlink *host, struct netlink *inside, const struct cni_call *call,
		   struct cni_error *e);

/* The link is there and down. Negative with e filled. */
int inside_make(struct netlink *inside, const struct netns *netns, const struct sandbox *pod,
		struct cni_error *e);
/* Takes away what does not go with the link, if it is there. */
void inside_unmake(struct netlink *inside, const struct sandbox *pod);

/* All of pod as it was made is still there; what others added does not matter. */
int inside_check(struct netlink *inside, const struct sandbox *pod, struct cni_error *e);

/* The interface's number, or -errno; -ENODEV: none of that name. */
int inside_index(struct netlink *inside, const char *ifname);

/* Where a further interface has its routes. */
static inline uint32_t inside_table(int index)
{
	return 100U + (uint32_t)index;
}
