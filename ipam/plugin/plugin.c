/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/plugin/plugin.h"

#include <errno.h>
#include <string.h>

#include "lib/base/files.h"
#include "lib/cni/cni_assign.h"
#include "lib/cni/cni_away.h"
#include "lib/cni/cni_place.h"
#include "lib/cni/cni_spool.h"
#include "lib/cni/local_client.h"

/* --- one request ---------------------------------------------------------------------------- */

/* What the agent was asked for, as a part of a sentence. */
static const char *step(const char *path)
{
	static const struct {
		const char *path, *words;
	} steps[] = {
		{ "/v1/ipam/assign", "give the pod its addresses" },
		{ "/v1/ipam/release", "release the pod's addresses" },
		{ "/v1/attach", "route to the pod's link (it has its addresses and its link)" },
		{ "/v1/detach", "take the pod out of routing" },
		{ "/v1/node", "report the MTU of this node" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (strcmp(path, steps[i].path) == 0)
			return steps[i].words;
	return "answer";
}

#define SLOW                                                                                       \
	"it or this machine may lack CPU time: check the agent's CPU request or CPUWeight=, and "  \
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
			 "the roost agent is not running: nothing listens on %s; start roostd, or "
			 "set \"socket\" in the CNI configuration if it listens elsewhere",
			 socket);
		break;
	case -ETIMEDOUT:
		explain_late(call, path, deadline_ms, e);
		break;
	case -ECONNRESET:
		cni_fail(e, CNI_CODE_TRY_AGAIN,
			 "the roost agent on %s closed the connection before it replied", socket);
		break;
	case -EBADMSG:
		cni_fail(e, CNI_CODE_IO, "the reply on %s is not from a roost agent", socket);
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
	int r = cni_place_check(call->conf.socket, &why);

	if (r < 0)
		return cni_fail(e, CNI_CODE_CONFIG, "%s", why.text), r;
	r = local_call(call->conf.socket, method, path, body, deadline_ms, &status, &reply, &why);

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
	if (cni_place_check(call->conf.socket, NULL) <
	    0) /* nor is the note of an absence written */
		return plugin_ask(call, "GET", full, NULL, &call->deadline, &reply, e);
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

/* --- addresses given back ------------------------------------------------------------------- */

static int ask_release(const struct cni_call *call, const char *body,
		       const struct deadline *deadline)
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
	    ask_release(call, body, &first) == 0)
		return;
	if (cni_spool_release(&call->conf, &call->env, &spool, note, &why) < 0) {
		cni_complain(call,
			     "the address of %s/%s is not released yet: %s; the agent detects that "
			     "later",
			     call->env.container, call->env.ifname, why.text);
		return;
	}
	/* An agent that came up meanwhile may have read the spool before the note was in it. */
	if (body && ask_release(call, body, deadline) == 0)
		file_remove(spool, note);
}

/* --- ADD ------------------------------------------------------------------------------------ */

/*
 * A repeated ADD gets the same addresses. But if the interface already has them, the pod is alive,
 * and a main plugin that fails after us (the interface exists) would give a live pod's address
 * back. So this call fails, and having failed it is not rolled back.
 */
static int refuse_if_alive(const struct cni_call *call, const struct cni_result *result,
			   struct cni_error *e)
{
	AUTO(free) struct address *v = calloc(result->ips.n ?: 1, sizeof(*v));
	const struct cni_env *env = &call->env;
	char text[ADDRESS_TEXT];
	int r;

	if (!v)
		return cni_no_memory(e);
	for (size_t i = 0; i < result->ips.n; i++)
		v[i] = result->ips.v[i].address.address;
	r = cni_netns_carries(env->netns, env->ifname, v, result->ips.n);
	if (r == 0)
		return 0;
	if (r < 0) {
		cni_fail(e, CNI_CODE_IO, "cannot look into %s: %s", env->netns, strerror(-r));
		return r;
	}
	return cni_fail(e, CNI_CODE_ATTACHED,
			"%s in %s already carries the addresses of this attachment (%s): the pod "
			"is running and is left unchanged; DEL it before another ADD",
			env->ifname, env->netns, address_print(&v[0], text));
}

void plugin_given_done(struct plugin_given *given)
{
	cni_result_done(&given->result);
	json_put(given->reply);
	given->reply = NULL;
}

static int ask(const struct cni_call *call, const struct cni_want *want,
	       const struct cni_ipam *ipam, struct json_object **ret, struct cni_error *e)
{
	AUTO(free) char *body = NULL;
	int r;

	if (cni_ipam_is_static(ipam, want))
		return 0;
	r = cni_assign_body(&call->conf, &call->env, want, ipam, &body, e);
	if (r < 0)
		return r;
	return plugin_ask(call, "POST", "/v1/ipam/assign", body, &call->deadline, ret, e);
}

void plugin_undo(const struct cni_call *call, const struct plugin_given *given)
{
	const struct deadline deadline = deadline_in(CNI_UNDO_MS);

	if (given->reply && !given->existing)
		plugin_release(call, &deadline);
}

static int take_reply(const struct cni_call *call, struct cni_ipam *ipam,
		      struct plugin_given *given, struct cni_error *e)
{
	struct json_at root = json_root(given->reply, NULL);
	int64_t mtu = 0;
	int r = cni_assign_reply(given->reply, ipam, &given->existing, &given->result, e);

	if (r < 0) {
		plugin_undo(call, given);
		return r;
	}
	json_read_integer(json_member(&root, "mtu"), 0, UINT16_MAX, &mtu);
	given->mtu = (uint32_t)mtu;
	given->n_fixed = ipam->addresses.n;
	return 0;
}

int plugin_assign(const struct cni_call *call, const struct cni_want *want,
		  struct plugin_given *ret, struct cni_error *e)
{
	AUTO_DONE(cni_ipam_done) struct cni_ipam ipam = { 0 };
	AUTO_DONE(plugin_given_done) struct plugin_given given = { 0 };
	int r = cni_ipam_read(&call->conf, &ipam, e);

	if (r < 0)
		return r;
	if (ipam.ignored[0])
		cni_debug(call, ipam.debug, "ignored in the IPAM configuration: %s", ipam.ignored);
	if (ipam.ranges.n > 0 && want->pools_from_pod)
		cni_debug(call, ipam.debug,
			  "ignored: the pod's annotation roost.io/pool, since "
			  "this network has ranges of its own");
	r = ask(call, want, &ipam, &given.reply, e);
	if (r == 0)
		r = take_reply(call, &ipam, &given, e);
	if (r < 0)
		return r;
	*ret = given;
	given = (struct plugin_given){ 0 };
	return 0;
}

int plugin_add(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO_DONE(cni_want_done) struct cni_want want = { 0 };
	AUTO_DONE(plugin_given_done) struct plugin_given given = { 0 };
	int r = cni_want_read(&call->conf, &call->env, &want, e);

	if (r == 0)
		r = plugin_assign(call, &want, &given, e);
	if (r < 0)
		return r;
	r = given.existing ? refuse_if_alive(call, &given.result, e) : 0;
	if (r == 0)
		r = cni_result_print(&given.result, call->conf.version, ret_output, e);
	if (r < 0)
		plugin_undo(call, &given);
	return r;
}

/* --- DEL ------------------------------------------------------------------------------------ */

/* It succeeds whatever happens: what could not be done now is done by the agent later. */
int plugin_del(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	plugin_release(call, &call->deadline);
	return 0;
}

/* --- CHECK, GC, STATUS ---------------------------------------------------------------------- */

static int ask_check(const struct cni_call *call, const struct addresses *addresses,
		     struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	AUTO(free) char *body = NULL;

	if (cni_attachment_body(&call->conf, &call->env, addresses, &body) < 0)
		return cni_no_memory(e);
	return plugin_ask(call, "POST", "/v1/ipam/check", body, &call->deadline, &reply, e);
}

/* The addresses in prevResult that are ours to check. */
static int read_addresses(const struct cni_call *call, const struct cni_ipam *ipam,
			  struct addresses *ret, struct cni_error *e)
{
	AUTO_DONE(cni_result_done) struct cni_result prev = { 0 };
	struct json_at root = cni_root(call->conf.json, e), at = json_member(&root, "prevResult");
	int r;

	if (!at.value)
		return cni_fail(e, CNI_CODE_CONFIG, "CHECK needs a \"prevResult\"");
	r = cni_result_read(at, call->conf.version, &prev, e);
	if (r < 0)
		return r;
	return cni_check_addresses(&prev, call->env.ifname, ipam, ret) < 0 ? cni_no_memory(e) : 0;
}

int plugin_check(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO_DONE(cni_want_done) struct cni_want want = { 0 };
	AUTO_DONE(cni_ipam_done) struct cni_ipam ipam = { 0 };
	AUTO(addresses) struct addresses addresses = { 0 };
	int r = cni_want_read(&call->conf, &call->env, &want, e);

	if (r == 0)
		r = cni_ipam_read(&call->conf, &ipam, e);
	if (r == 0)
		r = read_addresses(call, &ipam, &addresses, e);
	if (r < 0)
		return r;
	/* Addresses that the configuration gave are known to no agent. */
	return cni_ipam_is_static(&ipam, &want) ? 0 : ask_check(call, &addresses, e);
}

int plugin_gc(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	AUTO(cni_attachments) struct cni_attachments valid = { 0 };
	AUTO(free) char *body = NULL;
	int r = cni_valid_read(&call->conf, &valid, e);

	if (r < 0)
		return r;
	if (cni_gc_body(&call->conf, &valid, &body) < 0)
		return cni_no_memory(e);
	return plugin_ask(call, "POST", "/v1/ipam/gc", body, &call->deadline, &reply, e);
}

int plugin_status(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	return plugin_ask_status(call, "/v1/ipam/status", e);
}
