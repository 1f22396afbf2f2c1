/* SPDX-License-Identifier: Apache-2.0 */
/* What bird_control.c, bird_connect.c and bird_configure.c share; for nobody else. */
#pragma once

#include <sys/queue.h>

#include "confd/bird/bird_control.h"
#include "lib/base/err.h"

struct bird_asked {
	TAILQ_ENTRY(bird_asked) entry;
	bird_reply_fn *fn;
	void *arg;
	void (*release)(void *arg); /* NULL: nothing to release */
	uint32_t timeout_ms;
	char command[BIRD_COMMAND_MAX + 2]; /* with LF and NUL */
};
TAILQ_HEAD(bird_asked_list, bird_asked);

struct bird_waiter {
	TAILQ_ENTRY(bird_waiter) entry;
	bird_configured_fn *fn;
	void *arg;
};
TAILQ_HEAD(bird_waiter_list, bird_waiter);

struct bird_control {
	sd_event *event;
	char *path, *folder;
	const char *name; /* of the socket in its folder */
	struct bird_control_handlers handlers;
	void *arg;

	enum { BIRD_AWAY, BIRD_GREETING, BIRD_CONNECTED } state;
	int fd;
	sd_event_source *io;
	sd_event_source *timer; /* away: the next try; else the deadline of what BIRD owes us */
	struct bird_reader reader;
	struct bird_version version;

	int inotify; /* while away; -1: none */
	sd_event_source *watch;
	uint32_t retry_ms;
	struct err problem, told; /* why we are away; as on_disconnected knows it */

	struct bird_asked_list asked;
	bool in_flight; /* the first of them is with BIRD */

	struct {
		enum { CONFIGURE_IDLE, CONFIGURE_BEFORE, CONFIGURE_SENT, CONFIGURE_AFTER } phase;
		struct bird_waiter_list current, waiting;
		sd_event_source *timer;
		uint64_t deadline_us;
		uint32_t poll_ms;
	} configure;
};

/* bird_connect.c */
int bird_connect_new(struct bird_control *c, const char *path);
void bird_connect_free(struct bird_control *c);
int bird_timer_in(struct bird_control *c, uint64_t ms);
/* Away from here on; the sources are gone, the next try is on its way. */
void bird_hang_up(struct bird_control *c);
/* Connected: no more watching for the socket. */
void bird_arrived(struct bird_control *c);

/* bird_control.c */
/* bird_command() with an argument that is released after the callback, or without one. */
int bird_ask(struct bird_control *c, const char *command, uint32_t timeout_ms, bird_reply_fn *fn,
	     void *arg, void (*release)(void *arg));
void bird_on_bytes(struct bird_control *c, const char *bytes, size_t n);
void bird_on_deadline(struct bird_control *c);
/* The sentence is in c->problem. err is what the command in flight gets. */
void bird_lost(struct bird_control *c, int err);
void bird_tell_problem(struct bird_control *c);

/* bird_configure.c */
int bird_configure_new(struct bird_control *c);
void bird_configure_free(struct bird_control *c);
void bird_configure_lost(struct bird_control *c);
