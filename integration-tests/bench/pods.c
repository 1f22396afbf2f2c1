/* SPDX-License-Identifier: Apache-2.0 */
#include "integration-tests/bench/pods.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* Against hangs: two hundred DELs, one after the other, take four seconds. */
#define SETTLE_MS_MAX 60000.0

void pods_open(struct pods *p, size_t room)
{
	const unsigned groups[] = { RTNLGRP_LINK, 0 };
	int r = netlink_events_open(NETLINK_ROUTE, groups, 0, &p->events);

	if (r < 0) {
		errno = -r;
		die("netlink");
	}
	p->crowd = crowd_new(room);
}

void pods_close(struct pods *p)
{
	crowd_free(p->crowd);
	netlink_close(p->events);
}

struct pod pod_new(struct pods *p, size_t contestant, size_t namespace)
{
	return (struct pod){ contestant, p->made++, namespace };
}

/* The texts live in the caller's buffers until the exec. */
struct texts {
	char container[32], netns[64];
};

static struct call call_of(const struct pod *pod, const char *verb, struct texts *t)
{
	snprintf(t->container, sizeof(t->container), "bench-%zu", pod->number);
	snprintf(t->netns, sizeof(t->netns), "/run/netns/pod-%zu", pod->namespace);
	return (struct call){ verb, t->container, "eth0", t->netns };
}

static void count_call(struct pods *p, const char *verb)
{
	if (strcmp(verb, "DEL") == 0)
		p->deleted++;
}

double pod_call(struct pods *p, const struct pod *pod, const char *verb)
{
	struct texts texts;
	struct call call = call_of(pod, verb, &texts);

	count_call(p, verb);
	return plugin_call(&p->plugins[pod->contestant], &call);
}

void pod_begin(struct pods *p, const struct pod *pod, const char *verb, size_t tag)
{
	struct texts texts;
	struct call call = call_of(pod, verb, &texts);

	count_call(p, verb);
	crowd_begin(p->crowd, &p->plugins[pod->contestant], &call, tag);
}

/* --- links ---------------------------------------------------------------------------------- */

static int count_gone(const struct nlmsghdr *h, void *arg)
{
	struct pods *p = arg;

	if (h->nlmsg_type == RTM_DELLINK)
		p->gone++;
	return 0;
}

static void read_events(struct pods *p)
{
	int r = netlink_events_read(p->events, count_gone, p);

	if (r < 0) {
		errno = -r;
		die("link events");
	}
}

void pods_wait(struct pods *p, double timeout_ms, crowd_ended_fn *ended, void *arg)
{
	if (crowd_wait(p->crowd, netlink_fd(p->events), timeout_ms, ended, arg))
		read_events(p);
}

void pods_settle(struct pods *p)
{
	double until = now_ms() + SETTLE_MS_MAX;

	for (read_events(p); p->gone < p->deleted; pods_wait(p, 100, NULL, NULL))
		if (now_ms() > until) {
			errno = ETIMEDOUT;
			die("a link is still there after its DEL");
		}
}

/* --- many ----------------------------------------------------------------------------------- */

struct all {
	const struct pod *v;
	struct figures *each;
};

static void one_ended(size_t tag, double ms, void *arg)
{
	const struct all *all = arg;

	if (all->each)
		figures_push(all->each, all->v[tag].contestant, ms);
}

double pods_all(struct pods *p, const struct pod *v, size_t n, const char *verb, size_t at_once,
		struct figures *each)
{
	struct all all = { v, each };
	double start = now_ms();
	size_t begun = 0;

	while (begun < n || crowd_busy(p->crowd) > 0) {
		while (begun < n && crowd_busy(p->crowd) < at_once) {
			pod_begin(p, &v[begun], verb, begun);
			begun++;
		}
		pods_wait(p, -1, one_ended, &all);
	}
	return now_ms() - start;
}
