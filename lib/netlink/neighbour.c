/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/netlink/neighbour.h"

#include <linux/neighbour.h>

#include "lib/base/route_protocol.h"
#include "lib/netlink/attributes.h"

/* The kernel tells an FDB entry's own port, VNI, link or group of next hops where it has any. */
int kneighbour_read(const struct nlmsghdr *hdr, struct kneighbour *ret)
{
	const struct nlattr *t[NDA_MAX + 1];
	struct kneighbour n;
	struct ndmsg body;
	sa_family_t family;

	if (attributes_read(hdr, &body, sizeof(body), t, NDA_MAX) < 0 || body.ndm_ifindex <= 0)
		return -EBADMSG;
	n = (struct kneighbour){ .link = (uint32_t)body.ndm_ifindex,
				 .fdb = body.ndm_family == AF_BRIDGE };
	if (n.fdb) {
		family = attribute_length(t[NDA_DST]) == 4 ? AF_INET : AF_INET6;
		if (!attribute_mac(t[NDA_LLADDR], &n.mac) ||
		    (t[NDA_DST] && !attribute_address(t[NDA_DST], family, &n.address)))
			return -EBADMSG;
		n.permanent = (body.ndm_state & NUD_PERMANENT) && (body.ndm_flags & NTF_SELF);
		n.other = t[NDA_PORT] || t[NDA_VNI] || t[NDA_IFINDEX] || t[NDA_SRC_VNI] ||
			  t[NDA_NH_ID];
	} else {
		if ((body.ndm_family != AF_INET && body.ndm_family != AF_INET6) ||
		    !attribute_address(t[NDA_DST], body.ndm_family, &n.address))
			return -EBADMSG;
		attribute_mac(t[NDA_LLADDR], &n.mac);
		n.permanent = (body.ndm_state & NUD_PERMANENT) && !(body.ndm_flags & NTF_PROXY);
		n.ours = attribute_u8(t[NDA_PROTOCOL]) == route_protocol;
	}
	*ret = n;
	return 0;
}

int kneighbour_compare_key(const struct kneighbour *a, const struct kneighbour *b)
{
	int c = (a->link > b->link) - (a->link < b->link);

	c = c ?: a->fdb - b->fdb;
	if (c)
		return c;
	return a->fdb ? mac_compare(&a->mac, &b->mac) : address_compare(&a->address, &b->address);
}

bool kneighbour_same(const struct kneighbour *a, const struct kneighbour *b)
{
	return kneighbour_compare_key(a, b) == 0 && mac_compare(&a->mac, &b->mac) == 0 &&
	       address_compare(&a->address, &b->address) == 0 && a->other == b->other;
}

const char *kneighbour_print(const struct kneighbour *n, const char *dev,
			     char text[KNEIGHBOUR_TEXT])
{
	char address[ADDRESS_TEXT] = "nowhere", mac[MAC_TEXT];

	if (n->address.family != AF_UNSPEC)
		address_print(&n->address, address);
	if (n->fdb)
		snprintf(text, KNEIGHBOUR_TEXT, "FDB entry %s dst %s dev %s",
			 mac_print(&n->mac, mac), address, dev ?: "(gone)");
	else
		snprintf(text, KNEIGHBOUR_TEXT, "neighbour %s dev %s", address, dev ?: "(gone)");
	return text;
}
