/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "ipam/plugin/plugin.h"
#include "lib/cni/cni_away.h"
#include "lib/cni/local_client.h"

/* What the agent was asked for, as a part of a sentence. */
static const char *step(const char *path)
{
	static const struct {
		const char *path, *words;
	} steps[] = {
		{ "/v1/ipam/assign", "give the pod its addresses" },
		{ "/v1/ipam/release", "take the pod's addresses back" },
		{ "/v1/attach", "route to the pod's link (it has its addresses and its link)" },
		{ "/v1/detach", "take the pod out of routing" },
		{ "/v1/node", "tell the MTU of this node" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (strcmp(path, steps[i].path) == 0)
			return steps[i].words;
	return "answer";
}

#define SLOW                                                                                       \
	"it or this machine may lack CPU time: see the agent's CPU request or CPUWeight=, and "    \
	"roostctl status"

/* Never "within 0 ms": then it was not this step that took the time. */
static void explain_late(const struct cni_call *call, const char *path, unsigned deadline_ms,
			 struct cni_error *e)
{
	if (deadline_ms == 0)
		cni_fail(e, CNI_CODE_TRY_AGAIN,
			 "no time is left to ask the roost agent on %s to %s: the steps before it "
			 "took the whole %u ms of this call; " SLOW,
			 call->conf.socket, step(path), cni_time_ms(call->env.verb));
	else
		cni_fail(e, CNI_CODE_TRY_AGAIN,
			 "the roost agent on %s did not %s within %u ms of the %u ms of this "
			 "call; " SLOW,
			 call->conf.socket, step(path), deadline_ms, cni_time_ms(call->env.verb));
}

static void explain_silence(const struct cni_call *call, const char *path, int r,
			    unsigned deadline_ms, const struct err *why, struct cni_error *e)
{
	const char *socket = call->conf.socket;

	switch (r) {
	case -ENOTCONN:
		cni_fail(e, CNI_CODE_TRY_AGAIN,
			 "the roost agent is not running: nobody listens on %s; start roostd, or "
			 "set \"socket\" in the CNI configuration if it listens elsewhere",
			 socket);
		break;
	case -ETIMEDOUT:
		explain_late(call, path, deadline_ms, e);
		break;
	case -ECONNRESET:
		cni_fail(e, CNI_CODE_TRY_AGAIN,
			 "the roost agent on %s went away before it had answered", socket);
		break;
	case -EBADMSG:
		cni_fail(e, CNI_CODE_IO, "the answer from %s is not that of a roost agent", socket);
		break;
	case -EINVAL:
		cni_fail(e, CNI_CODE_CONFIG, "field \"socket\": %s", why->text);
		break;
	default:
		cni_fail(e, CNI_CODE_IO, "cannot ask the roost agent on %s", socket);
	}
	cni_details(e, "%s", why->text);
}

/* An answer that is an error, with a body as docs/API.md has it or without. */
static int explain_refusal(const struct cni_call *call, unsigned status, struct json_object *reply,
			   struct cni_error *e)
{
	struct json_at root = json_root(reply, NULL);
	const char *text = NULL, *details = "";
	int64_t code = status >= 500 ? CNI_CODE_TRY_AGAIN : CNI_CODE_IO;

	json_read_integer(json_member(&root, "code"), 1, UINT32_MAX, &code);
	json_read_text(json_member(&root, "error"), JSON_STRING_MAX, &text);
	json_read_text(json_member(&root, "details"), JSON_STRING_MAX, &details);
	if (text && *text)
		cni_fail(e, (enum cni_code)code, "%s", text);
	else
		cni_fail(e, (enum cni_code)code, "the roost agent on %s refused with status %u",
			 call->conf.socket, status);
	cni_details(e, "%s", details);
	return status >= 500 ? -EAGAIN : -EINVAL;
}

int plugin_ask(const struct cni_call *call, const char *method, const char *path, const char *body,
	       const struct deadline *deadline, struct json_object **ret, struct cni_error *e)
{
	const unsigned deadline_ms = deadline_left(deadline);
	AUTO(json_put) struct json_object *reply = NULL;
	struct err why = { "" };
	unsigned status = 0;
	int r = local_call(call->conf.socket, method, path, body, deadline_ms, &status, &reply,
			   &why);

	if (r == 0 && status == 200 && !reply)
		r = err_set(&why, -EBADMSG, "an answer without a body");
	if (r < 0) {
		explain_silence(call, path, r, deadline_ms, &why, e);
		return r;
	}
	if (status != 200)
		return explain_refusal(call, status, reply, e);
	*ret = TAKE(reply);
	return 0;
}

int plugin_ask_status(const struct cni_call *call, const char *path, struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	char full[1100];
	int r;

	/* A network's name has no character that a query would mind. */
	snprintf(full, sizeof(full), "%s?network=%s", path, call->conf.name);
	r = plugin_ask(call, "GET", full, NULL, &call->deadline, &reply, e);
	/* Any answer is a sign of life. */
	if (r != -ENOTCONN && r != -ETIMEDOUT && r != -ECONNRESET)
		cni_away_over(call->conf.socket);
	else if (cni_away_short(call->conf.socket))
		return 0;
	/* Whatever the reason, an ADD would fail now. */
	if (r < 0 && e->code != CNI_CODE_IMPAIRED)
		e->code = CNI_CODE_UNAVAILABLE;
	return r;
}
