/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new block, and how long until a neighbour's kernel has the way to it.
 *
 *   reach-bench claims N --etcd URL --prefix PREFIX    waits for N blocks that agents claim
 *   reach-bench floor NETNS BLOCK [BLOCK...]           sets blackholes itself, one after the other
 *
 * Runs in the neighbour's namespace. With "claims" the clock starts when etcd's event of the
 * block's key is read, which is when the claimant reads its reply; it ends when netlink tells of
 * the route. "floor" is the same blackhole by raw netlink in the namespace at NETNS, where BIRD
 * learns it as it learns the agent's. Prints {"ms": [...]}; what has not come after a minute is
 * left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "integration-tests/bench/figures.h"
#include "lib/base/prefix.h"
#include "lib/base/route_protocol.h"
#include "lib/etcd/store_etcd.h"
#include "lib/json/json.h"
#include "lib/model/keys.h"
#include "lib/netlink/netlink.h"

#define MANY    1024
#define HANG_MS 60000.0

struct seen {
	struct prefix block;
	double told, there; /* 0: not yet */
};

struct bench {
	const char *prefix; /* of the keys */
	struct seen v[MANY];
	size_t n, done, want;
	sd_event *event;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	errno = -r;
	die(what);
}

/* Either may come first. */
static struct seen *entry(struct bench *b, const struct prefix *block)
{
	for (size_t i = 0; i < b->n; i++)
		if (prefix_compare(&b->v[i].block, block) == 0)
			return &b->v[i];
	if (b->n == MANY)
		return NULL;
	b->v[b->n] = (struct seen){ .block = *block };
	return &b->v[b->n++];
}

/* --- the neighbour's kernel ----------------------------------------------------------------- */

static int on_route(const struct nlmsghdr *hdr, void *arg)
{
	const struct rtmsg *route = nlmsg_data(hdr);
	struct nlattr *attrs[RTA_MAX + 1];
	struct prefix block = { .length = route->rtm_dst_len };
	struct bench *b = arg;
	struct seen *s;

	if (hdr->nlmsg_type != RTM_NEWROUTE || route->rtm_family != AF_INET ||
	    route->rtm_type != RTN_UNICAST || route->rtm_protocol != RTPROT_BIRD ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)hdr, sizeof(*route), attrs, RTA_MAX, NULL) <
		    0 ||
	    !attrs[RTA_DST])
		return 0;
	block.address.family = AF_INET;
	memcpy(block.address.bytes, nla_data(attrs[RTA_DST]), 4);
	s = entry(b, &block);
	if (s && !s->there) {
		s->there = now_ms();
		b->done += s->told > 0;
	}
	return 0;
}

static struct netlink *watch_routes(void)
{
	static const unsigned groups[] = { RTNLGRP_IPV4_ROUTE, 0 };
	struct netlink *k = NULL;

	must(netlink_events_open(NETLINK_ROUTE, groups, 0, &k), "netlink");
	return k;
}

/* --- claims --------------------------------------------------------------------------------- */

static void end_if_done(struct bench *b)
{
	if (b->done >= b->want)
		sd_event_exit(b->event, 0);
}

static void on_block(const struct store_kv *kv, void *arg)
{
	double now = now_ms();
	struct bench *b = arg;
	struct key key;
	struct seen *s;

	if (key_parse(kv->key + strlen(b->prefix), &key) < 0 || key.kind != KEY_BLOCK)
		return;
	s = entry(b, &key.block);
	if (s && !s->told) {
		s->told = now;
		b->done += s->there > 0;
	}
	end_if_done(b);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
}

/* What was there before does not count. */
static void on_in_sync(int64_t revision, void *arg)
{
	struct bench *b = arg;

	for (size_t i = 0; i < b->n; i++)
		b->v[i].told = -1;
	b->done = 0;
	puts("watching");
	fflush(stdout);
}

static int on_events(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	void **both = arg;

	netlink_events_read(both[1], on_route, both[0]);
	end_if_done(both[0]);
	return 0;
}

static int on_hang(sd_event_source *source, uint64_t usec, void *arg)
{
	struct bench *b = arg;

	return sd_event_exit(b->event, 0);
}

static void claims(struct bench *b, const char *endpoints)
{
	static const struct store_watch_handlers handlers = { on_block, on_deleted, on_in_sync };
	AUTO(netlink_close) struct netlink *k = watch_routes();
	AUTO(store_free) struct store *store = NULL;
	AUTO(free) char *end = NULL;
	struct store_etcd_options o = { .endpoints = endpoints };
	struct store_watch *w = NULL;
	void *both[] = { b, k };
	char key[KEY_FULL_TEXT];
	struct err err;

	must(sd_event_new(&b->event), "loop");
	must(store_etcd_new(b->event, &o, &store, &err), "store");
	must(key_full(b->prefix, KEYS_BLOCK, key), "key");
	end = store_prefix_end(key);
	must(store_watch(store, key, end, &handlers, b, &w), "watch");
	must(sd_event_add_io(b->event, NULL, netlink_fd(k), EPOLLIN, on_events, both), "netlink");
	must(sd_event_add_time_relative(b->event, NULL, CLOCK_MONOTONIC, (uint64_t)HANG_MS * 1000,
					0, on_hang, b),
	     "timer");
	sd_event_loop(b->event);
	store_unwatch(w);
}

/* --- the floor ------------------------------------------------------------------------------ */

static struct netlink *open_there(const char *netns)
{
	AUTO(close) int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	AUTO(close) int there = open(netns, O_RDONLY | O_CLOEXEC);
	struct netlink *k = NULL;

	if (here < 0 || there < 0 || setns(there, CLONE_NEWNET) < 0)
		die(netns);
	must(netlink_open(NETLINK_ROUTE, &k), "netlink");
	if (setns(here, CLONE_NEWNET) < 0)
		die("setns");
	return k;
}

static void set_blackhole(struct netlink *k, const struct prefix *block)
{
	const struct rtmsg body = { .rtm_family = AF_INET,
				    .rtm_dst_len = block->length,
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = route_protocol,
				    .rtm_type = RTN_BLACKHOLE };
	struct nl_msg *m = nlmsg_alloc_simple(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);

	if (!m || nlmsg_append(m, (void *)(uintptr_t)&body, sizeof(body), NLMSG_ALIGNTO) < 0 ||
	    nla_put(m, RTA_DST, 4, block->address.bytes) < 0)
		die("netlink");
	must(netlink_request(k, m, NULL), "blackhole");
}

static void floor_one(struct bench *b, struct netlink *k, struct netlink *events, const char *text)
{
	struct prefix block;
	struct seen *s;

	must(prefix_parse(text, &block), text);
	s = entry(b, &block);
	if (!s)
		return;
	s->told = now_ms();
	set_blackhole(k, &block);
	while (!s->there && now_ms() - s->told < HANG_MS) {
		struct pollfd p = { .fd = netlink_fd(events), .events = POLLIN };

		poll(&p, 1, 1000);
		netlink_events_read(events, on_route, b);
	}
}

/* -------------------------------------------------------------------------------------------- */

static void print(const struct bench *b)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].told > 0 && b->v[i].there > 0)
			json_object_array_add(list,
					      json_object_new_double(b->v[i].there - b->v[i].told));
	json_object_object_add(o, "ms", list);
	puts(json_object_to_json_string(o));
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (argc == 7 && strcmp(argv[1], "claims") == 0) {
		b.want = strtoul(argv[2], NULL, 10);
		b.prefix = argv[6];
		claims(&b, argv[4]);
	} else if (argc >= 4 && strcmp(argv[1], "floor") == 0) {
		AUTO(netlink_close) struct netlink *k = open_there(argv[2]);
		AUTO(netlink_close) struct netlink *events = watch_routes();

		for (int i = 3; i < argc; i++)
			floor_one(&b, k, events, argv[i]);
	} else {
		fputs("usage: see the head of reach_bench.c\n", stderr);
		return 2;
	}
	print(&b);
	return 0;
}
