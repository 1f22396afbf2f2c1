/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that were refused: the last ones, with reason and remedy.
 *
 *   requests, pod_links -> [refusals] -> log, health, GET /v1/refusals
 *
 * Pure but for the memory: at most REFUSALS_MAX, which is taken with the first refusal. A refusal is
 * over when its pod has got an address or its link, or when it is older than a window.
 */
#pragma once

#include "lib/base/cni_code.h"
#include "lib/base/names.h"
#include "lib/json/tree.h"

#define REFUSALS_MAX 256

struct refused_pod {
	const char *namespace, *pod, *container, *interface; /* "" if unknown */
};

struct refusal {
	char time[TIME_TEXT];
	uint64_t at; /* ms, as the caller counts */
	enum cni_code code;
	bool over;    /* or expected: drained, stopping, overtaken by a DEL */
	char *who[4]; /* namespace, pod, container, interface */
	char *reason;
};

struct refusals {
	struct refusal *v; /* a ring */
	size_t n, next;
};
void refusals_done(struct refusals *r);

/* What an operator or the runtime can do about a code. */
const char *refusal_remedy(enum cni_code code);
/* "default/web-1", or "container c1" without Kubernetes. */
#define REFUSED_TEXT 320
const char *refused_pod_print(const struct refused_pod *pod, char text[REFUSED_TEXT]);

/* -ENOMEM: it is not kept. */
int refusals_add(struct refusals *r, const struct refused_pod *pod, enum cni_code code,
		 const char *reason, bool expected, uint64_t now);
/* The pod has what it wanted. Whether that ended one. */
bool refusals_over(struct refusals *r, const struct refused_pod *pod);
/* The last that is not over and not older than window, and how many pods there are; or NULL. */
const struct refusal *refusals_recent(const struct refusals *r, uint64_t now, uint64_t window,
				      size_t *ret_pods);
/* "refusals": newest first; of one pod ("NAMESPACE/POD", or a container), or all: NULL. */
void refusals_write(const struct refusals *r, const char *pod, struct tree *t);
