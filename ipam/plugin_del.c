/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: it succeeds whatever happens, and what could not be done now is done by the agent later. */
#include "ipam/plugin.h"
#include "lib/cni_io.h"
#include "lib/cni_ipam.h"
#include "lib/cni_spool.h"
#include "lib/files.h"

static int ask(const struct cni_call *call, const char *body, unsigned deadline_ms)
{
	AUTO(json_put) struct json_object *reply = NULL;
	struct cni_error e = { 0 };
	int r = plugin_ask(call, "POST", "/v1/ipam/release", body, deadline_ms, &reply, &e);

	if (r < 0)
		cni_debug(call, false, "%s", e.msg.text);
	return r;
}

void plugin_release(const struct cni_call *call)
{
	struct deadline deadline = deadline_in(DEL_DEADLINE_MS);
	AUTO(free) char *body = NULL;
	AUTO(close) int spool = -1;
	char note[CNI_NOTE_NAME];
	struct err why = { "" };
	unsigned left;

	if (cni_attachment_body(&call->conf, &call->env, NULL, &body) == 0 &&
	    ask(call, body, DEL_DEADLINE_MS) == 0)
		return;
	if (cni_spool_release(&call->conf, &call->env, &spool, note, &why) < 0) {
		cni_complain(call,
			     "the address of %s/%s is not given back yet: %s; the agent will find "
			     "out by itself",
			     call->env.container, call->env.ifname, why.text);
		return;
	}
	/* An agent that came up meanwhile may have read the spool before the note was in it. */
	left = deadline_left(&deadline);
	if (body && left > 0 && ask(call, body, left) == 0)
		file_remove(spool, note);
}

int plugin_del(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	(void)ret_output;
	(void)e;
	plugin_release(call);
	return 0;
}
