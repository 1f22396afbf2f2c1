/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statuses of static routes in etcd, and the end of records that are to be deleted.
 *
 *   static_status -> [static_report] -> store: status/static-route/<name>/<node>
 *
 * At first what stands there of ours is read. Then only what differs is written, many in one
 * transaction, each status at most every five seconds; what is to go goes at once. Every write
 * compares the fence's CREATE revision: an agent that lost its name cannot speak in it. A record
 * that is being deleted is removed by whoever finds it as it was read and without any status.
 */
#pragma once

#include "agent/node/register.h"
#include "agent/static/static_entries.h"
#include "lib/base/timers.h"

struct static_report;

struct static_report_options {
	struct store *store;
	struct timers *timers;
	const char *prefix, *node; /* borrowed */
	uint32_t rest;             /* ms between two writes of one status */
	struct static_entries *entries;
	/* NULL: not registered. */
	const struct fence *(*fence)(void *arg);
	/* All that stood in etcd of ours is known now. */
	void (*read)(void *arg);
	/* An entry is of no use any more: its record and its status are gone. */
	void (*over)(struct static_entry *e, void *arg);
	/* A sentence when nothing can be written, "" when it can again. */
	void (*trouble)(const char *text, void *arg);
	void *arg;
};

int static_report_new(const struct static_report_options *options, struct static_report **ret);
void static_report_free(struct static_report *r);

/* Something may have changed, or can be written now; cheap. */
void static_report_kick(struct static_report *r);
/* etcd takes requests that it refused or missed before: do not wait for the next try. */
void static_report_retry(struct static_report *r);
/* What stands in etcd is not known any more. */
void static_report_forget(struct static_report *r);
/* Whether there is any entry whose status has not been read. */
bool static_report_reading(const struct static_report *r);
