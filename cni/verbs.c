/* SPDX-License-Identifier: Apache-2.0 */
/* DEL, GC and STATUS: the agent's part, and the IPAM plugin's. */
#include "cni/verbs.h"

#include "cni/ask.h"
#include "cni/ipam_plugin.h"

/*
 * Out of routing, the link away, the address back, in this order, whatever is missing. Neither the
 * namespace nor a prevResult is looked at: the pod's end goes with the host's, whose name is known.
 * Only what another IPAM plugin says can make it fail.
 */
int roost_del(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	struct ipam_plugin ipam;

	ask_detach(call, &call->deadline);
	/* A network that names none cannot have been given addresses by it. */
	if (!*call->conf.ipam_type)
		return 0;
	return ipam_plugin_choose(call, &ipam, e) ?: ipam_plugin_forward(&ipam, call, e);
}

int roost_gc(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO(cni_attachments) struct cni_attachments valid = { 0 };
	struct cni_error other = { 0 };
	struct ipam_plugin ipam;
	int r, second;

	/* A list that is wrong is wrong for everybody. */
	r = cni_valid_read(&call->conf, &valid, e);
	if (r < 0)
		return r;
	r = ask_gc(call, &valid, e);
	second = ipam_plugin_choose(call, &ipam, &other)
			 ?: ipam_plugin_forward(&ipam, call, &other);
	if (r == 0 && second < 0)
		*e = other;
	return r ?: second;
}

int roost_status(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	struct ipam_plugin ipam;
	int r = ipam_plugin_choose(call, &ipam, e);

	if (r == 0)
		r = plugin_ask_status(call, "/v1/ready", e);
	if (r == 0)
		r = ipam_plugin_forward(&ipam, call, e);
	if (r < 0 && e->code != CNI_CODE_IMPAIRED)
		e->code = CNI_CODE_UNAVAILABLE;
	return r;
}
