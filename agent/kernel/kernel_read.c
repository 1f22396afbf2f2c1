/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's dumps and events into the view.
 *
 * The events were joined before the first dump, so a dump and the events after it make a whole.
 * A dump that failed proves nothing: no link counts as gone because of it.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/kernel/kernel_private.h"
#include "lib/base/log.h"
#include "lib/netlink/offload.h"
#include "lib/netlink/request.h"

#define TORN_ROUTES6 3
/* Room for what a flush of ten thousand routes and their return tell. */
#define EVENTS_BUFFER (16 * 1024 * 1024)

/* --- events --------------------------------------------------------------------------------- */

#define FIELD(type, field) (NLMSG_HDRLEN + offsetof(type, field))
#define LOAD_BYTE(k)       BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (k))
#define IF_EQUAL(k, t, f)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (t), (f))
#define PASS               BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define DROP               BPF_STMT(BPF_RET | BPF_K, 0)

/*
 * Lets by what may concern us, so that the agent sleeps while a routing daemon feeds a million
 * routes to the kernel and every neighbour on the LAN is probed each minute. New routes of
 * daemons that do not replace another, neighbours without our protocol number, and what bridges
 * learn are left out.
 * Numbers in netlink headers are in host order, BPF's loads in network order.
 */
static int attach_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
		IF_EQUAL(htons(RTM_NEWROUTE), 3, 0),
		IF_EQUAL(htons(RTM_NEWNEIGH), 11, 0),
		IF_EQUAL(htons(RTM_DELNEIGH), 10, 0),
		PASS,
		/* A new route: of a daemon, and takes no other's place? */
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_flags)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, htons(NLM_F_REPLACE), 5, 0),
		LOAD_BYTE(FIELD(struct rtmsg, rtm_protocol)),
		IF_EQUAL(RTPROT_BIRD, 4, 0),
		IF_EQUAL(RTPROT_ZEBRA, 3, 0),
		IF_EQUAL(RTPROT_BGP, 2, 0),
		IF_EQUAL(RTPROT_OSPF, 1, 0),
		PASS,
		DROP,
		/* A neighbour: of a device's own table, which bridges do not tell as such? */
		LOAD_BYTE(FIELD(struct ndmsg, ndm_family)),
		IF_EQUAL(AF_BRIDGE, 0, 2),
		LOAD_BYTE(FIELD(struct ndmsg, ndm_flags)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NTF_SELF, 7, 8),
		/* A has where its attributes start, X which one is looked for. */
		BPF_STMT(BPF_LD | BPF_IMM, NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct ndmsg))),
		BPF_STMT(BPF_LDX | BPF_IMM, NDA_PROTOCOL),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_NLATTR)),
		IF_EQUAL(0, 4, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, NLA_HDRLEN),
		IF_EQUAL(route_protocol, 0, 1),
		PASS,
		DROP,
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

int kernel_join(struct kernel *k, struct err *err)
{
	static const unsigned groups[] = {
		RTNLGRP_LINK,         RTNLGRP_IPV4_ROUTE,   RTNLGRP_IPV6_ROUTE,
		RTNLGRP_NEIGH,        RTNLGRP_IPV4_IFADDR,  RTNLGRP_IPV6_IFADDR,
		RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF, 0,
	};
	int r = netlink_events_open(NETLINK_ROUTE, groups, EVENTS_BUFFER, &k->events);

	if (r < 0)
		return err_set(err, r, "the kernel's events: %s", strerrordesc_np(-r));
	r = attach_filter(netlink_fd(k->events));
	/* Without it all works, with more wake-ups. */
	if (r < 0)
		log_warning("kernel", "cannot filter events: %s", strerrordesc_np(-r));
	return 0;
}

static int take(const struct nlmsghdr *hdr, void *arg)
{
	return kernel_view_take(arg, hdr);
}

static void enable_delivery(struct kernel *k)
{
	if ((k->view.gone.n || k->view.bird_lost.port) && k->deliver)
		sd_event_source_set_enabled(k->deliver, SD_EVENT_ONESHOT);
}

/* No message tells of it, but one tells that something of the link was changed. */
static void read_offloads(struct kernel *k)
{
	for (int i = 0; i < TUNNELS; i++) {
		struct held_link *l = kernel_view_link_named(&k->view, tunnel_name(i));
		bool on;

		if (l && l->tunnel && l->offload_stale && offload_read(l->link.name, &on) == 0)
			kernel_view_offload(&k->view, l, on);
	}
}

void kernel_drain(struct kernel *k)
{
	static struct log_limit limit = { .interval_ms = 60000 };
	int r = netlink_events_read(k->events, take, &k->view);

	if (r < 0) {
		/* Whatever was missed, a dump tells it. */
		log_limited(&limit, LOG_LEVEL_INFO, "kernel", "%s: reading all state again",
			    r == -ENOBUFS ? "the kernel dropped events" : strerrordesc_np(-r));
		k->reread = true;
		k->view.news = true;
	}
	if (k->view.torn) {
		k->view.torn = false;
		k->reread = k->view.news = true;
	}
	kernel_view_settle(&k->view);
	read_offloads(k);
	enable_delivery(k);
	/* The pass under way does it itself. */
	if (k->view.news && k->pass && !k->working)
		pass_mark(k->pass);
}

/* --- dumps ---------------------------------------------------------------------------------- */

struct dump {
	struct kernel_view *view;
	enum view_part part;
};

static void restart(void *arg)
{
	struct dump *d = arg;

	kernel_view_begin(d->view, d->part);
}

static int take_dumped(const struct nlmsghdr *hdr, void *arg)
{
	int err = kernel_view_take(((struct dump *)arg)->view, hdr);

	/* What makes no sense to us is passed over: newer kernels may say more. */
	return err == -EBADMSG ? 0 : err;
}

static int dump(struct kernel *k, enum view_part part, struct nl_msg *msg, struct err *err)
{
	struct dump d = { &k->view, part };
	int r = netlink_dump(k->netlink, msg, restart, take_dumped, &d, err);

	if (r == 0)
		kernel_view_end(&k->view, part);
	return r;
}

/*
 * Where links come and go all the time, every dump is torn. What a torn one showed is true all
 * the same, and new links are told by events; those that it did not show are asked for one by one.
 */
static int finish_torn_links(struct kernel *k, struct err *err)
{
	/* Backwards: what is gone is dropped on the way. */
	for (size_t i = k->view.links.n; i-- > 0;) {
		uint32_t index = k->view.links.v[i]->link.index;
		int r;

		if (k->view.links.v[i]->h.seen == k->view.generation)
			continue;
		r = netlink_get(k->netlink, ask_link(index, NULL), take, &k->view, err);
		if (r == -ENODEV)
			kernel_view_drop_link(&k->view, index);
		else if (r < 0)
			return r;
	}
	return 0;
}

static int dump_links(struct kernel *k, struct err *err)
{
	int r = dump(k, VIEW_LINKS, ask_link(0, NULL), err);

	/* At the start there is nothing that a torn dump could be held against. */
	if (r == -EINTR && k->stats.compares)
		r = finish_torn_links(k, err);
	return r;
}

/* The kernel does not say when such a dump is torn; events that came meanwhile do. */
static int dump_routes6(struct kernel *k, enum view_part part, uint8_t protocol, struct err *err)
{
	int r = 0;

	for (int i = 0; i < TORN_ROUTES6; i++) {
		uint64_t told;

		kernel_drain(k);
		r = dump(k, part, ask_routes(AF_INET6, protocol, 0, 0), err);
		told = k->view.route6_events;
		kernel_drain(k);
		if (r < 0 || k->view.route6_events == told)
			break;
	}
	return r == -EAFNOSUPPORT || r == -EOPNOTSUPP ? 0 : r;
}

static int dump_fdb(struct kernel *k, struct err *err)
{
	static const enum view_part parts[] = { VIEW_FDB, VIEW_FDB6 };
	int r = 0;

	for (int i = 0; r == 0 && i < TUNNELS; i++) {
		const struct held_link *l = kernel_view_link_named(&k->view, tunnel_name(i));

		if (l && l->tunnel)
			r = dump(k, parts[i], ask_fdb(l->link.index), err);
		/* It went meanwhile, and its event tells. */
		r = r == -ENODEV ? 0 : r;
	}
	return r;
}

static int take_gateway(const struct nlmsghdr *hdr, void *arg)
{
	return kernel_view_take_gateway(arg, hdr);
}

int kernel_read_gateways(struct kernel *k)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };

	k->view.gateways.n = k->view.others.n = 0;
	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t p = 0; p < ARRAY_SIZE(gateway_protocols); p++) {
			int r = netlink_dump(
				k->netlink,
				ask_routes(families[f], gateway_protocols[p], RT_TABLE_MAIN, 0),
				NULL, take_gateway, &k->view, NULL);

			/* -ENOENT: IPv6's main table is there with its first route. */
			if (r < 0 && r != -ENOENT && families[f] == AF_INET)
				return r;
		}
	k->view.gateways_stale = false;
	return 0;
}

static int take_way(const struct nlmsghdr *hdr, void *arg)
{
	struct route_lookup *l = arg;

	return hdr->nlmsg_type == RTM_NEWROUTE ? kroute_read(hdr, &l->route) : 0;
}

/* The kernel refuses where no route leads; what else it may say means the same to us. */
int kernel_look_up(struct kernel *k, const struct address *to)
{
	struct route_lookup l = { .to = *to };

	if (kernel_view_lookup(&k->view, to))
		return 0;
	l.err = netlink_get(k->netlink, ask_way(to), take_way, &l, NULL);
	if (l.err == -ENOMEM)
		return -ENOMEM;
	return kernel_view_put_lookup(&k->view, &l);
}

int kernel_reread(struct kernel *k, struct err *err)
{
	int r;

	/* Before the first of them: events lost from now on make for another. */
	k->reread = false;
	r = dump_links(k, err);
	r = r ?: dump(k, VIEW_ADDRESSES, ask_addresses(AF_UNSPEC, 0), err);
	r = r ?: dump(k, VIEW_ROUTES4, ask_routes(AF_INET, route_protocol, 0, 0), err);
	r = r ?: dump(k, VIEW_STATICS4, ask_routes(AF_INET, static_route_protocol, 0, 0), err);
	r = r ?: dump_routes6(k, VIEW_ROUTES6, route_protocol, err);
	r = r ?: dump_routes6(k, VIEW_STATICS6, static_route_protocol, err);
	r = r ?: dump(k, VIEW_NEIGHBOURS, ask_neighbours(0), err);
	r = r ?: dump_fdb(k, err);
	r = r ?: netlink_dump(k->netlink, ask_neighbour_tables(), NULL, take, &k->view, err);
	r = r ?: kernel_read_gateways(k);
	if (r < 0) {
		k->reread = true;
		return err_wrap(err, r, "reading the kernel's state");
	}
	k->view.ways++;
	/* Without IPv6 in the kernel there is none. */
	netlink_get(k->netlink, ask_host_conf(AF_INET), take, &k->view, NULL);
	netlink_get(k->netlink, ask_host_conf(AF_INET6), take, &k->view, NULL);
	kernel_drain(k);
	return 0;
}

int kernel_read_link(struct kernel *k, struct kernel_view *view, const char *name, struct err *err)
{
	return netlink_get(k->netlink, ask_link(0, name), take, view, err);
}

/* --- one pod's ------------------------------------------------------------------------------ */

int kernel_read_pod(struct kernel *k, const char *name, struct kernel_view *ret, struct err *err)
{
	const struct held_link *l;
	uint32_t index;
	int r = kernel_read_link(k, ret, name, err);

	if (r < 0)
		return r;
	l = kernel_view_link_named(ret, name);
	if (!l)
		return -ENODEV;
	index = l->link.index;
	r = netlink_dump(k->netlink, ask_routes(AF_INET, route_protocol, RT_TABLE_MAIN, index),
			 NULL, take, ret, err);
	r = r ?: netlink_dump(k->netlink, ask_neighbours(index), NULL, take, ret, err);
	if (r == 0 && (l->link.known & CONF_BIT(CONF6_FORWARDING))) {
		/* Before its first route there is no main table for IPv6. */
		r = netlink_dump(k->netlink,
				 ask_routes(AF_INET6, route_protocol, RT_TABLE_MAIN, index), NULL,
				 take, ret, err);
		r = r == -ENOENT ? 0 : r;
		r = r
			    ?: netlink_dump(k->netlink, ask_addresses(AF_INET6, index), NULL, take,
					    ret, err);
	}
	return r;
}
