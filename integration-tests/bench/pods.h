/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods for benchmarks: network namespaces that wait at /run/netns/pod-N, and plugins to be run
 * on them.
 *
 * A pod is one ADD and one DEL of one contestant; the next one in the same namespace is another
 * container. A plugin may leave the destruction of its link to somebody else, so a DEL that
 * has returned is not the end: the kernel's own events tell which links of the host are gone.
 */
#pragma once

#include "integration-tests/bench/figures.h"
#include "integration-tests/bench/plugin_run.h"
#include "lib/netlink/netlink.h"

#define CONTESTANTS_MAX 3

struct pods {
	struct plugin plugins[CONTESTANTS_MAX]; /* the first is ours */
	const char *names[CONTESTANTS_MAX];
	size_t n_contestants;
	struct crowd *crowd;
	struct netlink *events;
	size_t made;          /* containers so far */
	size_t deleted, gone; /* DELs begun; links that the host has lost */
};

struct pod {
	size_t contestant, number, namespace;
};

/* room: the most that run at once. */
void pods_open(struct pods *p, size_t room);
void pods_close(struct pods *p);

struct pod pod_new(struct pods *p, size_t contestant, size_t namespace);
/* Alone, until it returns. */
double pod_call(struct pods *p, const struct pod *pod, const char *verb);
/* Among others; its end is told by pods_wait(). */
void pod_begin(struct pods *p, const struct pod *pod, const char *verb, size_t tag);
/* Until something ended, a link is gone, or timeout_ms (negative: never) have passed. */
void pods_wait(struct pods *p, double timeout_ms, crowd_ended_fn *ended, void *arg);
/* Until every link that a DEL was meant for is gone. */
void pods_settle(struct pods *p);

/*
 * A verb for all, at_once at a time; the time from the first's begin to the last's end. The time of
 * each goes into its contestant's series, if each is not NULL.
 */
double pods_all(struct pods *p, const struct pod *v, size_t n, const char *verb, size_t at_once,
		struct figures *each);
