/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/sandbox.h"

#include <errno.h>
#include <string.h>

/* The least that IPv6 works with. */
#define MTU_MIN_6 1280

void sandbox_done(struct sandbox *pod)
{
	free(pod->addresses);
	free(pod->routes);
	*pod = (struct sandbox){ 0 };
}

bool sandbox_has(const struct sandbox *pod, sa_family_t family)
{
	for (size_t i = 0; i < pod->n_addresses; i++)
		if (pod->addresses[i].family == family)
			return true;
	return false;
}

static int plan_addresses(const struct cni_result *given, struct sandbox *pod, struct cni_error *e)
{
	if (given->n_ips == 0)
		return cni_fail(e, CNI_CODE_IO, "the IPAM plugin gave no address");
	pod->addresses = calloc(given->n_ips, sizeof(*pod->addresses));
	if (!pod->addresses)
		return cni_no_memory(e);
	for (size_t i = 0; i < given->n_ips; i++)
		pod->addresses[pod->n_addresses++] = given->ips[i].address.address;
	return 0;
}

/* --- routes --------------------------------------------------------------------------------- */

static bool same_route(const struct cni_route *a, const struct cni_route *b)
{
	return prefix_compare(&a->dst, &b->dst) == 0 && a->table == b->table &&
	       a->priority == b->priority;
}

static void add_route(struct sandbox *pod, struct cni_route route)
{
	route.gw = pod_gateway(route.dst.address.family);
	for (size_t i = 0; i < pod->n_routes; i++)
		if (same_route(&pod->routes[i], &route))
			return;
	pod->routes[pod->n_routes++] = route;
}

static void plan_family(const struct cni_result *given, sa_family_t family, struct sandbox *pod)
{
	const size_t before = pod->n_routes;

	if (!sandbox_has(pod, family))
		return;
	for (size_t i = 0; i < given->n_routes; i++)
		if (given->routes[i].dst.address.family == family)
			add_route(pod, given->routes[i]);
	if (pod->n_routes == before)
		add_route(pod,
			  (struct cni_route){ .dst = { { .family = family }, 0 }, CNI_ROUTE_NONE });
}

static int plan_routes(const struct cni_result *given, struct sandbox *pod, struct cni_error *e)
{
	pod->routes = calloc(given->n_routes + 2, sizeof(*pod->routes));
	if (!pod->routes)
		return cni_no_memory(e);
	plan_family(given, AF_INET, pod);
	plan_family(given, AF_INET6, pod);
	return 0;
}

int sandbox_plan(const struct cni_env *env, const struct roost_conf *conf,
		 const struct cni_result *given, uint32_t mtu, const struct mac *mac,
		 struct sandbox *ret, struct cni_error *e)
{
	static const struct mac none;
	AUTO_DONE(sandbox_done) struct sandbox pod = { .ifname = env->ifname, .netns = env->netns };
	int r = plan_addresses(given, &pod, e);

	if (r == 0)
		r = plan_routes(given, &pod, e);
	if (r < 0)
		return r;
	pod_link_name(env->container, env->ifname, pod.link);
	pod.mtu = conf->mtu ?: mtu;
	pod.mac = memcmp(&conf->want.mac, &none, sizeof(none)) ? conf->want.mac : *mac;
	mac_print(&pod.mac, pod.mac_text);
	if (pod.mtu > 0 && pod.mtu < MTU_MIN_6 && sandbox_has(&pod, AF_INET6))
		return cni_fail(e, CNI_CODE_CONFIG,
				"an MTU of %u is too small for IPv6, which needs %d", pod.mtu,
				MTU_MIN_6);
	*ret = pod;
	pod = (struct sandbox){ 0 };
	return 0;
}
