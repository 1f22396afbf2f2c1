/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client inside: what its requests, list, watch and doubts share.
 *
 *   kube -> list (kube_pages), then watch (kube_watch) -> kube_take -> handlers
 *                                     perhaps gone -> kube_doubt
 *   all of them -> kube_request -> libcurl
 */
#pragma once

#include <sys/queue.h>

#include "controller/kube/kube.h"
#include "controller/kube/kube_config.h"
#include "controller/kube/kube_list.h"
#include "controller/kube/kube_reply.h"
#include "controller/kube/kube_view.h"
#include "lib/http/http.h"
#include "lib/json/json_stream.h"

/* etcd takes 1.5 MB for an object in its own encoding; as JSON that is somewhat more. */
#define KUBE_OBJECT_MAX   (8 * 1024 * 1024)
#define KUBE_OBJECT_DEPTH 64
/* Error replies: of more than this nothing is kept. */
#define KUBE_ERROR_MAX 16384

AUTO_DEFINE(char *, curl_free)

struct kube_request;

struct kube_outcome {
	enum kube_verdict verdict;
	bool timed_out;
	uint32_t retry_after; /* seconds */
	struct err text;      /* unless KUBE_OK */
};

/* One GET; embedded in whoever makes it, and all zero while none is under way. */
struct kube_request {
	struct kube *kube;
	enum kube_verb verb;
	const char *node;      /* NULL, or whom a get is for; borrowed */
	http_head_fn *on_ok;   /* NULL, or: a 200 has come */
	http_data_fn *on_data; /* of a 200 */
	/* What it comes to after a look at the body; q may be freed. */
	enum kube_verdict (*on_done)(struct kube_request *q, const struct kube_outcome *outcome);
	void *arg;

	struct http_call *http;
	struct curl_slist *headers;
	struct err reason; /* why on_data gave up */
	long status;
	char *error; /* the body of anything but a 200 */
	size_t error_len;
};

struct kube_doubt {
	TAILQ_ENTRY(kube_doubt) entry;
	struct kube *kube;
	char *name, *uid; /* uid "": just look what is there */
	struct kube_request request;
	struct json_stream *splitter;
	struct json_object *found;
	bool overtaken; /* list or watch have spoken of it since the request went out */
};
TAILQ_HEAD(kube_doubts, kube_doubt);

struct kube {
	sd_event *event;
	struct http *http;
	struct kube_config *config;
	struct kube_url url;
	struct curl_slist *connect_to;
	struct kube_options options;
	struct kube_handlers handlers;
	void *arg;
	struct kube_view *view;
	struct kube_stats stats;

	/* The token's file as it was last. */
	char *token;
	uint64_t token_read; /* CLOCK_MONOTONIC, µs */
	bool token_refused;

	/* List or watch: one at a time. */
	struct kube_request request;
	sd_event_source *timer; /* armed: go on then */
	unsigned failures;
	bool token_retried;
	/* list */
	struct kube_list *pages;
	char *next_page; /* the continue token; NULL: the first page */
	char *list_version;
	/* watch */
	struct json_stream *events;
	char *version;   /* from where to watch; NULL: list first */
	uint64_t opened; /* CLOCK_MONOTONIC, µs */
	uint32_t seconds;
	bool moved; /* this watch has brought a new version */

	struct kube_doubts doubts;
	size_t asking;
	sd_event_source *doubt_timer;
	unsigned doubt_failures;

	struct err trouble, doubt_trouble, told_trouble;
};

/* kube_request.c */
/* The path is printed. 0 or a negative errno with a sentence. */
int kube_request_start(struct kube_request *q, uint32_t timeout_ms, struct err *err,
		       const char *path, ...) PRINTF_LIKE(4, 5);
void kube_request_cancel(struct kube_request *q);

/* kube.c */
void kube_go_on(struct kube *k); /* list or watch, at once */
/* A failure of list or watch: told, and repeated later. */
void kube_failed(struct kube *k, const struct kube_outcome *outcome);
/* A Node as list, watch or GET have it: told if it is news. 0 or -ENOMEM. */
int kube_take(struct kube *k, const struct kube_node *node);
/* One of the last two is what the caller has been told of. */
void kube_set_trouble(struct kube *k, struct err *slot, const char *text);
/* A timer, made when first needed. */
int kube_arm(struct kube *k, sd_event_source **timer, uint64_t usec, sd_event_time_handler_t fn);
uint64_t kube_delay(const struct kube *k, unsigned failures, uint32_t retry_after);
/* Reads an object as a Node; -EINVAL is counted and kept for the statistics. */
int kube_read_node(struct kube *k, struct json_object *object, struct kube_node *ret);
/* metadata.resourceVersion, or NULL; borrowed from the object. */
const char *kube_version_of(struct json_object *object);

/* kube_pages.c, kube_watch.c */
void kube_list_start(struct kube *k);
void kube_watch_start(struct kube *k);

/* kube_doubt.c */
int kube_doubt(struct kube *k, const char *name, const char *uid);
/* True: that Node is in doubt, and what was just heard of it will be asked for. */
bool kube_in_doubt(struct kube *k, const char *name);
void kube_doubts_done(struct kube *k);
