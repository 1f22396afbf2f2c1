/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: it succeeds whatever happens, and what could not be done now is done by the agent later. */
#include "ipam/plugin/plugin.h"
#include "lib/base/files.h"
#include "lib/cni/cni_ipam.h"
#include "lib/cni/cni_spool.h"

static int ask(const struct cni_call *call, const char *body, const struct deadline *deadline)
{
	AUTO(json_put) struct json_object *reply = NULL;
	struct cni_error e = { 0 };
	int r = plugin_ask(call, "POST", "/v1/ipam/release", body, deadline, &reply, &e);

	if (r < 0)
		cni_debug(call, false, "%s", e.msg.text);
	return r;
}

void plugin_release(const struct cni_call *call, const struct deadline *deadline)
{
	/* Not all of it: the note must be written, and the agent asked again. */
	const struct deadline first = deadline_in(deadline_left(deadline) / 4 * 3);
	AUTO(free) char *body = NULL;
	AUTO(close) int spool = -1;
	char note[CNI_NOTE_NAME];
	struct err why = { "" };

	if (cni_attachment_body(&call->conf, &call->env, NULL, &body) == 0 &&
	    ask(call, body, &first) == 0)
		return;
	if (cni_spool_release(&call->conf, &call->env, &spool, note, &why) < 0) {
		cni_complain(call,
			     "the address of %s/%s is not given back yet: %s; the agent will find "
			     "out by itself",
			     call->env.container, call->env.ifname, why.text);
		return;
	}
	/* An agent that came up meanwhile may have read the spool before the note was in it. */
	if (body && ask(call, body, deadline) == 0)
		file_remove(spool, note);
}

int plugin_del(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	plugin_release(call, &call->deadline);
	return 0;
}
