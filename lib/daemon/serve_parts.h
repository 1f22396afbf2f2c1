/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's files share; nobody else includes it. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "lib/daemon/serve.h"

/*
 * Made when the head has been read, freed when libmicrohttpd reports it completed, which never
 * happens while the connection is suspended; so a waiter's pointer stays good until it is told.
 */
struct serve_request {
	TAILQ_ENTRY(serve_request) entry; /* in serve.suspended, if suspended */
	struct serve *serve;
	struct MHD_Connection *connection;
	const char *method, *path;
	char *body; /* NUL-terminated, NULL if none has come */
	size_t len, room;
	struct MHD_Response *response; /* NULL though answered: the connection is closed */
	struct serve_shared *shared;   /* or this one */
	unsigned status;
	sd_event_source *deadline, *watch;
	serve_end_fn *on_end;
	void *arg;
	uint64_t began;
	bool too_large, handled, waits, suspended, answered;
};

TAILQ_HEAD(request_list, serve_request);

struct serve {
	sd_event *event;
	struct MHD_Daemon *daemon;
	int fd;    /* listening */
	int error; /* why no connection can be accepted; 0: it can */
	unsigned max_connections;
	sd_event_source *io, *timer, *again, *accept, *accept_again;
	struct request_list suspended;
	const struct serve_route *routes;
	size_t n_routes;
	void *arg;
	void (*answered)(const char *path, unsigned status, uint64_t us, void *arg);
	void (*refused)(int error, void *arg);
	serve_handler_fn *other;
	struct serve_tls *tls;
	bool plain_errors;
	size_t max_body;
	uint64_t timer_at; /* when the timer will fire; UINT64_MAX: it is off */
	uint32_t gone_events;
	bool closing;
};

struct serve_shared {
	unsigned refs, status;
	struct MHD_Response *response;
};

/* serve_tls.c: options of the daemon, ended by one of kind MHD_OPTION_END; at most that many. */
#define SERVE_TLS_OPTIONS 5
void serve_tls_options(struct serve_tls *tls, struct MHD_OptionItem *ret);
/* A connection begins: whose certificate it shows, and whether the other end must show one. */
void serve_tls_connection(struct serve_tls *tls, struct MHD_Connection *connection);

/* The one way to an answer. Takes the response; NULL closes the connection instead. */
void serve_answer(struct serve_request *q, unsigned status, struct MHD_Response *response);
/* Ends the waiting, tells the waiter, and answers if it did not. */
void serve_end(struct serve_request *q, enum serve_end why);
void serve_stop_waiting(struct serve_request *q);

/* libmicrohttpd's callbacks. The first comes with the head, with each part of the body, at its end,
 * and when the connection is resumed. */
enum MHD_Result serve_on_access(void *arg, struct MHD_Connection *connection, const char *url,
				const char *method, const char *version, const char *data,
				size_t *n, void **context);
void serve_on_completed(void *arg, struct MHD_Connection *connection, void **context,
			enum MHD_RequestTerminationCode why);
