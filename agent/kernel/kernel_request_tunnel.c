/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for the overlay: its devices, their addresses and tables. */
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>

#include "agent/kernel/kernel_request_parts.h"

static int put_local(struct nl_msg *m, const struct address *local)
{
	return put_address(m, local->family == AF_INET ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6,
			   local);
}

/* The VNI goes into each: the kernel wants to hear it also when nothing about it changes. */
static int put_vxlan(struct nl_msg *m, const struct desired_tunnel *t, unsigned set)
{
	struct nlattr *info = nla_nest_start(m, IFLA_LINKINFO), *data;
	int err = info ? nla_put_string(m, IFLA_INFO_KIND, "vxlan") : -1;

	data = err ? NULL : nla_nest_start(m, IFLA_INFO_DATA);
	err = data ? nla_put_u32(m, IFLA_VXLAN_ID, t->is.vxlan.vni) : -1;
	if (!t->index)
		err = err ?: nla_put_u16(m, IFLA_VXLAN_PORT, htons(t->is.vxlan.port));
	if (set & TUNNEL_LOCAL)
		err = err ?: put_local(m, &t->is.vxlan.local);
	if (set & TUNNEL_LEARNING)
		err = err ?: nla_put_u8(m, IFLA_VXLAN_LEARNING, 0);
	if (set & TUNNEL_TTL)
		err = err ?: nla_put_u8(m, IFLA_VXLAN_TTL, 0);
	if (err == 0) {
		nla_nest_end(m, data);
		nla_nest_end(m, info);
	}
	return err;
}

struct nl_msg *request_tunnel(int tunnel, const struct desired_tunnel *t, unsigned set)
{
	const struct ifinfomsg body = { .ifi_index = (int)t->index,
					.ifi_flags = t->index ? 0 : IFF_UP,
					.ifi_change = t->index ? 0 : IFF_UP };
	struct nl_msg *m = request(RTM_NEWLINK, t->index ? 0 : NLM_F_CREATE | NLM_F_EXCL, &body,
				   sizeof(body));
	int err = 0;

	if (!m)
		return NULL;
	if (!t->index)
		err = nla_put_string(m, IFLA_IFNAME, tunnel_name(tunnel));
	if ((set & TUNNEL_MTU) && t->is.mtu)
		err = err ?: nla_put_u32(m, IFLA_MTU, t->is.mtu);
	if (set & TUNNEL_MAC)
		err = err ?: nla_put(m, IFLA_ADDRESS, sizeof(t->is.mac.bytes), t->is.mac.bytes);
	if (!t->index || (set & (TUNNEL_LOCAL | TUNNEL_LEARNING | TUNNEL_TTL)))
		err = err ?: put_vxlan(m, t, set);
	return whole(m, err);
}

struct nl_msg *request_link_delete(uint32_t link)
{
	return request(RTM_DELLINK, 0, &(struct ifinfomsg){ .ifi_index = (int)link },
		       sizeof(struct ifinfomsg));
}

struct nl_msg *request_address(const struct node_address *a, bool add)
{
	const struct ifaddrmsg body = { .ifa_family = (uint8_t)a->local.family,
					.ifa_prefixlen = a->subnet.length,
					.ifa_flags = add ? IFA_F_NODAD : 0,
					.ifa_index = a->link };
	struct nl_msg *m = request(add ? RTM_NEWADDR : RTM_DELADDR,
				   add ? NLM_F_CREATE | NLM_F_EXCL : 0, &body, sizeof(body));
	int err;

	if (!m)
		return NULL;
	err = put_address(m, IFA_LOCAL, &a->local);
	err = err ?: put_address(m, IFA_ADDRESS, &a->subnet.address);
	return whole(m, err);
}

struct nl_msg *ask_fdb(uint32_t link)
{
	struct nl_msg *m = request(RTM_GETNEIGH, 0, &(struct ndmsg){ .ndm_family = AF_BRIDGE },
				   sizeof(struct ndmsg));

	return m ? whole(m, nla_put_u32(m, NDA_IFINDEX, link)) : NULL;
}
