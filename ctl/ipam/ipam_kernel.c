/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ipam/ipam_kernel.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "agent/kernel/kernel_view.h"
#include "agent/node/lock.h"
#include "lib/cni/pod_link.h"
#include "lib/netlink/request.h"

void ipam_kernel_done(struct ipam_kernel *k)
{
	free(k->links);
	free(k->routes);
	*k = (struct ipam_kernel){ 0 };
}

/* The agent's lock shows only in its own network namespace. */
static bool is_agents_namespace(void)
{
	AUTO(fclose) FILE *in = fopen("/proc/net/unix", "re");
	AUTO(free) char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (in && !found && getline(&line, &room, in) > 0) {
		const char *at = strchr(line, '@');

		found = at && strcmp(at, "@" LOCK_NAME "\n") == 0;
	}
	return found;
}

static void forget_links(void *arg)
{
	((struct ipam_kernel *)arg)->n_links = 0;
}

static int take_link(const struct nlmsghdr *hdr, void *arg)
{
	struct ipam_kernel *l = arg;
	struct kernel_link *more;
	struct klink link;

	if (klink_read(hdr, &link) < 0 || !link.veth || !pod_link_is_ours(link.name) ||
	    pod_link_is_doomed(link.group))
		return 0;
	more = reallocarray(l->links, l->n_links + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->links = more;
	more[l->n_links].index = link.index;
	memcpy(more[l->n_links++].name, link.name, sizeof(more->name));
	return 0;
}

static int take_route(const struct nlmsghdr *hdr, void *arg)
{
	struct ipam_kernel *l = arg;
	struct kernel_route *more;
	struct kroute r;

	if (kroute_read(hdr, &r) < 0 || r.protocol != route_protocol)
		return 0;
	more = reallocarray(l->routes, l->n_routes + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->routes = more;
	more = &l->routes[l->n_routes];
	*more = (struct kernel_route){ .dst = r.dst };
	/*
	 * A link that is gone by now took its routes along. What leads to other nodes is none of a
	 * pod or a block here.
	 */
	if (!r.hop.oif || (!kroute_has_gateway(&r) && if_indextoname(r.hop.oif, more->link) &&
			   tunnel_of_name(more->link) < 0))
		l->n_routes++;
	return 0;
}

static int read_all(struct netlink *k, struct ipam_kernel *ret, struct err *err)
{
	int r = netlink_dump(k, ask_link(0, NULL), forget_links, take_link, ret, err);

	/* IPv4's come once; an IPv6 one that comes twice is found twice, and kept once. */
	r = r
		    ?: netlink_dump(k, ask_routes(AF_INET, route_protocol, 0, 0), NULL, take_route,
				    ret, err);
	return r
		       ?: netlink_dump(k, ask_routes(AF_INET6, route_protocol, 0, 0), NULL,
				       take_route, ret, err);
}

static int open_kernel(struct netlink **ret, struct err *err)
{
	int r = netlink_open(NETLINK_ROUTE, ret);

	return r < 0 ? err_set(err, r, "netlink: %s", strerror(-r)) : 0;
}

int ipam_kernel_read(struct ipam_kernel *ret, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r;

	if (!is_agents_namespace())
		return err_set(err, -ENXIO, "no agent runs in this network namespace");
	r = open_kernel(&k, err);
	return r ?: read_all(k, ret, err);
}

/* Not the kernel's own, which every IPv6 link has. */
static int take_use(const struct nlmsghdr *hdr, void *arg)
{
	struct kroute r;

	if (kroute_read(hdr, &r) == 0 && r.protocol != RTPROT_KERNEL)
		*(bool *)arg = true;
	return 0;
}

bool ipam_kernel_is_used(uint32_t link)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	bool used = false;

	/* What cannot be read counts as a use. */
	if (open_kernel(&k, NULL) < 0 ||
	    netlink_dump(k, ask_routes(AF_INET, 0, 0, link), NULL, take_use, &used, NULL) < 0 ||
	    netlink_dump(k, ask_routes(AF_INET6, 0, 0, link), NULL, take_use, &used, NULL) < 0)
		return true;
	return used;
}

int ipam_kernel_delete_link(uint32_t link, struct err *err)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	int r = open_kernel(&k, err);

	return r ?: netlink_request(k, request_link_delete(link, NULL), err);
}
