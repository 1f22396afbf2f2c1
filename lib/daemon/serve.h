/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 server by libmicrohttpd on an sd-event loop, without threads.
 *
 *   client -> socket -> [serve] -> handler -> serve_reply, now or later
 *
 * For the agent's unix socket, metrics and the controller's lease server. The
 * caller gives a listening socket and a table of routes. A handler answers at
 * once, or says serve_wait() and answers from any later callback of the loop;
 * its connection is suspended until then. Waiting ends in exactly one of four
 * ways: an answer, the deadline, the client going away, the server being freed;
 * the last three are told to the waiter, so that its work can be cancelled.
 *
 * Errors are JSON objects as in docs/API.md. Unknown path: 404, wrong
 * method: 405, body too large: 413; handlers never see those. Handlers and
 * waiters may answer any waiting request, but not free the server.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/auto.h"
#include "lib/base/cni_code.h"
#include "lib/base/listen_address.h"
#include "lib/json/json.h"

struct serve;
/* One request. Valid until it is answered or its waiting has ended. */
struct serve_request;

typedef void serve_handler_fn(struct serve_request *request, void *arg);

/* Certificate, key and whom to believe; may serve several servers. */
struct serve_tls;
struct serve_tls_files {
	const char *certificate, *key; /* PEM; the chain behind the certificate */
	const char *client_ca;  /* who has no certificate of theirs is not heard; "": anybody */
	const char *client_crl; /* PEM: what they have revoked; "" or NULL: nothing */
};
/* 0 or a negative errno with the sentence. What files points to is borrowed. */
int serve_tls_new(const struct serve_tls_files *files, struct serve_tls **ret, struct err *err);
/* Reads all files again, for connections from now on; on failure the old ones stay. */
int serve_tls_reload(struct serve_tls *tls, struct err *err);
void serve_tls_free(struct serve_tls *tls);
AUTO_DEFINE(struct serve_tls *, serve_tls_free)

struct serve_route {
	const char *method, *path; /* "GET", "/v1/status": matched exactly, without the query */
	serve_handler_fn *handler;
};

struct serve_config {
	int fd;                           /* listening; the server's once serve_new() succeeded */
	const struct serve_route *routes; /* borrowed for the server's life */
	size_t n_routes;
	void *arg;                /* for the handlers */
	size_t max_body;          /* 0: 64 KiB */
	unsigned max_connections; /* 0: 1024; more wait in the socket's backlog */
	unsigned idle_s;          /* a client that completes nothing for so long; 0: 30 */
	unsigned head_s;          /* until its first request has come, TLS included; 0: idle_s */
	unsigned age_s;           /* connections end after so long, or a quarter less; 0: never */
	unsigned per_address;     /* connections; the quietest makes room; 0: any number */
	bool replace_quiet;       /* at max_connections a new one takes the quietest one's place */
	size_t connection_memory; /* for a request's head, of each connection; 0: 16 KiB */
	serve_handler_fn *other;  /* whatever no route matches; NULL: 404, 405 */
	bool plain_errors;        /* sentences as text, not JSON; with a 503 also Retry-After */
	struct serve_tls *tls;    /* borrowed for the server's life; NULL: none */
	/* Of each answer to a handler's request, for those who count; may be NULL. status 0: nobody
	 * waited for it any more. */
	void (*answered)(const char *path, unsigned status, uint64_t us, void *arg);
	/* No connection can be accepted for that errno, such as EMFILE; 0: now it can again. It is
	 * tried all the time. May be NULL. */
	void (*refused)(int error, void *arg);
};

int serve_new(sd_event *event, const struct serve_config *config, struct serve **ret);
/* What still waits is told SERVE_CLOSING and answered 503. */
void serve_free(struct serve *s);
AUTO_DEFINE(struct serve *, serve_free)
/* The files of tls were read again: whose certificate is not believed any more is cut off. */
void serve_recheck(struct serve *s);

/*
 * A listening unix socket that never existed with wider rights than mode, not even for a moment,
 * and takes the place of a stale one in one step. -EEXIST: there is something else at path.
 */
int serve_listen_unix(const char *path, unsigned mode, int *ret);
int serve_listen_tcp(const struct listen_address *at, int *ret);

/* --- what was asked; pointers live as long as the request ----------------------------------- */

const char *serve_method(const struct serve_request *request);
const char *serve_path(const struct serve_request *request);
/* The (first) query parameter of that name, decoded: NULL if absent, "" for "?name". */
const char *serve_query(const struct serve_request *request, const char *name);
/* NUL-terminated behind its last byte; "" if there is none. */
const char *serve_body(const struct serve_request *request, size_t *ret_len);
/* The other end; family 0 on a unix socket. */
void serve_peer(const struct serve_request *request, struct address *ret);
/*
 * Whose certificate the client has shown: "URI:", "DNS:", "IP:" or "CN:" with the first such name,
 * in this order; "" without client_ca. -EACCES with a sentence: it is not valid any more (files may
 * have been read again since the handshake), or names nobody.
 */
#define SERVE_NAME_TEXT 254
int serve_certified(const struct serve_request *request, char name[static SERVE_NAME_TEXT],
		    struct err *err);
/* The body as a JSON object; on failure the request has been answered 400 and is gone. */
int serve_body_json(struct serve_request *request, struct json_object **ret);

/* --- the answer; exactly one per request, after which it must not be touched ---------------- */

void serve_reply(struct serve_request *request, unsigned status, const char *json);
/* The object stays the caller's. */
void serve_reply_json(struct serve_request *request, unsigned status, struct json_object *object);
/* Any other kind of content; body is copied. */
void serve_reply_text(struct serve_request *request, unsigned status, const char *content_type,
		      const char *body, size_t len);
/* {"code": code, "error": the sentence, "details": details}; details may be NULL. */
void serve_reply_error(struct serve_request *request, unsigned status, enum cni_code code,
		       const char *details, const char *fmt, ...) PRINTF_LIKE(5, 6);

/*
 * One answer for many: made once, its bytes shared by all who get it. NULL without memory. The
 * body is copied.
 */
struct serve_shared;
struct serve_shared *serve_shared_new(unsigned status, const char *content_type, const char *body,
				      size_t len);
void serve_shared_unref(struct serve_shared *shared);
/* Takes a reference of its own. */
void serve_reply_shared(struct serve_request *request, struct serve_shared *shared);

/* --- waiting -------------------------------------------------------------------------------- */

enum serve_end {
	SERVE_LATE,   /* the deadline; may be answered from within the callback, else it gets 503 */
	SERVE_GONE,   /* nobody is there to read an answer any more */
	SERVE_CLOSING /* serve_free(); as SERVE_LATE */
};
/* Whatever it does, the request is gone when it returns. */
typedef void serve_end_fn(struct serve_request *request, enum serve_end why, void *arg);

/* No deadline: it ends with an answer, the client or the server. */
#define SERVE_FOREVER UINT64_MAX
/*
 * The answer comes later, within deadline_ms from now. To be called by a handler before it returns
 * unanswered; again, from anywhere, to change deadline and callback. A negative errno means that
 * waiting is not possible and the request has been answered 500.
 */
int serve_wait(struct serve_request *request, uint64_t deadline_ms, serve_end_fn *on_end,
	       void *arg);
