/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h read back. Whether the link has its carrier is not asked: the kernel notes that a moment
 * after ADD has returned, and the runtime may ask at once.
 */
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <strings.h>

#include "cni/inside.h"
#include "cni/message.h"

#define MISSING(e, ...) cni_fail(e, CNI_CODE_OTHER_ADDRESSES, __VA_ARGS__)

/* libnl's readers want it so, and write nothing. */
static struct nlattr *attribute(const struct nlmsghdr *hdr, size_t header, int type)
{
	return nlmsg_find_attr((struct nlmsghdr *)(uintptr_t)hdr, (int)header, type);
}

static bool is_address(struct nlattr *a, const struct address *want)
{
	const size_t n = address_bits(want) / 8;

	return a && (size_t)nla_len(a) == n && memcmp(nla_data(a), want->bytes, n) == 0;
}

static int failed(struct cni_error *e, const struct sandbox *pod, const char *what, int r)
{
	return cni_fail(e, CNI_CODE_IO, "cannot read the %s of %s in %s: %s", what, pod->ifname,
			pod->netns, strerror(-r));
}

/* --- the link ------------------------------------------------------------------------------- */

struct seen_link {
	int index;
	bool up;
	struct mac mac;
};

static int read_link(const struct nlmsghdr *hdr, void *arg)
{
	const struct ifinfomsg *body = nlmsg_data(hdr);
	struct nlattr *mac = attribute(hdr, sizeof(*body), IFLA_ADDRESS);
	struct seen_link *seen = arg;

	seen->index = body->ifi_index;
	seen->up = body->ifi_flags & IFF_UP;
	if (mac && nla_len(mac) == (int)sizeof(seen->mac.bytes))
		memcpy(seen->mac.bytes, nla_data(mac), sizeof(seen->mac.bytes));
	return 0;
}

static int check_link(struct kern *inside, const struct sandbox *pod, int *ret_index,
		      struct cni_error *e)
{
	const struct ifinfomsg any = { 0 };
	AUTO(nlmsg_free) struct nl_msg *m = message_new(RTM_GETLINK, 0, &any, sizeof(any));
	struct seen_link seen = { 0 };
	char mac[18];
	int r;

	if (!m)
		return cni_no_memory(e);
	nla_put_string(m, IFLA_IFNAME, pod->ifname);
	r = kern_get(inside, m, read_link, &seen, NULL);
	if (r == -ENODEV)
		return MISSING(e, "%s has no interface %s", pod->netns, pod->ifname);
	if (r < 0)
		return failed(e, pod, "link", r);
	sandbox_mac_print(&seen.mac, mac);
	if (!seen.up)
		return MISSING(e, "%s in %s is switched off", pod->ifname, pod->netns);
	if (pod->mac_text[0] && strcasecmp(pod->mac_text, mac) != 0)
		return MISSING(e, "%s in %s has the MAC address %s instead of %s", pod->ifname,
			       pod->netns, mac, pod->mac_text);
	*ret_index = seen.index;
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
	const struct ifaddrmsg *body = nlmsg_data(hdr);
	struct search *s = arg;

	if ((int)body->ifa_index != s->index)
		return 0;
	for (size_t i = 0; i < s->pod->n_addresses; i++) {
		const struct address *a = &s->pod->addresses[i];
		struct nlattr *local = attribute(hdr, sizeof(*body), IFA_LOCAL)
					       ?: attribute(hdr, sizeof(*body), IFA_ADDRESS);

		if (body->ifa_family == a->family && is_address(local, a))
			s->addresses |= 1ULL << i;
	}
	return 0;
}

static void forget_addresses(void *arg)
{
	((struct search *)arg)->addresses = 0;
}

static int check_addresses(struct kern *inside, struct search *s, struct cni_error *e)
{
	const struct ifaddrmsg body = { .ifa_index = (uint32_t)s->index };
	AUTO(nlmsg_free) struct nl_msg *m = message_new(RTM_GETADDR, 0, &body, sizeof(body));
	char text[ADDRESS_TEXT];
	int r;

	if (!m)
		return cni_no_memory(e);
	r = kern_dump(inside, m, forget_addresses, read_address, s, NULL);
	if (r < 0)
		return failed(e, s->pod, "addresses", r);
	for (size_t i = 0; i < s->pod->n_addresses; i++)
		if (!(s->addresses & 1ULL << i))
			return MISSING(e, "%s in %s has lost its address %s", s->pod->ifname,
				       s->pod->netns, address_print(&s->pod->addresses[i], text));
	return 0;
}

/* --- routes --------------------------------------------------------------------------------- */

static bool is_route(const struct nlmsghdr *hdr, const struct cni_route *want)
{
	const struct rtmsg *body = nlmsg_data(hdr);
	struct nlattr *dst = attribute(hdr, sizeof(*body), RTA_DST);

	return body->rtm_family == want->dst.address.family &&
	       body->rtm_dst_len == want->dst.length &&
	       (want->dst.length == 0 || is_address(dst, &want->dst.address)) &&
	       is_address(attribute(hdr, sizeof(*body), RTA_GATEWAY), &want->gw);
}

static int read_route(const struct nlmsghdr *hdr, void *arg)
{
	const struct rtmsg *body = nlmsg_data(hdr);
	struct nlattr *oif = attribute(hdr, sizeof(*body), RTA_OIF),
		      *in = attribute(hdr, sizeof(*body), RTA_TABLE);
	const uint32_t table = in ? nla_get_u32(in) : body->rtm_table;
	struct search *s = arg;

	if (!oif || nla_get_s32(oif) != s->index || body->rtm_type != RTN_UNICAST)
		return 0;
	if (table == inside_table(s->index) && body->rtm_dst_len == 0)
		s->aside[body->rtm_family == AF_INET6] = true;
	for (size_t i = 0; i < s->pod->n_routes; i++)
		if (is_route(hdr, &s->pod->routes[i]))
			s->routes |= 1ULL << i;
	return 0;
}

static int read_routes(struct kern *inside, sa_family_t family, struct search *s)
{
	const struct rtmsg body = { .rtm_family = (uint8_t)family };
	AUTO(nlmsg_free) struct nl_msg *m = message_new(RTM_GETROUTE, 0, &body, sizeof(body));

	if (!m)
		return -ENOMEM;
	nla_put_u32(m, RTA_OIF, (uint32_t)s->index);
	return kern_dump(inside, m, NULL, read_route, s, NULL);
}

static int check_routes(struct kern *inside, struct search *s, struct cni_error *e)
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
	const struct ndmsg *body = nlmsg_data(hdr);
	struct nlattr *mac = attribute(hdr, sizeof(*body), NDA_LLADDR);

	*(bool *)arg = body->ndm_state & NUD_PERMANENT && mac &&
		       nla_len(mac) == (int)sizeof(pod_link_host_mac.bytes) &&
		       memcmp(nla_data(mac), pod_link_host_mac.bytes,
			      sizeof(pod_link_host_mac.bytes)) == 0;
	return 0;
}

static int check_neighbour(struct kern *inside, const struct search *s, sa_family_t family,
			   struct cni_error *e)
{
	const struct address gateway = pod_gateway(family);
	const struct ndmsg body = { .ndm_family = (uint8_t)family, .ndm_ifindex = s->index };
	AUTO(nlmsg_free) struct nl_msg *m = message_new(RTM_GETNEIGH, 0, &body, sizeof(body));
	char text[ADDRESS_TEXT];
	bool good = false;
	int r;

	if (!sandbox_has(s->pod, family))
		return 0;
	if (!m)
		return cni_no_memory(e);
	message_put_address(m, NDA_DST, &gateway);
	r = kern_get(inside, m, read_neighbour, &good, NULL);
	if (r < 0 && r != -ENOENT)
		return failed(e, s->pod, "neighbours", r);
	if (good)
		return 0;
	return MISSING(e, "%s in %s has lost the neighbour %s, behind which the node is",
		       s->pod->ifname, s->pod->netns, address_print(&gateway, text));
}

int inside_check(struct kern *inside, const struct sandbox *pod, struct cni_error *e)
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
