/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugins' link rule, tried on what they will need: netlink and JSON in one
 * static program. Prints the number of links in this namespace as JSON.
 */
#include <json-c/json.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "lib/netlink/netlink.h"

static int count(const struct nlmsghdr *hdr, void *arg)
{
	++*(int *)arg;
	return 0;
}

static void start_again(void *arg)
{
	*(int *)arg = 0;
}

int main(void)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, 0);
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct json_object *o = json_object_new_object();
	struct err err = { "" };
	int links = 0, r;

	if (!msg || !o || nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0)
		return 1;
	r = netlink_open(NETLINK_ROUTE, &k);
	if (r == 0)
		r = netlink_dump(k, msg, start_again, count, &links, &err);
	if (r < 0) {
		fprintf(stderr, "static-probe: %s\n", err.text[0] ? err.text : strerror(-r));
		return 1;
	}
	json_object_object_add(o, "links", json_object_new_int(links));
	puts(json_object_to_json_string(o));
	json_object_put(o);
	return 0;
}
