/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of a node's pod routes are flushed: how long until they are back?
 *
 *   route-bench files DIR N LINK      writes N attachments on LINK for an agent to find at its
 * start route-bench restore N [COMMAND...]
 *
 * The second runs `ip route flush proto 114`, then COMMAND, if there is one to put the routes
 * back, and waits until N of them are there again. It prints one JSON object: flush_ms, whole_ms
 * from the flush's begin to the last route's return, back_ms from its end, and removed, which is
 * more than N when somebody put routes back too early and they were flushed once more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "integration-tests/bench/figures.h"
#include "ipam/attachments/attachment_file.h"
#include "lib/base/files.h"
#include "lib/base/route_protocol.h"
#include "lib/json/json.h"
#include "lib/netlink/netlink.h"

#define FIRST_ADDRESS 0x0a4d0001u /* 10.77.0.1 */
/* Two thousand bytes for each event of some ten thousand routes, several times. */
#define EVENTS_BUFFER (256UL * 1024 * 1024)
#define HANG_MS       60000.0
#define NAP_MS        4

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	errno = -r;
	die(what);
}

/* --- files ---------------------------------------------------------------------------------- */

static void write_attachment(int dir, unsigned i, const char *link)
{
	const uint32_t address = htonl(FIRST_ADDRESS + i);
	struct held_address held = { .length = 32, .pool = "bench", .network = "default" };
	AUTO(free) char *text = NULL;
	char container[32], name[HASH_TEXT];
	struct attachment a = { .network = "bench",
				.container = container,
				.interface = "eth0",
				.namespace = "",
				.pod = "",
				.uid = "",
				.netns = "",
				.link = link,
				.ipam = "roost-ipam",
				.assigned = 1,
				.state = ATTACHMENT_ATTACHED,
				.addresses = { &held, 1 } };
	struct attachment_key key;

	snprintf(container, sizeof(container), "bench-%u", i);
	held.address.family = AF_INET;
	memcpy(held.address.bytes, &address, sizeof(address));
	key = attachment_key(&a);
	must(attachment_encode(&a, &text), "attachment");
	must(file_publish(dir, attachment_file_name(&key, name), 0600, text, strlen(text)), name);
}

static void write_files(const char *path, unsigned n, const char *link)
{
	AUTO(close) int dir = dir_open(path);

	must(dir, path);
	for (unsigned i = 0; i < n; i++)
		write_attachment(dir, i, link);
}

/* --- what the kernel holds ------------------------------------------------------------------ */

struct watch {
	struct netlink *events;
	size_t present, removed;
	double changed; /* when the last one came or went */
};

static bool is_pod_route(const struct nlmsghdr *h)
{
	const struct rtmsg *r = nlmsg_data(h);

	return r->rtm_protocol == route_protocol && r->rtm_type == RTN_UNICAST &&
	       r->rtm_dst_len == 32 && r->rtm_table == RT_TABLE_MAIN;
}

static int count_one(const struct nlmsghdr *h, void *arg)
{
	*(size_t *)arg += is_pod_route(h);
	return 0;
}

static void count_none(void *arg)
{
	*(size_t *)arg = 0;
}

static size_t count_routes(void)
{
	const struct rtmsg body = { .rtm_family = AF_INET, .rtm_protocol = route_protocol };
	struct nl_msg *m = nlmsg_alloc_simple(RTM_GETROUTE, 0);
	AUTO(netlink_close) struct netlink *k = NULL;
	size_t n = 0;

	if (!m)
		die("netlink");
	must(nlmsg_append(m, (void *)(uintptr_t)&body, sizeof(body), NLMSG_ALIGNTO), "netlink");
	must(netlink_open(NETLINK_ROUTE, &k), "netlink");
	must(netlink_dump(k, m, count_none, count_one, &n, NULL), "routes");
	return n;
}

static int take_event(const struct nlmsghdr *h, void *arg)
{
	struct watch *w = arg;

	if (!is_pod_route(h))
		return 0;
	if (h->nlmsg_type == RTM_DELROUTE) {
		w->present--;
		w->removed++;
	} else if (!(h->nlmsg_flags & NLM_F_REPLACE)) {
		w->present++;
	}
	w->changed = now_ms();
	return 0;
}

static void watch_open(struct watch *w, size_t expected)
{
	const unsigned groups[] = { RTNLGRP_IPV4_ROUTE, 0 };

	must(netlink_events_open(NETLINK_ROUTE, groups, EVENTS_BUFFER, &w->events), "netlink");
	w->present = count_routes();
	if (w->present == expected)
		return;
	fprintf(stderr, "route-bench: %zu routes are there instead of %zu\n", w->present, expected);
	exit(1);
}

/*
 * A nap, then all events that came meanwhile; whether fd (-1: none) can be read. Waking for every
 * single event would more than double the time of what is measured.
 */
static bool watch_nap(struct watch *w, int fd)
{
	struct pollfd poll_fd = { fd, POLLIN, 0 };

	if (poll(&poll_fd, 1, NAP_MS) < 0)
		die("poll");
	must(netlink_events_read(w->events, take_event, w), "events");
	return poll_fd.revents != 0;
}

static void watch_until_back(struct watch *w, size_t n)
{
	double until = now_ms() + HANG_MS;

	while (w->present < n || w->removed < n) {
		watch_nap(w, -1);
		if (now_ms() > until) {
			fprintf(stderr, "route-bench: stuck with %zu routes\n", w->present);
			exit(1);
		}
	}
}

/* --- flush and wait ------------------------------------------------------------------------- */

static void run_watched(struct watch *w, char *const *argv)
{
	AUTO(close) int fd = -1;
	pid_t pid;
	int status;

	errno = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (errno != 0)
		die(argv[0]);
	fd = pidfd_open(pid, 0);
	if (fd < 0)
		die("pidfd");
	while (!watch_nap(w, fd))
		;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die(argv[0]);
}

static void restore(size_t n, char *const *command)
{
	char ip[] = "ip", route[] = "route", flush[] = "flush", proto[] = "proto", number[8];
	char *const flushing[] = { ip, route, flush, proto, number, NULL };
	struct watch w = { 0 };
	double start, flushed;

	snprintf(number, sizeof(number), "%d", route_protocol);
	watch_open(&w, n);
	start = now_ms();
	run_watched(&w, flushing);
	flushed = now_ms();
	if (command[0])
		run_watched(&w, command);
	watch_until_back(&w, n);
	if (count_routes() != n)
		die("counted wrongly");
	printf("{\"flush_ms\":%.3f,\"whole_ms\":%.3f,\"back_ms\":%.3f,\"removed\":%zu}\n",
	       flushed - start, w.changed - start, w.changed - flushed, w.removed);
	netlink_close(w.events);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "files") == 0) {
		write_files(argv[2], (unsigned)strtoul(argv[3], NULL, 10), argv[4]);
	} else if (argc >= 3 && strcmp(argv[1], "restore") == 0) {
		restore(strtoul(argv[2], NULL, 10), argv + 3);
	} else {
		fputs("usage: see the head of route_bench.c\n", stderr);
		return 2;
	}
	return 0;
}
