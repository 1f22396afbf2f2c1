/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "ipam/plugin.h"
#include "lib/cni_away.h"
#include "lib/local_client.h"

static void explain_silence(const struct cni_call *call, int r, unsigned deadline_ms,
			    const struct err *why, struct cni_error *e)
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
		cni_fail(e, CNI_CODE_TRY_AGAIN, "the roost agent on %s did not answer within %u ms",
			 socket, deadline_ms);
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
		cni_fail(e, (unsigned)code, "%s", text);
	else
		cni_fail(e, (unsigned)code, "the roost agent on %s refused with status %u",
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
		explain_silence(call, r, deadline_ms, &why, e);
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
