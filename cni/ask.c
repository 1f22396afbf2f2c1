/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/ask.h"

#include <errno.h>

#include "cni/veth.h"
#include "ipam/plugin/plugin.h"
#include "lib/base/files.h"
#include "lib/base/json_out.h"
#include "lib/cni/cni_assign.h"
#include "lib/cni/cni_spool.h"

/* --- attach and check ----------------------------------------------------------------------- */

static int print_attachment(const struct cni_call *call, const struct roost_conf *conf,
			    const struct sandbox *pod, const char *ipam, char **ret)
{
	const struct cni_args *args = &call->env.args;
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_text(&out, "network", call->conf.name);
	json_out_text(&out, "container", call->env.container);
	json_out_text(&out, "interface", pod->ifname);
	json_out_text(&out, "netns", pod->netns);
	json_out_text(&out, "link", pod->link);
	json_out_text(&out, "mac", pod->mac_text);
	json_out_open(&out, "addresses", '[');
	for (size_t i = 0; i < pod->n_addresses; i++)
		json_out_address(&out, NULL, &pod->addresses[i]);
	json_out_close(&out, ']');
	json_out_text(&out, "ipam", ipam);
	json_out_bool(&out, "routeLocalnet", conf->route_localnet);
	json_out_some_text(&out, "namespace", args->namespace);
	json_out_some_text(&out, "pod", args->pod);
	json_out_some_text(&out, "uid", args->uid);
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

static int ask_about(const struct cni_call *call, const char *path, const struct roost_conf *conf,
		     const struct sandbox *pod, const char *ipam, struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	AUTO(free) char *body = NULL;

	if (print_attachment(call, conf, pod, ipam, &body) < 0)
		return cni_no_memory(e);
	return plugin_ask(call, "POST", path, body, &call->deadline, &reply, e);
}

int ask_attach(const struct cni_call *call, const struct roost_conf *conf,
	       const struct sandbox *pod, const char *ipam, struct cni_error *e)
{
	return ask_about(call, "/v1/attach", conf, pod, ipam, e);
}

int ask_check(const struct cni_call *call, const struct roost_conf *conf, const struct sandbox *pod,
	      const char *ipam, struct cni_error *e)
{
	return ask_about(call, "/v1/check", conf, pod, ipam, e);
}

/* --- detach --------------------------------------------------------------------------------- */

static int send_detach(const struct cni_call *call, const char *body,
		       const struct deadline *deadline)
{
	AUTO(json_put) struct json_object *reply = NULL;
	struct cni_error e = { 0 };
	int r = plugin_ask(call, "POST", "/v1/detach", body, deadline, &reply, &e);

	if (r < 0)
		cni_debug(call, false, "%s", e.msg.text);
	return r;
}

/* The routes through it go with it, so that the note may free the address at once. */
static void remove_link(const struct cni_call *call)
{
	AUTO(netlink_close) struct netlink *host = NULL;
	char name[IF_NAME_TEXT];
	struct err why = { "no netlink socket" };
	int r = netlink_open(NETLINK_ROUTE, &host);

	pod_link_name(call->env.container, call->env.ifname, name);
	if (r == 0)
		r = veth_remove(host, name, &why);
	if (r < 0)
		cni_complain(call, "the link %s is not removed: %s", name, why.text);
}

void ask_detach(const struct cni_call *call, const struct deadline *deadline)
{
	/* A part of the time: there is more to do if the agent does not answer. */
	const struct deadline first = deadline_in(deadline_left(deadline) / 2);
	AUTO(free) char *body = NULL;
	AUTO(close) int spool = -1;
	char note[CNI_NOTE_NAME];
	struct err why = { "" };

	if (cni_attachment_body(&call->conf, &call->env, NULL, &body) == 0 &&
	    send_detach(call, body, &first) == 0)
		return;
	remove_link(call);
	if (cni_spool_release(&call->conf, &call->env, &spool, note, &why) < 0) {
		cni_complain(call,
			     "the agent is not informed yet that %s/%s was deleted: %s; it detects "
			     "that later",
			     call->env.container, call->env.ifname, why.text);
		return;
	}
	/* An agent that came up meanwhile may have read the spool before the note was in it. */
	if (body && send_detach(call, body, deadline) == 0)
		file_remove(spool, note);
}

/* --- the rest ------------------------------------------------------------------------------- */

int ask_gc(const struct cni_call *call, const struct cni_attachments *valid, struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	AUTO(free) char *body = NULL;

	if (cni_gc_body(&call->conf, valid, &body) < 0)
		return cni_no_memory(e);
	return plugin_ask(call, "POST", "/v1/gc", body, &call->deadline, &reply, e);
}

int ask_mtu(const struct cni_call *call, uint32_t *ret, struct cni_error *e)
{
	AUTO(json_put) struct json_object *reply = NULL;
	struct json_at root;
	int64_t mtu = 0;
	int r = plugin_ask(call, "GET", "/v1/node", NULL, &call->deadline, &reply, e);

	if (r < 0)
		return r;
	root = json_root(reply, NULL);
	json_read_integer(json_member(&root, "mtu"), 0, UINT16_MAX, &mtu);
	*ret = (uint32_t)mtu;
	return 0;
}
