/* SPDX-License-Identifier: Apache-2.0 */
/* ADD: from the agent's reply to a result that changes nothing for a pod that is alive. */
#include <errno.h>
#include <string.h>

#include "ipam/plugin.h"
#include "lib/cni_io.h"
#include "lib/cni_ipam.h"

/*
 * A repeated ADD gets the same addresses. But if the interface already has them, the pod is alive,
 * and a main plugin that fails after us (the interface exists) would give a live pod's address
 * back. So this call fails, and having failed it is not rolled back.
 */
static int refuse_if_alive(const struct cni_call *call, const struct cni_result *result,
			   struct cni_error *e)
{
	AUTO(free) struct address *v = calloc(result->n_ips ?: 1, sizeof(*v));
	const struct cni_env *env = &call->env;
	char text[ADDRESS_TEXT];
	int r;

	if (!v)
		return cni_no_memory(e);
	for (size_t i = 0; i < result->n_ips; i++)
		v[i] = result->ips[i].address.address;
	r = cni_netns_carries(env->netns, env->ifname, v, result->n_ips);
	if (r == 0)
		return 0;
	if (r < 0) {
		cni_fail(e, CNI_CODE_IO, "cannot look into %s: %s", env->netns, strerror(-r));
		return r;
	}
	return cni_fail(e, CNI_CODE_ATTACHED,
			"%s in %s already carries the addresses of this attachment (%s): it is "
			"alive and stays as it is; DEL it before another ADD",
			env->ifname, env->netns, address_print(&v[0], text));
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
	return plugin_ask(call, "POST", "/v1/ipam/assign", body, ADD_DEADLINE_MS, ret, e);
}

static int answer(const struct cni_call *call, struct json_object *reply, struct cni_ipam *ipam,
		  char **ret_output, struct cni_error *e)
{
	AUTO(cni_result_done) struct cni_result result = { 0 };
	bool existing = false;
	int r = cni_assign_reply(reply, ipam, &existing, &result, e);

	if (r == 0 && existing)
		return refuse_if_alive(call, &result, e)
			       ?: cni_result_print(&result, call->conf.version, ret_output, e);
	if (r == 0)
		r = cni_result_print(&result, call->conf.version, ret_output, e);
	/* Only what this very call was given; an attachment that was there before stays. */
	if (r < 0 && reply)
		plugin_release(call);
	return r;
}

int plugin_add(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO(cni_want_done) struct cni_want want = { 0 };
	AUTO(cni_ipam_done) struct cni_ipam ipam = { 0 };
	AUTO(json_put) struct json_object *reply = NULL;
	int r = cni_want_read(&call->conf, &call->env, &want, e);

	if (r == 0)
		r = cni_ipam_read(&call->conf, &ipam, e);
	if (r < 0)
		return r;
	if (ipam.ignored[0])
		cni_debug(call, ipam.debug, "ignored in the IPAM configuration: %s", ipam.ignored);
	if (ipam.n_ranges > 0 && want.pools_from_pod)
		cni_debug(call, ipam.debug,
			  "ignored: the pod's annotation roost.io/pool, since "
			  "this network has ranges of its own");
	r = ask(call, &want, &ipam, &reply, e);
	return r < 0 ? r : answer(call, reply, &ipam, ret_output, e);
}
