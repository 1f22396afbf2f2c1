/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CHECK: the pod's side read back here, the node's by the agent, the addresses by who gave them.
 *
 * What must be there is in prevResult. Of that only what this plugin made is looked at: the
 * interface of this name, its addresses, the routes through our gateway. Later plugins
 * of the chain may have added to all of it.
 */
#include <errno.h>
#include <string.h>

#include "cni/ask.h"
#include "cni/inside.h"
#include "cni/ipam_plugin.h"
#include "cni/verbs.h"
#include "lib/cni/cni_ipam.h"

/* The index of the pod's interface in prev, or -EINVAL. */
static int find_interface(const struct cni_result *prev, const char *ifname, struct cni_error *e)
{
	for (size_t i = 0; i < prev->interfaces.n; i++) {
		const struct cni_interface *f = &prev->interfaces.v[i];

		if (f->name && strcmp(f->name, ifname) == 0 && f->sandbox && *f->sandbox)
			return (int)i;
	}
	return cni_fail(e, CNI_CODE_CONFIG, "\"prevResult\" has no interface %s of a pod", ifname);
}

static int take_addresses(const struct cni_result *prev, int interface, struct sandbox *pod,
			  struct cni_error *e)
{
	pod->addresses = calloc(prev->ips.n ?: 1, sizeof(*pod->addresses));
	if (!pod->addresses)
		return cni_no_memory(e);
	for (size_t i = 0; i < prev->ips.n; i++)
		if (prev->ips.v[i].interface == interface)
			pod->addresses[pod->n_addresses++] = prev->ips.v[i].address.address;
	if (pod->n_addresses == 0)
		return cni_fail(e, CNI_CODE_CONFIG, "\"prevResult\" has no address of %s",
				pod->ifname);
	return 0;
}

static int take_routes(const struct cni_result *prev, struct sandbox *pod, struct cni_error *e)
{
	pod->routes = calloc(prev->routes.n ?: 1, sizeof(*pod->routes));
	if (!pod->routes)
		return cni_no_memory(e);
	for (size_t i = 0; i < prev->routes.n; i++) {
		const struct cni_route *r = &prev->routes.v[i];
		const struct address gateway = pod_gateway(r->dst.address.family);

		if (address_compare(&r->gw, &gateway) == 0 &&
		    sandbox_has(pod, r->dst.address.family))
			pod->routes[pod->n_routes++] = *r;
	}
	return 0;
}

/* The pod as prevResult tells it. */
static int recall(const struct cni_call *call, const struct roost_conf *conf, struct sandbox *ret,
		  struct cni_error *e)
{
	AUTO_DONE(sandbox_done)
	struct sandbox pod = { .ifname = call->env.ifname, .netns = call->env.netns };
	const char *mac = NULL;
	int i, r;

	if (!conf->chained)
		return cni_fail(e, CNI_CODE_CONFIG, "CHECK needs a \"prevResult\"");
	i = find_interface(&conf->prev, pod.ifname, e);
	if (i < 0)
		return i;
	mac = conf->prev.interfaces.v[i].mac;
	snprintf(pod.mac_text, sizeof(pod.mac_text), "%s", mac ?: "");
	pod_link_name(call->env.container, pod.ifname, pod.link);
	r = take_addresses(&conf->prev, i, &pod, e);
	if (r == 0)
		r = take_routes(&conf->prev, &pod, e);
	if (r < 0)
		return r;
	*ret = pod;
	pod = (struct sandbox){ 0 };
	return 0;
}

static int check_inside(const struct cni_call *call, const struct sandbox *pod, struct cni_error *e)
{
	AUTO_DONE(netns_close) struct netns netns = NETNS_NONE;
	AUTO(netlink_close) struct netlink *inside = NULL;
	int r = netns_open(pod->netns, call->env.netns_override, &netns, e);

	if (r < 0)
		return r;
	r = netns_netlink(&netns, &inside);
	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot look into %s: %s", pod->netns,
				strerror(-r));
	return inside_check(inside, pod, e);
}

/* Fixed addresses of the configuration are held by nobody; see ipam_plugin_name(). */
static const char *ipam_name_of(const struct ipam_plugin *ipam, const struct cni_call *call,
				const struct roost_conf *conf, struct cni_error *e)
{
	AUTO_DONE(cni_ipam_done) struct cni_ipam section = { 0 };
	struct plugin_given given = { .reply = call->conf.json };

	if (ipam->own && cni_ipam_read(&call->conf, &section, e) < 0)
		return NULL;
	if (ipam->own && cni_ipam_is_static(&section, &conf->want))
		given.reply = NULL;
	return ipam_plugin_name(ipam, call, &given);
}

int roost_check(const struct cni_call *call, char **ret_output, struct cni_error *e)
{
	AUTO_DONE(roost_conf_done) struct roost_conf conf = { 0 };
	AUTO_DONE(sandbox_done) struct sandbox pod = { 0 };
	struct ipam_plugin ipam = { 0 };
	const char *name;
	int r = roost_conf_read(call, &conf, e);

	r = r ?: ipam_plugin_choose(call, &ipam, e);
	r = r ?: recall(call, &conf, &pod, e);
	if (r < 0)
		return r;
	name = ipam_name_of(&ipam, call, &conf, e);
	r = name ? check_inside(call, &pod, e) : -EINVAL;
	r = r ?: ask_check(call, &conf, &pod, name, e);
	return r ?: ipam_plugin_check(&ipam, call, e);
}
