/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The veth pair, from the node's namespace.
 *
 *   ADD -> [veth_make] -> one message; DEL without an agent, roll-back -> [veth_remove]
 *
 * Made in one message with the pod's end already in its namespace and under its name: moving a
 * device costs twenty times what making it costs. One queue each, for the kernel waits for all
 * CPUs before it has set up more.
 */
#pragma once

#include "cni/netns.h"
#include "cni/sandbox.h"

/*
 * A link of that name that is being destroyed is waited for until the deadline; one whose pod is
 * gone is removed. Negative with e filled, and then there is no link of this call.
 */
int veth_make(struct netlink *host, const struct netns *netns, const struct sandbox *pod,
	      const struct deadline *deadline, struct cni_error *e);

/* Whether an interface of the pod is one whose pair is being destroyed, or is gone by now. */
bool veth_is_going(struct netlink *host, struct netlink *inside, int index);
/* Between two looks at what is being destroyed. */
void veth_rest(void);

/* 0 also if there is none; the pod's end goes with it, and every route through either. */
int veth_remove(struct netlink *host, const char *name, struct err *err);
