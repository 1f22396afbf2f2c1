/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/kernel.h"

#include <errno.h>
#include <fnmatch.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/kernel/kernel_private.h"
#include "lib/base/log.h"

#define FIRST_LOOKS 5

static void compare_later(struct kernel *k)
{
	uint64_t minute = k->options.minute;

	timer_set(k->options.timers, &k->compare_timer, minute + minute / 2, minute / 10);
}

static void on_compare(void *arg)
{
	struct kernel *k = arg;

	k->reread = true;
	pass_mark(k->pass);
	compare_later(k);
}

static void on_later(void *arg)
{
	pass_mark(((struct kernel *)arg)->pass);
}

static int on_events(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct kernel *k = arg;

	kernel_drain(k);
	return 0;
}

/* From the loop and not while events are read: the callbacks may call us. */
static int on_deliver(sd_event_source *s, void *arg)
{
	struct kernel *k = arg;
	AUTO(free) char(*gone)[IF_NAME_TEXT] = TAKE(k->view.gone.v);
	size_t n = k->view.gone.n;

	k->view.gone.n = k->view.gone.room = 0;
	for (size_t i = 0; i < n; i++)
		/* There may be a new one of the same name. */
		if (!kernel_view_link_named(&k->view, gone[i]) && k->options.link_gone)
			k->options.link_gone(gone[i], k->options.arg);
	if (k->view.bird_lost.port && k->options.bird_lost)
		k->options.bird_lost(&k->view.bird_lost.dst, k->view.bird_lost.port,
				     k->options.arg);
	k->view.bird_lost.port = 0;
	return 0;
}

static int add_sources(struct kernel *k)
{
	sd_event *event = k->options.event;
	int r = sd_event_add_io(event, &k->source, netlink_fd(k->events), EPOLLIN, on_events, k);

	if (r >= 0)
		r = sd_event_add_defer(event, &k->deliver, on_deliver, k);
	if (r >= 0)
		r = sd_event_source_set_enabled(k->deliver, SD_EVENT_OFF);
	if (r >= 0)
		r = pass_new(event, kernel_pass, k, &k->pass);
	return r < 0 ? r : 0;
}

int kernel_new(const struct kernel_options *options, struct kernel **ret, struct err *err)
{
	AUTO(kernel_free) struct kernel *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return err_set(err, -ENOMEM, "no memory");
	k->options = *options;
	k->compare_timer = (struct timer){ .fn = on_compare, .arg = k };
	k->later_timer = (struct timer){ .fn = on_later, .arg = k };
	r = kernel_join(k, err);
	if (r < 0)
		return r;
	r = netlink_open(NETLINK_ROUTE, &k->netlink);
	if (r == 0)
		r = add_sources(k);
	if (r < 0)
		return err_set(err, r, "the kernel's state: %s", strerrordesc_np(-r));
	k->view.own_port = netlink_port(k->netlink);
	r = -EINTR;
	for (int i = 0; r == -EINTR && i < FIRST_LOOKS; i++)
		r = kernel_reread(k, err);
	if (r < 0)
		return r;
	k->reread = true; /* by the first pass, whenever that comes */
	pass_mark(k->pass);
	compare_later(k);
	*ret = TAKE(k);
	return 0;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	if (k->options.timers) {
		timer_clear(k->options.timers, &k->compare_timer);
		timer_clear(k->options.timers, &k->later_timer);
	}
	sd_event_source_disable_unref(k->source);
	sd_event_source_disable_unref(k->deliver);
	pass_free(k->pass);
	netlink_close(k->events);
	netlink_close(k->netlink);
	kernel_view_done(&k->view);
	free(k);
}

void kernel_start(struct kernel *k)
{
	pass_open(k->pass, true);
}

void kernel_open(struct kernel *k)
{
	k->open = true;
	pass_open(k->pass, true);
	pass_mark(k->pass);
}

void kernel_mark(struct kernel *k)
{
	pass_mark(k->pass);
}

void kernel_soon(struct kernel *k)
{
	pass_soon(k->pass);
}

void kernel_now(struct kernel *k)
{
	pass_now(k->pass);
}

bool kernel_ready(const struct kernel *k, struct err *why)
{
	if (k->compared && !k->trouble.text[0])
		return true;
	if (k->trouble.text[0])
		err_set(why, 0, "%s", k->trouble.text);
	else
		err_set(why, 0, "the kernel's state has not been compared yet");
	return false;
}

const struct kernel_view *kernel_seen(const struct kernel *k)
{
	return &k->view;
}

bool kernel_has_address(const struct kernel *k, const struct address *a)
{
	for (size_t i = 0; i < k->view.addresses.n; i++)
		if (address_compare(&k->view.addresses.v[i].address.local, a) == 0)
			return true;
	return false;
}

bool kernel_has_link(const struct kernel *k, const char *pattern)
{
	for (size_t i = 0; i < k->view.links.n; i++)
		if (fnmatch(pattern, k->view.links.v[i]->link.name, 0) == 0)
			return true;
	return false;
}

int kernel_other_routes(struct kernel *k, const struct kroute **ret, size_t *ret_n)
{
	int r = k->view.gateways_stale ? kernel_read_gateways(k) : 0;

	*ret = k->view.others.v;
	*ret_n = r < 0 ? 0 : k->view.others.n;
	return r;
}

uint32_t kernel_uplink_mtu(const struct kernel *k, const struct address *node)
{
	for (size_t i = 0; i < k->view.addresses.n; i++) {
		const struct kaddress *a = &k->view.addresses.v[i].address;
		const struct held_link *l;

		if (address_compare(&a->local, node) != 0)
			continue;
		l = kernel_view_link(&k->view, a->link);
		return l ? l->link.mtu : 0;
	}
	return 0;
}

bool kernel_has_bird_route(struct kernel *k, const struct prefix *dst)
{
	const struct route_lookup *l;

	if (kernel_look_up(k, &dst->address) < 0)
		return false;
	l = kernel_view_lookup(&k->view, &dst->address);
	return l && l->err == 0 && l->route.protocol == RTPROT_BIRD &&
	       prefix_compare(&l->route.dst, dst) == 0;
}

void kernel_set_bird_port(struct kernel *k, uint32_t port)
{
	k->view.bird_port = port;
}

enum kernel_way kernel_way(const struct kernel *k, const struct prefix *block)
{
	const struct kroute key = { .table = RT_TABLE_MAIN,
				    .dst = *block,
				    .metric = block->address.family == AF_INET6 ? ROUTE_METRIC6
										: 0 };
	const struct held_routes routes = kernel_view_routes(&k->view, &key);

	for (size_t i = 0; i < routes.n; i++) {
		const struct held_route *r = routes.v[i];
		const char *dev = kernel_view_link_name(&k->view, r->route.hop.oif);

		if (!r->h.held || r->route.protocol != route_protocol)
			continue;
		/* An IPv6 block of a single address is its own next hop. */
		if (dev && tunnel_of_name(dev) >= 0)
			return KERNEL_WAY_TUNNEL;
		if (kroute_has_gateway(&r->route))
			return KERNEL_WAY_DIRECT;
	}
	return KERNEL_WAY_NONE;
}

struct kernel_stats kernel_stats(const struct kernel *k)
{
	struct kernel_stats s = k->stats;

	s.links = k->view.n_pod_links;
	s.routes = k->view.n_routes;
	s.neighbours = k->view.n_neighbours;
	s.fdb = k->view.n_fdb;
	return s;
}

struct pass_stats kernel_passes(const struct kernel *k)
{
	return pass_stats(k->pass);
}

const char *kernel_thing_name(enum kernel_thing thing)
{
	static const char *const names[] = {
		"host", "link", "neighbour", "route", "tunnel", "fdb"
	};

	return thing < ARRAY_SIZE(names) ? names[thing] : "?";
}
