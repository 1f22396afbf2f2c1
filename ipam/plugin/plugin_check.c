/* SPDX-License-Identifier: Apache-2.0 */
/* CHECK, GC and STATUS: they ask, and pass on what the agent says. */
#include <errno.h>

#include "ipam/plugin/plugin.h"
#include "lib/cni/cni_ipam.h"

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
	struct json_at root = cni_root(call->conf.json, e), at = cni_member(&root, "prevResult");
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
