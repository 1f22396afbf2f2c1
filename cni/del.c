/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DEL: out of routing, the link away, the address back, in this order, whatever is missing.
 *
 * Neither the namespace nor a prevResult is looked at: the pod's end goes with the host's,
 * whose name is known. Only what another IPAM plugin says can make it fail.
 */
#include "cni/ask.h"
#include "cni/giver.h"
#include "cni/verbs.h"

int roost_del(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	struct giver giver;

	ask_detach(call, &call->deadline);
	/* A network that names none cannot have been given addresses by it. */
	if (!*call->conf.ipam_type)
		return 0;
	return giver_choose(call, &giver, e) ?: giver_forward(&giver, call, e);
}
