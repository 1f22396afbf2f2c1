/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who wait for the status to change: roostctl status --watch.
 *
 *   GET /v1/status?after=7 -> [status_watch] -> answered when there is an eighth, or in time
 *
 * The status is not compared: whatever may have changed it counts as a change, and who asked looks
 * for itself. Changes of one moment are told together. Where nobody waits it costs a number.
 */
#pragma once

#include "lib/base/timers.h"
#include "lib/daemon/serve.h"

struct status_watch {
	uint64_t generation;      /* of the status; another one with every change */
	struct serve_request **v; /* those that wait */
	size_t n;
	struct timers *timers;
	struct timer soon;
	serve_handler_fn *answer;
	void *arg;
};

/* answer: with the status as it is then. */
void status_watch_init(struct status_watch *w, struct timers *timers, serve_handler_fn *answer,
		       void *arg);
/* After the server was freed: nobody waits any more. */
void status_watch_done(struct status_watch *w);

/* Something may have changed; cheap. */
void status_watch_changed(struct status_watch *w);
/* Whether this request waits now: it knows the newest. If not it is to be answered at once. */
bool status_watch_wait(struct status_watch *w, struct serve_request *request);
