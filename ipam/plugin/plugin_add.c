/* SPDX-License-Identifier: Apache-2.0 */
/* ADD: from the agent's reply to a result that changes nothing for a pod that is alive. */
#include <errno.h>
#include <string.h>

#include "ipam/plugin/plugin.h"
#include "lib/cni/cni_ipam.h"

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
	given->n_fixed = ipam->n_addresses;
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
	if (ipam.n_ranges > 0 && want->pools_from_pod)
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
