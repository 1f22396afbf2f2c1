/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes' Nodes, as the API server has them now and as they change.
 *
 *   API server -> list in pages, then watch -> [kube] -> node(), gone(), in_sync(), trouble()
 *
 * A list and the watch after it are compared with what was told before, so cuts, expired
 * resource versions and restarts of the API server all come down to "tell what is news". A Node's
 * heartbeat tells nobody anything. Nothing is told as gone on the word of a list or a watch: a GET
 * of that name must say so (404 from an API server, or a Node with another UID).
 *
 * Nothing here logs or blocks. Handlers are called from the loop; they may call kube_expect() and
 * kube_stats(), but not kube_free().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "controller/kube/kube_node.h"
#include "lib/base/err.h"

struct kube;

struct kube_options {
	const char *kubeconfig; /* NULL or "": the service account of the pod we run in */
	const char *context;    /* NULL or "": the kubeconfig's current one */
	bool insecure;          /* obey insecure-skip-tls-verify */

	/* 0 and NULL: the usual; others are for tests. */
	const char *service_account; /* the mounted folder */
	uint32_t page;               /* Nodes per reply: 500 */
	uint32_t request_ms;         /* deadline of a list's page and of a GET: 30 s */
	uint32_t watch_s;            /* a watch is asked for once to twice as long: 300 s */
	uint32_t margin_ms;          /* and given up so much later: 15 s */
	uint32_t backoff_ms;         /* first delay, doubling to 60 times that: 500 ms */

	/* NULL, or what the client before this one had counted: this one counts on from there. */
	const struct kube_stats *past;
};

struct kube_handlers {
	/* New or changed. */
	void (*node)(const struct kube_node *node, void *arg);
	/* The Node with this UID is not there any more, by a GET's word. It may have been named by
	 * kube_expect() only, and a new Node of that name may follow. */
	void (*gone)(const char *name, const char *uid, void *arg);
	/* All Nodes of a complete list have been told. Comes again after each list. */
	void (*in_sync)(void *arg);
	/* What is wrong, whenever that changes; "" when all is well again. */
	void (*trouble)(const char *text, void *arg);
};

/* 0, or a negative errno with a sentence that names file, context and field. */
int kube_new(sd_event *event, const struct kube_options *options,
	     const struct kube_handlers *handlers, void *arg, struct kube **ret, struct err *err);
void kube_free(struct kube *k);
AUTO_DEFINE(struct kube *, kube_free)

/*
 * The caller knows this Node from before, from its own records: if no complete list has it, that is
 * looked into as if it had vanished now. Deletions of the time when nobody watched are found so.
 * May be called at any time and again. 0 or -ENOMEM.
 */
int kube_expect(struct kube *k, const char *name, const char *uid);

enum kube_verb { KUBE_LIST, KUBE_WATCH, KUBE_GET };
#define KUBE_VERBS (KUBE_GET + 1)
const char *kube_verb_name(enum kube_verb verb); /* "list", ... */

/* How requests end. A page of a list is one, and a watch from its beginning to its end. */
struct kube_ends {
	uint64_t ok;      /* answered; a GET also by 404, a watch until its time was over */
	uint64_t expired; /* 410: everything is listed again */
	uint64_t failed;
};

struct kube_stats {
	struct kube_ends ends[KUBE_VERBS];
	uint64_t requests, failures;
	uint64_t lists;         /* complete ones */
	uint64_t watches;       /* streams that were opened */
	uint64_t events;        /* of all watches, bookmarks among them */
	uint64_t bookmarks;     /* */
	uint64_t told;          /* node() */
	uint64_t gone;          /* gone() */
	uint64_t objects_bad;   /* objects that are no Node for us: left out */
	uint64_t labels_bad;    /* labels that do not fit our rules: left out, in what was told */
	uint64_t pod_cidrs_bad; /* likewise */
	uint64_t token_reads;   /* of the token's file */
	uint64_t heard;         /* CLOCK_MONOTONIC, us: the last answer or event; 0: none yet */
	size_t nodes;           /* known now */
	size_t doubts;          /* perhaps gone: being asked for */
	bool in_sync;
	bool watching;
	char last_bad[256]; /* why the last object of objects_bad was left out */
	char server[256];
};
void kube_stats(const struct kube *k, struct kube_stats *ret);
