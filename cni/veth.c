/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/veth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/netlink/attributes.h"
#include "lib/netlink/request.h"

/* --- making --------------------------------------------------------------------------------- */

static void put_common(struct nl_msg *m, const char *name, const struct mac *mac, uint32_t mtu)
{
	nla_put_string(m, IFLA_IFNAME, name);
	nla_put(m, IFLA_ADDRESS, sizeof(mac->bytes), mac->bytes);
	if (mtu > 0)
		nla_put_u32(m, IFLA_MTU, mtu);
	nla_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
	nla_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
}

static struct nl_msg *pair_message(const struct netns *netns, const struct sandbox *pod)
{
	/* Only this end can be made up: the other does not know yet that it has a peer. */
	const unsigned flags = sandbox_has(pod, AF_INET6) ? 0 : IFF_UP;
	const struct ifinfomsg up = { .ifi_flags = flags, .ifi_change = flags };
	struct ifinfomsg peer = { 0 };
	struct nl_msg *m = request_new(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &up, sizeof(up));
	struct nlattr *info, *data, *end;

	if (!m)
		return NULL;
	put_common(m, pod->link, &pod_link_host_mac, pod->mtu);
	info = nla_nest_start(m, IFLA_LINKINFO);
	nla_put_string(m, IFLA_INFO_KIND, "veth");
	data = nla_nest_start(m, IFLA_INFO_DATA);
	end = nla_nest_start(m, VETH_INFO_PEER);
	nlmsg_append(m, &peer, sizeof(peer), NLMSG_ALIGNTO);
	put_common(m, pod->ifname, &pod->mac, pod->mtu);
	nla_put_u32(m, IFLA_NET_NS_FD, (uint32_t)netns->fd);
	nla_nest_end(m, end);
	nla_nest_end(m, data);
	nla_nest_end(m, info);
	return m;
}

static int forbid_dad(const char *name)
{
	char path[96];
	AUTO(close) int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/accept_dad", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, "0", 1) != 1 ? -errno : 0;
}

/*
 * For IPv6 this end comes up in a second step: the kernel gives it the address that the pod sends
 * to, and would check that for duplicates for two seconds, in which it is not there.
 */
static int bring_up(struct netlink *host, const struct sandbox *pod, struct cni_error *e)
{
	struct err why;
	int r = forbid_dad(pod->link);

	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot prepare %s for IPv6: %s", pod->link,
				strerror(-r));
	r = netlink_request(host, request_link_up(0, pod->link), &why);
	if (r < 0)
		cni_fail(e, CNI_CODE_IO, "the kernel did not set %s up: %s", pod->link, why.text);
	return r;
}

static int make(struct netlink *host, const struct netns *netns, const struct sandbox *pod,
		struct cni_error *e)
{
	struct err why;
	int r = netlink_request(host, pair_message(netns, pod), &why);

	if (r < 0)
		cni_fail(e, CNI_CODE_IO, "the kernel did not make the link %s with %s in %s: %s",
			 pod->link, pod->ifname, pod->netns, why.text);
	return r;
}

/* --- what is in the way --------------------------------------------------------------------- */

struct found {
	bool doomed;
	int peer;      /* the number of its other end where that is; 0: none */
	int peer_nsid; /* where that is, as our namespace numbers others; -1: here */
};

static int read_link(const struct nlmsghdr *hdr, void *arg)
{
	const struct nlattr *t[IFLA_MAX + 1];
	struct found *found = arg;
	struct ifinfomsg body;
	struct klink l;

	if (klink_read(hdr, &l) < 0 || attributes_read(hdr, &body, sizeof(body), t, IFLA_MAX) < 0)
		return -EBADMSG;
	found->doomed = pod_link_is_ours(l.name) && pod_link_is_doomed(l.group);
	found->peer = (int)attribute_u32(t[IFLA_LINK]);
	found->peer_nsid = t[IFLA_LINK_NETNSID] ? (int)attribute_u32(t[IFLA_LINK_NETNSID]) : -1;
	return 0;
}

/* By name, or by number where that is NULL. 0, -ENODEV, or another failure. */
static int find(struct netlink *nl, const char *name, int index, struct found *ret)
{
	return netlink_get(nl, ask_link((uint32_t)index, name), read_link, ret, NULL);
}

bool veth_is_going(struct netlink *host, struct netlink *inside, int index)
{
	struct found end = { 0 }, peer = { 0 };
	int r = find(inside, NULL, index, &end);

	if (r < 0)
		return r == -ENODEV;
	if (end.peer <= 0)
		return false;
	r = find(host, NULL, end.peer, &peer);
	/* Never was here; or has gone between the two questions, and then both ends have. */
	if (r == -ENODEV)
		return find(inside, NULL, index, &end) == -ENODEV;
	return r == 0 && peer.doomed && peer.peer == index;
}

static int read_nsid(const struct nlmsghdr *hdr, void *arg)
{
	const struct nlattr *t[NETNSA_MAX + 1];
	struct rtgenmsg body;

	if (attributes_read(hdr, &body, sizeof(body), t, NETNSA_MAX) < 0)
		return -EBADMSG;
	*(int *)arg = t[NETNSA_NSID] ? (int)attribute_u32(t[NETNSA_NSID]) : -1;
	return 0;
}

/* Whether the other end is in this very pod, be it under another name: then the pod uses it. */
static bool is_in_use(struct netlink *host, const struct netns *netns, const struct found *found)
{
	const struct rtgenmsg any = { 0 };
	struct nl_msg *m = request_new(RTM_GETNSID, 0, &any, sizeof(any));
	int nsid = -1;

	if (!m)
		return true;
	m = request_whole(m, nla_put_u32(m, NETNSA_FD, (uint32_t)netns->fd));
	return netlink_get(host, m, read_nsid, &nsid, NULL) < 0 ||
	       (nsid >= 0 && nsid == found->peer_nsid);
}

void veth_rest(void)
{
	const struct timespec a_while = { .tv_nsec = 2000000 };

	nanosleep(&a_while, NULL);
}

/* 0 when the name is free again; e says what make() was told. */
static int clear_the_way(struct netlink *host, const struct netns *netns, const struct sandbox *pod,
			 const struct deadline *deadline, struct cni_error *e)
{
	struct found found = { 0 };
	struct err why;
	int r = find(host, pod->link, 0, &found);

	while (r == 0 && found.doomed && deadline_left(deadline) > 0) {
		veth_rest();
		r = find(host, pod->link, 0, &found);
	}
	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return r;
	if (found.doomed)
		return cni_fail(e, CNI_CODE_TRY_AGAIN,
				"the link %s of an earlier pod is still being destroyed",
				pod->link);
	if (is_in_use(host, netns, &found))
		return cni_fail(e, CNI_CODE_ATTACHED,
				"%s has the other end of %s already, under another name than %s: "
				"DEL it before another ADD",
				pod->netns, pod->link, pod->ifname);
	r = veth_remove(host, pod->link, &why);
	if (r < 0)
		cni_fail(e, CNI_CODE_IO, "cannot remove the stale link %s: %s", pod->link,
			 why.text);
	return r;
}

int veth_make(struct netlink *host, const struct netns *netns, const struct sandbox *pod,
	      const struct deadline *deadline, struct cni_error *e)
{
	struct err ignored;
	int r = make(host, netns, pod, e);

	if (r == -EEXIST) {
		r = clear_the_way(host, netns, pod, deadline, e);
		r = r ?: make(host, netns, pod, e);
	}
	if (r < 0 || !sandbox_has(pod, AF_INET6))
		return r;
	r = bring_up(host, pod, e);
	if (r < 0)
		veth_remove(host, pod->link, &ignored);
	return r;
}

/* --- removing ------------------------------------------------------------------------------- */

int veth_remove(struct netlink *host, const char *name, struct err *err)
{
	int r = netlink_request(host, request_link_delete(0, name), err);

	return r == -ENODEV ? 0 : r;
}
