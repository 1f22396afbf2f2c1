/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/apply_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/netlink/offload.h"
#include "lib/netlink/request.h"

/* So many messages are in memory at a time. */
#define PIECE 512

/* --- /proc/sys ------------------------------------------------------------------------------ */

static int write_sysctl(const char *path, int32_t value)
{
	AUTO(close) int fd = open(path, O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", value);

	if (fd < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

static int set_forwarding(sa_family_t family)
{
	return write_sysctl(family == AF_INET ? "/proc/sys/net/ipv4/ip_forward"
					      : "/proc/sys/net/ipv6/conf/all/forwarding",
			    1);
}

/* netlink sets IPv4's alone. */
static int set_conf6(const struct change *c)
{
	char path[96];
	int first = 0;

	for (enum devconf i = 0; i < N_DEVCONF; i++) {
		int32_t value;
		int err;

		if (!(c->differ & CONF_BIT(i)) || devconf_info[i].family != AF_INET6 ||
		    !desired_conf(&c->link, i, &value))
			continue;
		snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", c->link.name,
			 devconf_info[i].name);
		err = write_sysctl(path, value);
		first = first ?: err;
	}
	return first;
}

static void apply_files(struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++) {
		struct change *c = &changes->v[i];

		if (c->kind == CHANGE_HOST)
			c->result = set_forwarding(c->family);
		else if (c->kind == CHANGE_LINK)
			c->result = set_conf6(c);
		else if (c->kind == CHANGE_TUNNEL && c->want->index && (c->set & VXLAN_OFFLOAD))
			c->result = offload_write(tunnel_name(c->tunnel), c->want->is.offload);
	}
}

/* --- batches -------------------------------------------------------------------------------- */

struct batch {
	struct netlink *netlink;
	struct netlink_op ops[PIECE];
	struct change *of[PIECE];
	size_t n;
	int err;
	struct applied *applied;
};

/* What is to be removed and is not there is removed. */
static bool is_fine(const struct netlink_op *op)
{
	int type = nlmsg_hdr(op->msg)->nlmsg_type;

	if (op->result == 0)
		return true;
	if (type == RTM_DELROUTE)
		return op->result == -ESRCH;
	if (type == RTM_DELNEIGH)
		return op->result == -ENOENT;
	if (type == RTM_DELADDR)
		return op->result == -EADDRNOTAVAIL;
	if (type == RTM_DELLINK)
		return op->result == -ENODEV;
	/* The kernel has made it by itself, after detection was switched off; or it is there. */
	return type == RTM_NEWADDR && op->result == -EEXIST;
}

/* EEXIST (a foreign route) and ENODEV (the link is gone) are not failures. */
static bool is_failure(const struct change *c)
{
	/* Another device has its VNI and port. */
	if (c->kind == CHANGE_TUNNEL && c->result == -EEXIST)
		return true;
	return c->result < 0 && c->result != -EEXIST && c->result != -ENODEV;
}

static void flush(struct batch *b)
{
	int r = b->n ? netlink_batch(b->netlink, b->ops, b->n) : 0;

	if (r < 0 && !b->err)
		b->err = r;
	for (size_t i = 0; i < b->n; i++) {
		struct change *c = b->of[i];

		if (b->ops[i].result == 0 && c->kind == CHANGE_LINK &&
		    nlmsg_hdr(b->ops[i].msg)->nlmsg_type == RTM_DELADDR)
			c->removed6 = true;
		if (!is_fine(&b->ops[i]) && !c->result) {
			c->result = b->ops[i].result;
			if (is_failure(c) && b->ops[i].extack[0] && !b->applied->why.text[0])
				err_set(&b->applied->why, 0, "%s", b->ops[i].extack);
		}
		nlmsg_free(b->ops[i].msg);
	}
	b->n = 0;
}

static void queue(struct batch *b, struct change *c, struct nl_msg *m)
{
	if (!m) {
		c->result = c->result ?: -ENOMEM;
		return;
	}
	if (b->n == PIECE)
		flush(b);
	b->of[b->n] = c;
	b->ops[b->n++] = (struct netlink_op){ .msg = m };
}

static struct nl_msg *link_conf(const struct change *c)
{
	struct klink l = { .index = c->link.index };

	for (enum devconf i = 0; i < N_DEVCONF; i++)
		if (c->differ & CONF_BIT(i))
			desired_conf(&c->link, i, &l.conf[i]);
	return request_link_conf(&l, c->differ, c->up);
}

/*
 * The message for the settings comes last of them and also when IPv4's are right already: it has
 * the kernel tell the link as it then is, after whatever it told before the files were written.
 */
static void send_link(struct batch *b, struct change *c)
{
	const struct address address = pod_gateway(AF_INET6);
	const uint32_t index = c->link.index;
	const struct kaddress gateway6 = { .link = index,
					   .local = address,
					   .subnet = prefix_of(&address, 64) };

	if (c->differ & CONF_BIT(CONF_PROXY_DELAY))
		queue(b, c, request_proxy_delay(index));
	queue(b, c, link_conf(c));
	/*
	 * The kernel makes the same address when the link is ready, which may be any moment now,
	 * and one that it made before detection was switched off is tentative for a second.
	 */
	if (c->gateway6 != GATEWAY6_READY) {
		queue(b, c, request_address_delete(&gateway6));
		queue(b, c, request_address_add(&gateway6));
	}
}

static struct nl_msg *tunnel_message(const struct change *c)
{
	const struct tunnel *is = &c->want->is;
	struct klink l = {
		.index = c->want->index, .mtu = is->mtu, .mac = is->mac, .tunnel = is->vxlan
	};

	strcpy(l.name, tunnel_name(c->tunnel));
	return request_vxlan(&l, c->set);
}

static void send_change(struct batch *b, struct change *c)
{
	switch (c->kind) {
	case CHANGE_HOST:
		break;
	case CHANGE_LINK:
		send_link(b, c);
		break;
	case CHANGE_TUNNEL:
		/* Where all that differs is the offload, no message is needed. */
		if (c->set & ~(unsigned)VXLAN_OFFLOAD)
			queue(b, c, tunnel_message(c));
		break;
	case CHANGE_TUNNEL_GONE:
		queue(b, c, request_link_delete(c->index, NULL));
		break;
	case CHANGE_ADDRESS:
		queue(b, c, request_address_add(&c->address));
		break;
	case CHANGE_ADDRESS_GONE:
		queue(b, c, request_address_delete(&c->address));
		break;
	case CHANGE_NEIGHBOUR:
		queue(b, c, request_neighbour_set(&c->neighbour));
		break;
	case CHANGE_ROUTE:
		queue(b, c,
		      c->replaces ? request_route_replace(&c->route)
				  : request_route_add(&c->route));
		break;
	case CHANGE_ROUTE_OLD:
	case CHANGE_ROUTE_GONE:
		if (!c->forget)
			queue(b, c, request_route_delete(&c->route));
		break;
	case CHANGE_NEIGHBOUR_GONE:
		if (!c->forget)
			queue(b, c, request_neighbour_delete(&c->neighbour));
		break;
	}
}

/* What was to give way had gone meanwhile, so there is nothing to replace. */
static void add_unreplaced(struct batch *b, struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++) {
		struct change *c = &changes->v[i];

		if (c->kind != CHANGE_ROUTE || !c->replaces ||
		    (c->result != -ENOENT && c->result != -ESRCH))
			continue;
		c->result = 0;
		queue(b, c, request_route_add(&c->route));
	}
	flush(b);
}

/* --- routes that could not be added ---------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	return kroute_compare_key(&(*(struct change *const *)a)->route,
				  &(*(struct change *const *)b)->route);
}

/* Routes that met another; sorted by key. */
struct blocked {
	struct change **v;
	struct kroute *by; /* .table 0: not found yet */
	size_t n;
};

static int compare_route(const struct nlmsghdr *hdr, void *arg)
{
	struct blocked *b = arg;
	struct change key = { 0 }, *p = &key, **hit;
	struct kroute r;

	if (hdr->nlmsg_type != RTM_NEWROUTE || kroute_read(hdr, &r) < 0)
		return 0;
	key.route = r;
	hit = bsearch(&p, b->v, b->n, sizeof(*b->v), by_key);
	if (!hit)
		return 0;
	/* The wanted one itself decides; else one of ours before a foreign one. */
	struct kroute *by = &b->by[hit - b->v];
	if (by->table == 0 || kroute_compare(&r, &(*hit)->route) == 0 ||
	    (route_protocol_is_ours(r.protocol) && kroute_compare(by, &(*hit)->route) != 0))
		*by = r;
	return 0;
}

/* One dump for each table that has any: the kernel cannot be asked for a prefix alone. */
static int find_blocking(struct netlink *nl, struct blocked *b)
{
	const struct kroute *last = NULL;

	for (size_t i = 0; i < b->n; i++) {
		const struct kroute *r = &b->v[i]->route;
		int err;

		if (last && last->table == r->table &&
		    last->dst.address.family == r->dst.address.family)
			continue;
		last = r;
		err = netlink_dump(nl, ask_routes(r->dst.address.family, 0, r->table, 0), NULL,
				   compare_route, b, NULL);
		if (err < 0)
			return err;
	}
	return 0;
}

/* One of ours that the view did not know of: out of the way with it, and once more. */
static int take_over(struct netlink *nl, const struct kroute *old, const struct kroute *r)
{
	AUTO(nlmsg_free) struct nl_msg *gone = request_route_delete(old);
	AUTO(nlmsg_free) struct nl_msg *add = request_route_add(r);
	struct netlink_op ops[] = { { .msg = gone }, { .msg = add } };
	int err;

	if (!gone || !add)
		return -ENOMEM;
	err = netlink_batch(nl, ops, ARRAY_SIZE(ops));
	return err < 0 ? err : ops[1].result;
}

static void settle_blocked(struct netlink *nl, struct kernel_view *view, struct change *c,
			   const struct kroute *by)
{
	if (by->table == 0) {
		c->result = -EAGAIN; /* it went away meanwhile */
	} else if (kroute_compare(by, &c->route) == 0) {
		c->result = 0;
		c->repair = false;
		kernel_view_put_route(view, &c->route, NULL);
	} else if (route_protocol_is_ours(by->protocol)) {
		c->result = take_over(nl, by, &c->route);
		if (c->result == 0) {
			c->done = true;
			kernel_view_drop_route(view, by);
			kernel_view_put_route(view, &c->route, NULL);
		}
	} else {
		kernel_view_conflict(view, &c->route, by);
	}
}

static int settle_all_blocked(struct netlink *nl, struct kernel_view *view, struct changes *changes)
{
	AUTO(free) struct change **v = calloc(changes->n + 1, sizeof(struct change *));
	AUTO(free) struct kroute *by = NULL;
	struct blocked b = { .v = v };
	int err;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < changes->n; i++)
		if (changes->v[i].kind == CHANGE_ROUTE && changes->v[i].result == -EEXIST)
			v[b.n++] = &changes->v[i];
	if (b.n == 0)
		return 0;
	qsort(v, b.n, sizeof(*v), by_key);
	by = calloc(b.n, sizeof(*by));
	if (!by)
		return -ENOMEM;
	b.by = by;
	err = find_blocking(nl, &b);
	for (size_t i = 0; err == 0 && i < b.n; i++)
		settle_blocked(nl, view, v[i], &by[i]);
	return err;
}

/* --- results -------------------------------------------------------------------------------- */

static void note_link(struct kernel_view *view, const struct change *c)
{
	struct held_link *l = kernel_view_link(view, c->link.index);

	if (!l)
		return;
	for (enum devconf i = 0; i < N_DEVCONF; i++)
		if (c->differ & CONF_BIT(i))
			desired_conf(&c->link, i, &l->link.conf[i]);
	if (c->up)
		l->link.flags |= IFF_UP;
	if (c->gateway6 != GATEWAY6_READY)
		l->gateway6 = GATEWAY6_READY;
	l->own_removals += c->removed6;
}

/* A new device is in the view when its event is read, which is before anything is decided. */
static void note_tunnel(struct kernel_view *view, const struct change *c)
{
	struct held_link *l = c->want->index ? kernel_view_link(view, c->want->index) : NULL;
	const struct tunnel *is = &c->want->is;

	/* Its addresses are no further repairs. */
	if (!l) {
		view->tunnels[c->tunnel].h.confirmed = false;
		return;
	}
	l->link.tunnel = is->vxlan;
	l->link.mac = is->mac;
	l->link.mtu = is->mtu ?: l->link.mtu;
	if (c->set & VXLAN_OFFLOAD)
		l->offload = is->offload;
}

static void note(struct kernel_view *view, struct change *c, uint64_t now)
{
	struct presence *h;

	c->done = !c->forget;
	switch (c->kind) {
	case CHANGE_HOST:
		if (c->family == AF_INET)
			view->host4.conf[CONF_FORWARDING] = 1;
		else
			view->host6.conf[CONF6_FORWARDING] = 1;
		change_presence(c, view)->confirmed = true;
		break;
	case CHANGE_LINK:
		note_link(view, c);
		break;
	case CHANGE_TUNNEL:
		note_tunnel(view, c);
		break;
	case CHANGE_TUNNEL_GONE:
		kernel_view_drop_link(view, c->index);
		/* Nobody misses one that is not wanted. */
		view->tunnels[c->tunnel].h.confirmed &= c->want->wanted;
		break;
	case CHANGE_ADDRESS:
		kernel_view_put_address(view, &c->address);
		break;
	case CHANGE_ADDRESS_GONE:
		kernel_view_drop_address(view, &c->address);
		break;
	case CHANGE_NEIGHBOUR:
		kernel_view_put_neighbour(view, &c->neighbour);
		break;
	case CHANGE_ROUTE:
		if (c->replaces)
			kernel_view_replace_route(view, &c->route);
		else
			kernel_view_put_route(view, &c->route, NULL);
		break;
	case CHANGE_ROUTE_OLD:
	case CHANGE_ROUTE_GONE:
		kernel_view_drop_route(view, &c->route);
		break;
	case CHANGE_NEIGHBOUR_GONE:
		kernel_view_drop_neighbour(view, &c->neighbour);
		break;
	}
	h = c->repair ? change_presence(c, view) : NULL;
	if (h)
		fight_repaired(&h->fight, now);
}

static void count(const struct kernel_view *view, const struct changes *changes,
		  struct applied *ret)
{
	struct err extack = ret->why;
	char text[CHANGE_TEXT];

	for (size_t i = 0; i < changes->n; i++) {
		const struct change *c = &changes->v[i];

		ret->again |= c->done && ((c->kind == CHANGE_TUNNEL && !c->want->index) ||
					  c->kind == CHANGE_TUNNEL_GONE);
		if (is_failure(c) && ret->failed++ == 0)
			err_set(&ret->why, 0, "%s: %s%s%s", change_print(c, view, text),
				strerrordesc_np(-c->result) ?: "refused",
				extack.text[0] ? ": " : "", extack.text);
	}
}

int apply_kernel(struct netlink *nl, struct kernel_view *view, struct changes *changes,
		 uint64_t now, struct applied *ret)
{
	AUTO(free) struct batch *b = malloc(sizeof(*b));
	int err;

	*ret = (struct applied){ 0 };
	if (!b)
		return -ENOMEM;
	b->netlink = nl;
	b->applied = ret;
	b->n = 0;
	b->err = 0;

	apply_files(changes);
	for (size_t i = 0; i < changes->n; i++)
		send_change(b, &changes->v[i]);
	flush(b);
	add_unreplaced(b, changes);
	for (size_t i = 0; i < changes->n; i++)
		if (changes->v[i].result == 0)
			note(view, &changes->v[i], now);
	err = settle_all_blocked(nl, view, changes);
	count(view, changes, ret);
	return b->err ?: err;
}
