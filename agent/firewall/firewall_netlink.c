/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/firewall_netlink.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netlink/attr.h>
#include <string.h>

#include "lib/netlink/request.h"

/* In every message about tables, chains, rules, sets and elements the table's name is this one. */
#define NAME_OF_TABLE 1
_Static_assert(NFTA_TABLE_NAME == NAME_OF_TABLE && NFTA_CHAIN_TABLE == NAME_OF_TABLE &&
		       NFTA_RULE_TABLE == NAME_OF_TABLE && NFTA_SET_TABLE == NAME_OF_TABLE &&
		       NFTA_SET_ELEM_LIST_TABLE == NAME_OF_TABLE &&
		       NFTA_OBJ_TABLE == NAME_OF_TABLE && NFTA_FLOWTABLE_TABLE == NAME_OF_TABLE,
	       "the table's name has the same number everywhere");

static bool is_nftables(const struct nlmsghdr *hdr)
{
	return NFNL_SUBSYS_ID(hdr->nlmsg_type) == NFNL_SUBSYS_NFTABLES &&
	       nlmsg_valid_hdr((struct nlmsghdr *)(uintptr_t)hdr, sizeof(struct nfgenmsg));
}

static struct nlattr *attribute(const struct nlmsghdr *hdr, int type)
{
	/* libnl's prototype lacks the const. */
	return nlmsg_find_attr((struct nlmsghdr *)(uintptr_t)hdr, sizeof(struct nfgenmsg), type);
}

/* --- events --------------------------------------------------------------------------------- */

static bool is_of_our_table(const struct nlmsghdr *hdr)
{
	const struct nfgenmsg *body = nlmsg_data(hdr);
	const struct nlattr *name = attribute(hdr, NAME_OF_TABLE);

	return body->nfgen_family == NFPROTO_INET && name &&
	       nla_len(name) == (int)sizeof(FIREWALL_TABLE) &&
	       memcmp(nla_data(name), FIREWALL_TABLE, sizeof(FIREWALL_TABLE)) == 0;
}

static uint32_t number(const struct nlattr *a)
{
	return a && nla_len(a) >= (int)sizeof(uint32_t) ? ntohl(nla_get_u32(a)) : 0;
}

static void end_of_transaction(const struct nlmsghdr *hdr, struct firewall_news *news)
{
	const struct nlattr *name = attribute(hdr, NFTA_GEN_PROC_NAME);
	uint32_t process = number(attribute(hdr, NFTA_GEN_PROC_PID));

	if (!news->touching)
		return;
	news->touching = false;
	news->touched = true;
	news->generation = number(attribute(hdr, NFTA_GEN_ID));
	news->by[0] = '\0';
	if (name && process && nla_len(name) > 0)
		snprintf(news->by, sizeof(news->by), "%.*s (process %u)", nla_len(name),
			 (const char *)nla_data(name), process);
}

int firewall_news_take(const struct nlmsghdr *hdr, void *arg)
{
	struct firewall_news *news = arg;

	if (!is_nftables(hdr))
		return 0;
	if (NFNL_MSG_TYPE(hdr->nlmsg_type) == NFT_MSG_NEWGEN)
		end_of_transaction(hdr, news);
	else if (is_of_our_table(hdr))
		news->touching = true;
	return 0;
}

bool firewall_news_since(const struct firewall_news *news, uint32_t generation)
{
	return news->touching || (news->touched && (int32_t)(news->generation - generation) > 0);
}

int firewall_events_open(struct netlink **ret)
{
	static const unsigned groups[] = { NFNLGRP_NFTABLES, 0 };

	return netlink_events_open(NETLINK_NETFILTER, groups, 0, ret);
}

/* --- questions ------------------------------------------------------------------------------ */

static struct nl_msg *question(int type, uint8_t family)
{
	const struct nfgenmsg body = { .nfgen_family = family, .version = NFNETLINK_V0 };

	return request_new((NFNL_SUBSYS_NFTABLES << 8) | type, 0, &body, sizeof(body));
}

static int take_generation(const struct nlmsghdr *hdr, void *arg)
{
	uint32_t *ret = arg;

	if (is_nftables(hdr) && NFNL_MSG_TYPE(hdr->nlmsg_type) == NFT_MSG_NEWGEN)
		*ret = number(attribute(hdr, NFTA_GEN_ID));
	return 0;
}

int firewall_generation(struct netlink *nl, uint32_t *ret, struct err *err)
{
	return netlink_get(nl, question(NFT_MSG_GETGEN, NFPROTO_UNSPEC), take_generation, ret, err);
}

static void take_packets(const struct nlattr *object, const char *name, size_t len,
			 struct firewall_drops *ret)
{
	static const char start[] = "drop_";
	const struct nlattr *packets = nla_find(nla_data(object), nla_len(object),
						NFTA_COUNTER_PACKETS);

	if (!packets || nla_len(packets) < (int)sizeof(uint64_t) || len < sizeof(start) ||
	    memcmp(name, start, sizeof(start) - 1) != 0)
		return;
	for (enum firewall_drop d = 0; d < FIREWALL_DROPS; d++)
		if (strncmp(name + sizeof(start) - 1, firewall_drop_name(d),
			    len - (sizeof(start) - 1)) == 0)
			ret->packets[d] = be64toh(nla_get_u64(packets));
}

static int take_counter(const struct nlmsghdr *hdr, void *arg)
{
	const struct nlattr *name, *type, *data;

	if (!is_nftables(hdr) || NFNL_MSG_TYPE(hdr->nlmsg_type) != NFT_MSG_NEWOBJ ||
	    !is_of_our_table(hdr))
		return 0;
	name = attribute(hdr, NFTA_OBJ_NAME);
	type = attribute(hdr, NFTA_OBJ_TYPE);
	data = attribute(hdr, NFTA_OBJ_DATA);
	if (name && nla_len(name) > 0 && data && number(type) == NFT_OBJECT_COUNTER)
		take_packets(data, nla_data(name), (size_t)nla_len(name), arg);
	return 0;
}

static void forget_counters(void *arg)
{
	*(struct firewall_drops *)arg = (struct firewall_drops){ 0 };
}

int firewall_read_drops(struct netlink *nl, struct firewall_drops *ret, struct err *err)
{
	struct nl_msg *msg = question(NFT_MSG_GETOBJ, NFPROTO_INET);

	*ret = (struct firewall_drops){ 0 };
	if (msg)
		msg = request_whole(msg, nla_put_string(msg, NFTA_OBJ_TABLE, FIREWALL_TABLE));
	return netlink_dump(nl, msg, forget_counters, take_counter, ret, err);
}

int firewall_table_there(struct netlink *nl, struct err *err)
{
	struct nl_msg *msg = question(NFT_MSG_GETTABLE, NFPROTO_INET);
	int r;

	if (msg)
		msg = request_whole(msg, nla_put_string(msg, NFTA_TABLE_NAME, FIREWALL_TABLE));
	r = netlink_request(nl, msg, err);
	/* The subsystem is not there: then neither is a table. */
	if (r == -ENOENT || r == -EINVAL || r == -EOPNOTSUPP)
		return 0;
	return r < 0 ? r : 1;
}
