/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

#include "cni/veth.h"
#include "lib/netlink/request.h"

/* Before the main table's rule, which is at 32766. */
#define RULE_PRIORITY 1000U

int inside_index(struct netlink *inside, const char *ifname)
{
	struct ifreq request = { 0 };

	/* One call where netlink needs two; it asks in the namespace of the socket. */
	memcpy(request.ifr_name, ifname, strlen(ifname));
	if (ioctl(netlink_fd(inside), SIOCGIFINDEX, &request) < 0)
		return -errno;
	return request.ifr_ifindex;
}

int inside_is_free(struct netlink *host, struct netlink *inside, const struct cni_call *call,
		   struct cni_error *e)
{
	const struct cni_env *env = &call->env;
	int r = inside_index(inside, env->ifname);

	while (r >= 0 && veth_is_going(host, inside, r) && deadline_left(&call->deadline) > 0) {
		veth_rest();
		r = inside_index(inside, env->ifname);
	}
	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot look for %s in %s: %s", env->ifname,
				env->netns, strerror(-r));
	return cni_fail(e, CNI_CODE_ATTACHED,
			"interface %s already exists in %s and is left unchanged: DEL it before "
			"another ADD",
			env->ifname, env->netns);
}

/* --- settings ------------------------------------------------------------------------------- */

static int set_ipv6(const char *ifname, const char *name, const char *value)
{
	char path[96];
	AUTO(close) int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", ifname, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, value, 1) != 1 ? -errno : 0;
}

/*
 * Before the link is up: container runtimes switch IPv6 off, a router advertisement would add
 * addresses and routes of its own, to a pod of IPv4 too, and a check for duplicates keeps an
 * address from being used for a second.
 */
static int set_up_ipv6(const struct sandbox *pod)
{
	int r = set_ipv6(pod->ifname, "accept_ra", "0");

	if (!sandbox_has(pod, AF_INET6))
		return r == -ENOENT ? 0 : r; /* a kernel without IPv6 */
	r = r ?: set_ipv6(pod->ifname, "disable_ipv6", "0");
	return r ?: set_ipv6(pod->ifname, "accept_dad", "0");
}

static int prepare_ipv6(const struct netns *netns, const struct sandbox *pod, struct cni_error *e)
{
	int r = netns_enter(netns), back;

	if (r == 0) {
		r = set_up_ipv6(pod);
		back = netns_leave(netns);
		r = r ?: back;
	}
	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot prepare %s in %s for IPv6: %s", pod->ifname,
				pod->netns, strerror(-r));
	return 0;
}

/* --- messages ------------------------------------------------------------------------------- */

static struct nl_msg *address_message(int index, const struct address *a)
{
	return request_address_add(
		&(struct kaddress){ .link = (uint32_t)index,
				    .local = *a,
				    .subnet = prefix_of(a, (uint8_t)address_bits(a)) });
}

/* gw of family 0: the destination is on the link itself. */
static struct nl_msg *route_message(int index, const struct cni_route *route)
{
	const bool direct = !route->gw.family;
	const struct kroute r = {
		.table = route->table > 0 ? (uint32_t)route->table : RT_TABLE_MAIN,
		.dst = route->dst,
		.metric = route->priority > 0 ? (uint32_t)route->priority : 0,
		/* Whatever the routes of other interfaces say of the gateway, it is here. */
		.hop = { .gateway = route->gw, .oif = (uint32_t)index, .onlink = !direct },
		.type = RTN_UNICAST,
		.scope = direct ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
		.protocol = RTPROT_BOOT,
	};

	return request_route_add_metrics(&r, route->mtu, route->advmss);
}

static struct nl_msg *neighbour_message(int index, const struct address *gateway)
{
	return request_neighbour_set(&(struct kneighbour){
		.link = (uint32_t)index, .address = *gateway, .mac = pod_link_host_mac });
}

/* table 0: of any. */
static struct nl_msg *rule_message(int type, unsigned flags, const struct address *from,
				   uint32_t table)
{
	const struct fib_rule_hdr body = { .family = (uint8_t)from->family,
					   .src_len = (uint8_t)address_bits(from),
					   .action = FR_ACT_TO_TBL };
	struct nl_msg *m = request_new(type, flags, &body, sizeof(body));
	int err;

	if (!m)
		return NULL;
	err = request_put_address(m, FRA_SRC, from);
	err = err ?: nla_put_u32(m, FRA_PRIORITY, RULE_PRIORITY);
	if (table)
		err = err ?: nla_put_u32(m, FRA_TABLE, table);
	return request_whole(m, err);
}

/* --- a batch that can say what was refused -------------------------------------------------- */

struct step {
	char what[PREFIX_TEXT + 16];
	sa_family_t route_of; /* a route of this family: may be there already */
	bool may_fail;
};

struct batch {
	struct netlink_op *ops;
	struct step *steps;
	size_t n;
	bool no_memory;
};

static int batch_init(struct batch *b, size_t room)
{
	*b = (struct batch){ calloc(room, sizeof(*b->ops)), calloc(room, sizeof(*b->steps)), 0,
			     false };
	return b->ops && b->steps ? 0 : -ENOMEM;
}

static void batch_done(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		nlmsg_free(b->ops[i].msg);
	free(b->ops);
	free(b->steps);
}

PRINTF_LIKE(3, 4)
static struct step *add(struct batch *b, struct nl_msg *m, const char *fmt, ...)
{
	struct step *step = &b->steps[b->n];
	va_list ap;

	if (!m) {
		b->no_memory = true;
		return step;
	}
	b->ops[b->n++].msg = m;
	va_start(ap, fmt);
	vsnprintf(step->what, sizeof(step->what), fmt, ap);
	va_end(ap);
	return step;
}

static void add_route(struct batch *b, int index, const struct cni_route *route)
{
	char text[PREFIX_TEXT];
	struct step *step = add(b, route_message(index, route), "route %s",
				prefix_print(&route->dst, text));

	step->route_of = route->dst.address.family;
}

/* Sends all; a route that is there already is noted in taken, by family. */
static int batch_run(struct netlink *inside, struct batch *b, const struct sandbox *pod,
		     bool taken[2], struct cni_error *e)
{
	int r = b->no_memory ? -ENOMEM : netlink_batch(inside, b->ops, b->n);

	if (r < 0)
		return cni_fail(e, CNI_CODE_IO, "cannot set up %s in %s: %s", pod->ifname,
				pod->netns, strerror(-r));
	for (size_t i = 0; i < b->n; i++) {
		const struct netlink_op *op = &b->ops[i];
		const struct step *step = &b->steps[i];

		if (op->result >= 0 || step->may_fail)
			continue;
		if (step->route_of && taken && op->result == -EEXIST) {
			taken[step->route_of == AF_INET6] = true;
			continue;
		}
		return cni_fail(e, CNI_CODE_IO, "the kernel refused the %s for %s in %s: %s%s%s",
				step->what, pod->ifname, pod->netns, strerror(-op->result),
				op->extack[0] ? ": " : "", op->extack);
	}
	return 0;
}

/* --- the work ------------------------------------------------------------------------------- */

static const sa_family_t families[2] = { AF_INET, AF_INET6 };

static struct cni_route link_route(const struct address *gateway)
{
	return (struct cni_route){ .dst = { *gateway, (uint8_t)address_bits(gateway) },
				   CNI_ROUTE_NONE };
}

static int set_up(struct netlink *inside, const struct sandbox *pod, int index, bool taken[2],
		  struct cni_error *e)
{
	AUTO_DONE(batch_done) struct batch b;
	char text[ADDRESS_TEXT];

	if (batch_init(&b, 5 + pod->n_addresses + pod->n_routes) < 0)
		return cni_no_memory(e);
	add(&b, request_link_up((uint32_t)index, NULL), "link");
	for (size_t i = 0; i < pod->n_addresses; i++)
		add(&b, address_message(index, &pod->addresses[i]), "address %s",
		    address_print(&pod->addresses[i], text));
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct address gateway = pod_gateway(families[i]);
		const struct cni_route direct = link_route(&gateway);

		if (!sandbox_has(pod, families[i]))
			continue;
		add_route(&b, index, &direct);
		add(&b, neighbour_message(index, &gateway), "neighbour %s",
		    address_print(&gateway, text));
	}
	for (size_t i = 0; i < pod->n_routes; i++)
		add_route(&b, index, &pod->routes[i]);
	return batch_run(inside, &b, pod, taken, e);
}

/* The pod's routes are another interface's: what comes from these addresses gets its own. */
static int set_aside(struct netlink *inside, const struct sandbox *pod, int index,
		     sa_family_t family, struct cni_error *e)
{
	AUTO_DONE(batch_done) struct batch b;
	const struct address gateway = pod_gateway(family);
	struct cni_route direct = link_route(&gateway), all = { .dst = { { .family = family }, 0 },
								.gw = gateway,
								CNI_ROUTE_NONE };
	const uint32_t table = inside_table(index);

	if (batch_init(&b, 2 + 2 * pod->n_addresses) < 0)
		return cni_no_memory(e);
	direct.table = all.table = table;
	add_route(&b, index, &direct);
	add_route(&b, index, &all);
	for (size_t i = 0; i < pod->n_addresses; i++) {
		const struct address *a = &pod->addresses[i];

		if (a->family != family)
			continue;
		/* A rule outlives the interface that it was made for. */
		add(&b, rule_message(RTM_DELRULE, 0, a, 0), "old rule")->may_fail = true;
		add(&b, rule_message(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, a, table), "rule");
	}
	return batch_run(inside, &b, pod, NULL, e);
}

int inside_make(struct netlink *inside, const struct netns *netns, const struct sandbox *pod,
		struct cni_error *e)
{
	bool taken[2] = { false, false };
	int index = inside_index(inside, pod->ifname), r;

	if (index < 0)
		return cni_fail(e, CNI_CODE_IO, "%s vanished from %s: %s", pod->ifname, pod->netns,
				strerror(-index));
	r = prepare_ipv6(netns, pod, e);
	if (r == 0)
		r = set_up(inside, pod, index, taken, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(families); i++)
		if (taken[i])
			r = set_aside(inside, pod, index, families[i], e);
	return r;
}

void inside_unmake(struct netlink *inside, const struct sandbox *pod)
{
	AUTO_DONE(batch_done) struct batch b;

	if (batch_init(&b, pod->n_addresses) < 0)
		return;
	for (size_t i = 0; i < pod->n_addresses; i++)
		add(&b, rule_message(RTM_DELRULE, 0, &pod->addresses[i], 0), "rule");
	netlink_batch(inside, b.ops, b.n);
}

/* --- read back ------------------------------------------------------------------------------ */

/*
 * Whether the link has its carrier is not asked: the kernel notes that a moment after ADD has
 * returned, and the runtime may ask at once.
 */

#define MISSING(e, ...) cni_fail(e, CNI_CODE_OTHER_ADDRESSES, __VA_ARGS__)

static int failed(struct cni_error *e, const struct sandbox *pod, const char *what, int r)
{
	return cni_fail(e, CNI_CODE_IO, "cannot read the %s of %s in %s: %s", what, pod->ifname,
			pod->netns, strerror(-r));
}

static int read_link(const struct nlmsghdr *hdr, void *arg)
{
	return klink_read(hdr, arg);
}

static int check_link(struct netlink *inside, const struct sandbox *pod, int *ret_index,
		      struct cni_error *e)
{
	struct klink link = { 0 };
	char mac[MAC_TEXT];
	int r = netlink_get(inside, ask_link(0, pod->ifname), read_link, &link, NULL);

	if (r == -ENODEV)
		return MISSING(e, "%s has no interface %s", pod->netns, pod->ifname);
	if (r < 0)
		return failed(e, pod, "link", r);
	mac_print(&link.mac, mac);
	if (!(link.flags & IFF_UP))
		return MISSING(e, "%s in %s is down", pod->ifname, pod->netns);
	if (pod->mac_text[0] && strcasecmp(pod->mac_text, mac) != 0)
		return MISSING(e, "%s in %s has the MAC address %s instead of %s", pod->ifname,
			       pod->netns, mac, pod->mac_text);
	*ret_index = (int)link.index;
	return 0;
}

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
	struct search *s = arg;
	struct kaddress a;

	if (kaddress_read(hdr, &a) < 0 || (int)a.link != s->index)
		return 0;
	for (size_t i = 0; i < s->pod->n_addresses; i++)
		if (address_compare(&a.local, &s->pod->addresses[i]) == 0)
			s->addresses |= 1ULL << i;
	return 0;
}

static void forget_addresses(void *arg)
{
	((struct search *)arg)->addresses = 0;
}

static int check_addresses(struct netlink *inside, struct search *s, struct cni_error *e)
{
	char text[ADDRESS_TEXT];
	int r = netlink_dump(inside, ask_addresses(AF_UNSPEC, (uint32_t)s->index), forget_addresses,
			     read_address, s, NULL);

	if (r < 0)
		return failed(e, s->pod, "addresses", r);
	for (size_t i = 0; i < s->pod->n_addresses; i++)
		if (!(s->addresses & 1ULL << i))
			return MISSING(e, "%s in %s has lost its address %s", s->pod->ifname,
				       s->pod->netns, address_print(&s->pod->addresses[i], text));
	return 0;
}

static int read_route(const struct nlmsghdr *hdr, void *arg)
{
	struct search *s = arg;
	struct kroute r;

	if (kroute_read(hdr, &r) < 0 || (int)r.hop.oif != s->index || r.type != RTN_UNICAST)
		return 0;
	if (r.table == inside_table(s->index) && r.dst.length == 0)
		s->aside[r.dst.address.family == AF_INET6] = true;
	for (size_t i = 0; i < s->pod->n_routes; i++)
		if (prefix_compare(&r.dst, &s->pod->routes[i].dst) == 0 &&
		    r.hop.gateway.family == s->pod->routes[i].gw.family &&
		    address_compare(&r.hop.gateway, &s->pod->routes[i].gw) == 0)
			s->routes |= 1ULL << i;
	return 0;
}

static int read_routes(struct netlink *inside, sa_family_t family, struct search *s)
{
	return netlink_dump(inside, ask_routes(family, 0, 0, (uint32_t)s->index), NULL, read_route,
			    s, NULL);
}

static int check_routes(struct netlink *inside, struct search *s, struct cni_error *e)
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

static int read_neighbour(const struct nlmsghdr *hdr, void *arg)
{
	struct kneighbour n;

	*(bool *)arg = kneighbour_read(hdr, &n) == 0 && n.permanent &&
		       mac_compare(&n.mac, &pod_link_host_mac) == 0;
	return 0;
}

static int check_neighbour(struct netlink *inside, const struct search *s, sa_family_t family,
			   struct cni_error *e)
{
	const struct address gateway = pod_gateway(family);
	char text[ADDRESS_TEXT];
	bool good = false;
	int r;

	if (!sandbox_has(s->pod, family))
		return 0;
	r = netlink_get(inside, ask_neighbour((uint32_t)s->index, &gateway), read_neighbour, &good,
			NULL);
	if (r < 0 && r != -ENOENT)
		return failed(e, s->pod, "neighbours", r);
	if (good)
		return 0;
	return MISSING(e, "%s in %s has lost its neighbour %s, the gateway", s->pod->ifname,
		       s->pod->netns, address_print(&gateway, text));
}

int inside_check(struct netlink *inside, const struct sandbox *pod, struct cni_error *e)
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
