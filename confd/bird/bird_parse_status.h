/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who BIRD is and how it is: greeting, `show status`, what became of `configure`.
 *
 * Pure. Codes decide, never words, where BIRD gives codes.
 */
#pragma once

#include <stdint.h>

#include "confd/bird/bird_reply.h"

struct bird_version {
	unsigned major, minor, patch;
};
/* "BIRD 2.0.12 ready." or "BIRD 3.1.7"; a missing part counts as 0. -EBADMSG: no BIRD. */
int bird_version_parse(const char *text, struct bird_version *ret);

#define BIRD_STATUS_TEXT 64
struct bird_status {
	struct bird_version version;
	char router_id[BIRD_STATUS_TEXT], hostname[BIRD_STATUS_TEXT];
	char server_time[BIRD_STATUS_TEXT], last_reboot[BIRD_STATUS_TEXT];
	char last_reconfiguration[BIRD_STATUS_TEXT];
	bool recovering;              /* graceful restart */
	unsigned waiting_for;         /* that many channels */
	char state[BIRD_STATUS_TEXT]; /* "Daemon is up and running" */
};
/* -EBADMSG: that was no status. */
int bird_status_parse(const struct bird_reply *reply, struct bird_status *ret);
/*
 * How long ago the last reconfiguration was. The times themselves are no mark of it: BIRD works
 * each out from the wall clock of the moment, so the same one is told differently from call to
 * call. -EBADMSG: in a format of the operator's.
 */
int bird_status_age_ms(const struct bird_status *s, int64_t *ret);

enum bird_progress {
	BIRD_PROGRESS_DONE,     /* what was accepted runs */
	BIRD_PROGRESS_RUNNING,  /* accepted, something is still shutting down */
	BIRD_PROGRESS_QUEUED,   /* accepted, will run next */
	BIRD_PROGRESS_SHUTDOWN, /* not accepted: BIRD ends */
	BIRD_PROGRESS_REFUSED,  /* the file is bad, or was not found */
	BIRD_PROGRESS_DENIED,   /* a restricted session */
	BIRD_PROGRESS_UNKNOWN,
};
const char *bird_progress_name(enum bird_progress p);
/* What the reply to `configure` says, and that to `configure status`. */
enum bird_progress bird_configure_parse(const struct bird_reply *reply);
enum bird_progress bird_configure_status_parse(const struct bird_reply *reply);
