/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals in, words to systemd out: a daemon's life from ready to stopped.
 *
 *   SIGTERM, SIGINT, SIGHUP -> [lifecycle] -> main's handlers
 *   ready, reloading, stopping, watchdog -> [lifecycle] -> sd_notify
 *
 * The first SIGTERM or SIGINT asks main to stop, which has LIFECYCLE_STOP_MS for
 * it; a second one, or the time's end, ends the loop at once. Nothing needs
 * that time for safety: a kill at any moment is covered, stopping is courtesy.
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/auto.h"

#define LIFECYCLE_STOP_MS 3000

struct lifecycle;

struct lifecycle_handlers {
	/* Begin to stop; call lifecycle_stopped() when done. */
	void (*stop)(const char *why, void *arg);
	/* Read again what can be read again. */
	void (*reload)(void *arg);
};

/*
 * Before the first thread: blocks the three signals, ignores SIGPIPE (a peer that hangs up is an
 * error of a write, not our end), answers systemd's watchdog if it is asked for.
 */
int lifecycle_new(sd_event *event, const struct lifecycle_handlers *handlers, void *arg,
		  struct lifecycle **ret);
void lifecycle_free(struct lifecycle *l);
AUTO_DEFINE(struct lifecycle *, lifecycle_free)

/* READY=1 the first time, and STATUS=, shown by systemctl status. Equal texts are sent once. */
void lifecycle_ready(struct lifecycle *l);
void lifecycle_status(struct lifecycle *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Ends the loop: sd_event_loop() returns 0. */
void lifecycle_stopped(struct lifecycle *l);
