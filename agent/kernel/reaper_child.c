/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/reaper_child.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cni/pod_link.h"
#include "lib/netlink/kern.h"

/* Links that go at once: see docs/BENCHMARKS.md for what another number costs. */
#define AT_ONCE 16

struct round {
	int doomed[AT_ONCE];
	size_t n;
	bool stranger; /* somebody else's link is in our group: no deletion by group */
};

/* --- the dump ------------------------------------------------------------------------------- */

static bool is_veth(struct nlattr *info)
{
	struct nlattr *attrs[IFLA_INFO_MAX + 1];

	return info && nla_parse_nested(attrs, IFLA_INFO_MAX, info, NULL) == 0 &&
	       attrs[IFLA_INFO_KIND] && strcmp(nla_get_string(attrs[IFLA_INFO_KIND]), "veth") == 0;
}

static int see_link(const struct nlmsghdr *hdr, void *arg)
{
	const struct ifinfomsg *link = nlmsg_data(hdr);
	struct nlattr *attrs[IFLA_MAX + 1];
	struct round *round = arg;
	uint32_t group;
	bool ours;

	if (hdr->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)hdr, sizeof(*link), attrs, IFLA_MAX, NULL) <
		    0 ||
	    !attrs[IFLA_IFNAME] || !attrs[IFLA_GROUP])
		return 0;
	group = nla_get_u32(attrs[IFLA_GROUP]);
	if (!pod_link_is_doomed(group))
		return 0;
	ours = pod_link_is_ours(nla_get_string(attrs[IFLA_IFNAME])) &&
	       is_veth(attrs[IFLA_LINKINFO]);
	round->stranger = round->stranger || (!ours && group == GOING_GROUP);
	if (ours && round->n < AT_ONCE)
		round->doomed[round->n++] = link->ifi_index;
	return 0;
}

static void start_over(void *arg)
{
	*(struct round *)arg = (struct round){ 0 };
}

static int find_doomed(struct kern *k, struct round *ret, struct err *err)
{
	AUTO(nlmsg_free) struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, 0);
	struct ifinfomsg body = { .ifi_family = AF_UNSPEC };

	if (!msg || nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) < 0)
		return -ENOMEM;
	return kern_dump(k, msg, start_over, see_link, ret, err);
}

/* --- the deed ------------------------------------------------------------------------------- */

static struct nl_msg *message(int type, int index, uint32_t group)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, 0);
	struct ifinfomsg body = { .ifi_family = AF_UNSPEC, .ifi_index = index };

	if (msg && nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO) == 0 &&
	    (!group || nla_put_u32(msg, IFLA_GROUP, group) == 0))
		return msg;
	nlmsg_free(msg);
	return NULL;
}

static int send_one(struct kern *k, int type, int index, uint32_t group, struct err *err)
{
	AUTO(nlmsg_free) struct nl_msg *msg = message(type, index, group);
	int r = msg ? kern_request(k, msg, err) : -ENOMEM;

	/* It has vanished by itself, with its pod's namespace. */
	return r == -ENODEV ? 0 : r;
}

static int destroy(struct kern *k, const struct round *round, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < round->n; i++)
		r = round->stranger ? send_one(k, RTM_DELLINK, round->doomed[i], 0, err)
				    : send_one(k, RTM_SETLINK, round->doomed[i], GOING_GROUP, err);
	if (r == 0 && !round->stranger)
		r = send_one(k, RTM_DELLINK, 0, GOING_GROUP, err);
	return r;
}

void reap(struct reaped *ret)
{
	AUTO(kern_close) struct kern *k = NULL;
	struct round round = { 0 };
	struct err err = { "" };
	int r = kern_open(NETLINK_ROUTE, &k);

	r = r ?: find_doomed(k, &round, &err);
	if (r == 0 && round.n > 0)
		r = destroy(k, &round, &err);
	*ret = (struct reaped){ .result = r, .destroyed = r == 0 ? (uint32_t)round.n : 0 };
	ret->more = ret->destroyed == AT_ONCE;
	ret->why = err;
	if (r < 0 && !err.text[0])
		err_set(&ret->why, r, "%s", strerror(-r));
}

_Noreturn void reaper_child(int socket)
{
	char request;

	while (TEMP_FAILURE_RETRY(recv(socket, &request, 1, 0)) == 1) {
		struct reaped reply;

		reap(&reply);
		if (send(socket, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}
