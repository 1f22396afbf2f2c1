/* SPDX-License-Identifier: Apache-2.0 */
/* GC and STATUS: the agent's answer and the IPAM plugin's. */
#include "cni/ask.h"
#include "cni/giver.h"
#include "cni/verbs.h"

int roost_gc(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO(cni_attachments) struct cni_attachments valid = { 0 };
	struct cni_error other = { 0 };
	struct giver giver;
	int r, second;

	/* A list that is wrong is wrong for everybody. */
	r = cni_valid_read(&call->conf, &valid, e);
	if (r < 0)
		return r;
	r = ask_gc(call, &valid, e);
	second = giver_choose(call, &giver, &other) ?: giver_forward(&giver, call, &other);
	if (r == 0 && second < 0)
		*e = other;
	return r ?: second;
}

int roost_status(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	struct giver giver;
	int r = giver_choose(call, &giver, e);

	if (r == 0)
		r = ask_ready(call, e);
	if (r == 0)
		r = giver_forward(&giver, call, e);
	if (r < 0 && e->code != CNI_CODE_IMPAIRED)
		e->code = CNI_CODE_UNAVAILABLE;
	return r;
}
