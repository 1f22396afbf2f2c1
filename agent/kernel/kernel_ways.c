/* SPDX-License-Identifier: Apache-2.0 */
/* How others' blocks are reached, by what the kernel holds. */
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/kernel/kernel_parts.h"
#include "lib/base/route_protocol.h"

static bool is_tunnel(const struct kernel *k, uint32_t index)
{
	const struct held_link *l = kernel_view_link(&k->view, index);

	return l && (strcmp(l->link.name, TUNNEL_DEVICE) == 0 ||
		     strcmp(l->link.name, TUNNEL_DEVICE6) == 0);
}

bool kernel_has_bird_route(struct kernel *k, const struct prefix *dst)
{
	const struct route_lookup *l;

	if (kernel_look_up(k, &dst->address) < 0)
		return false;
	l = kernel_view_lookup(&k->view, &dst->address);
	return l && l->err == 0 && l->route.protocol == RTPROT_BIRD &&
	       prefix_compare(&l->route.dst, dst) == 0;
}

void kernel_set_bird_port(struct kernel *k, uint32_t port)
{
	k->view.bird_port = port;
}

enum kernel_way kernel_way(const struct kernel *k, const struct prefix *block)
{
	const struct kroute key = { .table = RT_TABLE_MAIN,
				    .dst = *block,
				    .metric = block->address.family == AF_INET6 ? ROUTE_METRIC6
										: 0 };
	const struct held_route *r = kernel_view_routes(&k->view, &key);

	for (; r; r = r->next) {
		if (!r->h.held || r->route.protocol != route_protocol)
			continue;
		/* An IPv6 block of a single address is its own next hop. */
		if (is_tunnel(k, r->route.hop.oif))
			return KERNEL_WAY_TUNNEL;
		if (kroute_has_gateway(&r->route))
			return KERNEL_WAY_DIRECT;
	}
	return KERNEL_WAY_NONE;
}
