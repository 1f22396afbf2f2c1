/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the etcd store: watches, and how they and their stream work together.
 *
 *   WANTED --list--> LISTING --last page--> READY --stream carries it--> followed
 *      ^                                      |
 *      +------ compacted, lost, restored -----+
 *
 * Whatever happens marks what is wanted and wakes the one place that starts
 * lists and opens the stream (on_work in etcd_watch.c). Watches are listed one
 * at a time: memory is then that of one page, however many watches there are.
 */
#pragma once

#include "lib/etcd/etcd_client.h"
#include "lib/store/store_view.h"

enum watch_state { WATCH_WANTED, WATCH_LISTING, WATCH_READY };

struct etcd_watch {
	struct store_watch base;
	TAILQ_ENTRY(etcd_watch) entry;
	struct etcd *etcd;
	enum watch_state state;
	char *key, *range_end;
	struct store_watch_handlers handlers;
	void *arg;
	struct store_view *view;
	int64_t next; /* the lowest revision not yet seen in full */
	int64_t id;   /* on the present stream; 0: not carried */
	bool created; /* the stream has confirmed it */
	bool anew;    /* the next list proves nothing by revisions */
	bool dead;    /* unwatched in a callback; freed later */
	unsigned list_failures;
	sd_event_source *list_retry; /* armed: do not list before */
	struct store_call *list, *recheck;
	sd_event_source *recheck_again;
	unsigned doubts;
};

/* etcd_watch.c */
void etcd_wake(struct etcd *e);
void etcd_watch_want_list(struct etcd_watch *w);
void etcd_tell_put(struct etcd_watch *w, const struct store_kv *kv);
void etcd_tell_deleted(const char *key, int64_t revision, void *watch);
void etcd_tell_trouble(struct etcd *e, const char *text);
/* Checks that each range holds what its watch was told, soon. */
void etcd_recheck_soon(struct etcd *e);
/* Around callbacks of the user: watches that they end are freed afterwards. */
void etcd_callbacks_begin(struct etcd *e);
void etcd_callbacks_end(struct etcd *e);

/* etcd_stream.c */
void etcd_stream_open(struct etcd *e);
void etcd_stream_close(struct etcd *e);

/* Timers: made when first armed, fired once. */
int etcd_arm(struct etcd *e, sd_event_source **source, uint64_t usec, uint64_t accuracy,
	     sd_event_time_handler_t fn, void *arg);
void etcd_disarm(sd_event_source *source);
bool etcd_armed(sd_event_source *source);
/* A timer that just wakes; arg is the struct etcd. */
int etcd_on_wake(sd_event_source *source, uint64_t usec, void *arg);
