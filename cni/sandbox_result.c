/* SPDX-License-Identifier: Apache-2.0 */
/* pod.h towards the runtime: what the chain had, and this pod behind it. */
#include <errno.h>
#include <string.h>

#include "cni/sandbox.h"

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

static void append_interfaces(const struct sandbox *pod, const char *host_mac,
			      struct cni_result *to)
{
	to->interfaces[to->n_interfaces++] = (struct cni_interface){ .name = pod->link,
								     .mac = host_mac,
								     .mtu = pod->mtu };
	to->interfaces[to->n_interfaces++] = (struct cni_interface){
		.name = pod->ifname, .mac = pod->mac_text, .mtu = pod->mtu, .sandbox = pod->netns
	};
}

static void append_ips(const struct sandbox *pod, int interface, struct cni_result *to)
{
	for (size_t i = 0; i < pod->n_addresses; i++) {
		const struct address *a = &pod->addresses[i];

		to->ips[to->n_ips++] = (struct cni_ip){ { *a, (uint8_t)address_bits(a) },
							pod_gateway(a->family),
							interface };
	}
}

/* A copy with room for more; NULL: out of memory. */
static void *grown(const void *v, size_t n, size_t more, size_t size)
{
	char *copy = calloc(n + more, size);

	if (copy && n > 0)
		memcpy(copy, v, n * size);
	return copy;
}

int sandbox_result(const struct sandbox *pod, const struct roost_conf *conf,
		   const struct cni_result *given, enum cni_version version, char **ret,
		   struct cni_error *e)
{
	const struct cni_result *prev = &conf->prev;
	AUTO(free)
	struct cni_interface *interfaces = grown(prev->interfaces, prev->n_interfaces, 2,
						 sizeof(*interfaces));
	AUTO(free)
	struct cni_ip *ips = grown(prev->ips, prev->n_ips, pod->n_addresses, sizeof(*ips));
	AUTO(free)
	struct cni_route *routes = grown(prev->routes, prev->n_routes, pod->n_routes,
					 sizeof(*routes));
	struct cni_result result = { interfaces,
				     ips,
				     routes,
				     prev->n_interfaces,
				     prev->n_ips,
				     prev->n_routes,
				     choose_dns(conf, given) };
	char host_mac[18];

	if (!interfaces || !ips || !routes)
		return cni_no_memory(e);
	mac_print(&pod_link_host_mac, host_mac);
	append_interfaces(pod, host_mac, &result);
	append_ips(pod, (int)result.n_interfaces - 1, &result);
	memcpy(routes + prev->n_routes, pod->routes, pod->n_routes * sizeof(*routes));
	result.n_routes += pod->n_routes;
	return cni_result_print(&result, version, ret, e);
}
