/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h read back. Whether the link has its carrier is not asked: the kernel notes that a moment
 * after ADD has returned, and the runtime may ask at once.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <strings.h>

#include "cni/inside.h"
#include "lib/netlink/request.h"

#define MISSING(e, ...) cni_fail(e, CNI_CODE_OTHER_ADDRESSES, __VA_ARGS__)

static int failed(struct cni_error *e, const struct sandbox *pod, const char *what, int r)
{
	return cni_fail(e, CNI_CODE_IO, "cannot read the %s of %s in %s: %s", what, pod->ifname,
			pod->netns, strerror(-r));
}

/* --- the link ------------------------------------------------------------------------------- */

static int read_link(const struct nlmsghdr *hdr, void *arg)
{
	return klink_read(hdr, arg);
}

static int check_link(struct netlink *inside, const struct sandbox *pod, int *ret_index,
		      struct cni_error *e)
{
	struct klink link = { 0 };
	char mac[MAC_TEXT];
	int r = netlink_get(inside, ask_link(0, pod->ifname), read_link, &link, NULL);

	if (r == -ENODEV)
		return MISSING(e, "%s has no interface %s", pod->netns, pod->ifname);
	if (r < 0)
		return failed(e, pod, "link", r);
	mac_print(&link.mac, mac);
	if (!(link.flags & IFF_UP))
		return MISSING(e, "%s in %s is switched off", pod->ifname, pod->netns);
	if (pod->mac_text[0] && strcasecmp(pod->mac_text, mac) != 0)
		return MISSING(e, "%s in %s has the MAC address %s instead of %s", pod->ifname,
			       pod->netns, mac, pod->mac_text);
	*ret_index = (int)link.index;
	return 0;
}

/* --- addresses ------------------------------------------------------------------------------ */

struct search {
	const struct sandbox *pod;
	int index;
	uint64_t addresses; /* bit i: pod->addresses[i] was seen; likewise */
	uint64_t routes;
	bool aside[2]; /* a default route in the interface's own table, by family */
};
#define SEARCH_MAX 64

static int read_address(const struct nlmsghdr *hdr, void *arg)
{
	struct search *s = arg;
	struct kaddress a;

	if (kaddress_read(hdr, &a) < 0 || (int)a.link != s->index)
		return 0;
	for (size_t i = 0; i < s->pod->n_addresses; i++)
		if (address_compare(&a.local, &s->pod->addresses[i]) == 0)
			s->addresses |= 1ULL << i;
	return 0;
}

static void forget_addresses(void *arg)
{
	((struct search *)arg)->addresses = 0;
}

static int check_addresses(struct netlink *inside, struct search *s, struct cni_error *e)
{
	char text[ADDRESS_TEXT];
	int r = netlink_dump(inside, ask_addresses(AF_UNSPEC, (uint32_t)s->index), forget_addresses,
			     read_address, s, NULL);

	if (r < 0)
		return failed(e, s->pod, "addresses", r);
	for (size_t i = 0; i < s->pod->n_addresses; i++)
		if (!(s->addresses & 1ULL << i))
			return MISSING(e, "%s in %s has lost its address %s", s->pod->ifname,
				       s->pod->netns, address_print(&s->pod->addresses[i], text));
	return 0;
}

/* --- routes --------------------------------------------------------------------------------- */

static int read_route(const struct nlmsghdr *hdr, void *arg)
{
	struct search *s = arg;
	struct kroute r;

	if (kroute_read(hdr, &r) < 0 || (int)r.hop.oif != s->index || r.type != RTN_UNICAST)
		return 0;
	if (r.table == inside_table(s->index) && r.dst.length == 0)
		s->aside[r.dst.address.family == AF_INET6] = true;
	for (size_t i = 0; i < s->pod->n_routes; i++)
		if (prefix_compare(&r.dst, &s->pod->routes[i].dst) == 0 &&
		    r.hop.gateway.family == s->pod->routes[i].gw.family &&
		    address_compare(&r.hop.gateway, &s->pod->routes[i].gw) == 0)
			s->routes |= 1ULL << i;
	return 0;
}

static int read_routes(struct netlink *inside, sa_family_t family, struct search *s)
{
	return netlink_dump(inside, ask_routes(family, 0, 0, (uint32_t)s->index), NULL, read_route,
			    s, NULL);
}

static int check_routes(struct netlink *inside, struct search *s, struct cni_error *e)
{
	char text[PREFIX_TEXT];
	int r = sandbox_has(s->pod, AF_INET) ? read_routes(inside, AF_INET, s) : 0;

	if (r == 0 && sandbox_has(s->pod, AF_INET6))
		r = read_routes(inside, AF_INET6, s);
	if (r < 0)
		return failed(e, s->pod, "routes", r);
	for (size_t i = 0; i < s->pod->n_routes; i++) {
		const struct prefix *dst = &s->pod->routes[i].dst;

		if (!(s->routes & 1ULL << i) && !s->aside[dst->address.family == AF_INET6])
			return MISSING(e, "%s in %s has lost its route to %s", s->pod->ifname,
				       s->pod->netns, prefix_print(dst, text));
	}
	return 0;
}

/* --- the neighbour -------------------------------------------------------------------------- */

static int read_neighbour(const struct nlmsghdr *hdr, void *arg)
{
	struct kneighbour n;

	*(bool *)arg = kneighbour_read(hdr, &n) == 0 && n.permanent &&
		       mac_compare(&n.mac, &pod_link_host_mac) == 0;
	return 0;
}

static int check_neighbour(struct netlink *inside, const struct search *s, sa_family_t family,
			   struct cni_error *e)
{
	const struct address gateway = pod_gateway(family);
	char text[ADDRESS_TEXT];
	bool good = false;
	int r;

	if (!sandbox_has(s->pod, family))
		return 0;
	r = netlink_get(inside, ask_neighbour((uint32_t)s->index, &gateway), read_neighbour, &good,
			NULL);
	if (r < 0 && r != -ENOENT)
		return failed(e, s->pod, "neighbours", r);
	if (good)
		return 0;
	return MISSING(e, "%s in %s has lost the neighbour %s, behind which the node is",
		       s->pod->ifname, s->pod->netns, address_print(&gateway, text));
}

int inside_check(struct netlink *inside, const struct sandbox *pod, struct cni_error *e)
{
	struct search s = { .pod = pod };
	int r;

	if (pod->n_addresses > SEARCH_MAX || pod->n_routes > SEARCH_MAX)
		return cni_fail(e, CNI_CODE_CONFIG,
				"\"prevResult\" has more than %d addresses or routes", SEARCH_MAX);
	r = check_link(inside, pod, &s.index, e);
	r = r ?: check_addresses(inside, &s, e);
	r = r ?: check_routes(inside, &s, e);
	r = r ?: check_neighbour(inside, &s, AF_INET, e);
	return r ?: check_neighbour(inside, &s, AF_INET6, e);
}
