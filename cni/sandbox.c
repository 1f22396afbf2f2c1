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
	if (given->ips.n == 0)
		return cni_fail(e, CNI_CODE_IO, "the IPAM plugin gave no address");
	pod->addresses = calloc(given->ips.n, sizeof(*pod->addresses));
	if (!pod->addresses)
		return cni_no_memory(e);
	for (size_t i = 0; i < given->ips.n; i++)
		pod->addresses[pod->n_addresses++] = given->ips.v[i].address.address;
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
	for (size_t i = 0; i < given->routes.n; i++)
		if (given->routes.v[i].dst.address.family == family)
			add_route(pod, given->routes.v[i]);
	if (pod->n_routes == before)
		add_route(pod,
			  (struct cni_route){ .dst = { { .family = family }, 0 }, CNI_ROUTE_NONE });
}

static int plan_routes(const struct cni_result *given, struct sandbox *pod, struct cni_error *e)
{
	pod->routes = calloc(given->routes.n + 2, sizeof(*pod->routes));
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

/* --- the result ----------------------------------------------------------------------------- */

static bool says_something(const struct cni_dns *dns)
{
	return (dns->domain && *dns->domain) ||
	       dns->nameservers.n + dns->search.n + dns->options.n > 0;
}

/* Who is nearer to this pod is heard first: the runtime, the network, its pool, the chain. */
static struct cni_dns choose_dns(const struct roost_conf *conf, const struct cni_result *given)
{
	const struct cni_dns *const by_rank[] = { &conf->want.dns, &conf->dns, &given->dns };

	for (size_t i = 0; i < ARRAY_SIZE(by_rank); i++)
		if (says_something(by_rank[i]))
			return *by_rank[i];
	return conf->prev.dns;
}

/* 0 or -ENOMEM. */
#define COPY_ALL(to, from)                                                                         \
	({                                                                                         \
		int copied_ = 0;                                                                   \
		for (size_t i_ = 0; i_ < (from)->n && copied_ == 0; i_++)                          \
			copied_ = array_append((to), (from)->v[i_]);                               \
		copied_;                                                                           \
	})

static int add_pod(const struct sandbox *pod, const char *host_mac, struct cni_result *to)
{
	int r = array_append(&to->interfaces, (struct cni_interface){
						      .name = pod->link,
						      .mac = host_mac,
						      .mtu = pod->mtu,
					      });

	r = r
		    ?: array_append(&to->interfaces, (struct cni_interface){
							     .name = pod->ifname,
							     .mac = pod->mac_text,
							     .mtu = pod->mtu,
							     .sandbox = pod->netns,
						     });
	for (size_t i = 0; i < pod->n_addresses && r == 0; i++) {
		const struct address *a = &pod->addresses[i];

		r = array_append(&to->ips, (struct cni_ip){
						   .address = { *a, (uint8_t)address_bits(a) },
						   .gateway = pod_gateway(a->family),
						   .interface = (int64_t)to->interfaces.n - 1,
					   });
	}
	for (size_t i = 0; i < pod->n_routes && r == 0; i++)
		r = array_append(&to->routes, pod->routes[i]);
	return r;
}

int sandbox_result(const struct sandbox *pod, const struct roost_conf *conf,
		   const struct cni_result *given, enum cni_version version, char **ret,
		   struct cni_error *e)
{
	const struct cni_result *prev = &conf->prev;
	struct cni_result result = { .dns = choose_dns(conf, given) };
	char host_mac[MAC_TEXT];
	int r = COPY_ALL(&result.interfaces, &prev->interfaces);

	mac_print(&pod_link_host_mac, host_mac);
	r = r ?: COPY_ALL(&result.ips, &prev->ips);
	r = r ?: COPY_ALL(&result.routes, &prev->routes);
	r = r ?: add_pod(pod, host_mac, &result);
	r = r < 0 ? cni_no_memory(e) : cni_result_print(&result, version, ret, e);
	free(result.interfaces.v);
	free(result.ips.v);
	free(result.routes.v);
	return r;
}
