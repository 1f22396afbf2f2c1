/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests by libcurl's multi interface on an sd-event loop.
 *
 * Knows nothing of etcd or Kubernetes. Replies are collected up to a limit, or handed on as
 * they arrive. Callbacks come from the loop, never from within libcurl nor
 * from within http_post() or http_get(), and may start and cancel requests, but not free
 * the struct http.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/auto.h"
#include "lib/http/certificate.h"

struct http;
struct http_call;

/*
 * Paths of PEM files, read at each connection, or the PEM texts themselves; NULL or "" for none.
 * A text goes before a path.
 */
struct http_tls {
	const char *cacert, *cert, *key;
	const char *cacert_pem, *cert_pem, *key_pem;
	bool insecure; /* believe any server */
	/* For messages, a literal: the setting that cacert comes from; NULL: none is named. */
	const char *cacert_setting;
};

struct http_reply {
	/*
	 * 0, -ENOTCONN (never connected), -ETIMEDOUT, -EMSGSIZE (over max_reply),
	 * -ECONNRESET (cut off), -EIO; text says more.
	 */
	int err;
	const char *text;
	bool tls;  /* a failure of TLS or of its files */
	bool sent; /* the whole request may have reached the server */
	long status;
	const char *body; /* NUL-terminated; empty for a stream */
	size_t len;
	uint32_t retry_after; /* seconds that the server asked for; 0: none */
};
typedef void http_done_fn(const struct http_reply *reply, void *arg);
/* The final status has come, before any data; http_done_fn may not be far behind. */
typedef void http_head_fn(long status, void *arg);
/* A negative return ends the request: http_done_fn gets it as err. */
typedef int http_data_fn(const char *data, size_t n, void *arg);

struct http_request {
	const char *url;
	const char *method;         /* NULL: POST or GET, by the function that is called */
	const char *unix_path;      /* connect there instead; NULL: by the URL */
	struct curl_slist *headers; /* borrowed until the request is done */
	/* "HOST:PORT:ADDRESS:PORT" as libcurl has it: another name for TLS than for the connection.
	 * Borrowed likewise; NULL: by the URL. */
	struct curl_slist *connect_to;
	const char *body; /* copied */
	size_t len;
	/*
	 * Never send it a second time: libcurl by itself repeats a POST when a
	 * kept connection turns out dead, which is wrong for a compare-and-swap.
	 */
	bool once;
	uint32_t connect_timeout_ms; /* 0: 1000 */
	uint32_t timeout_ms;         /* 0: none */
	size_t max_reply;
	http_head_fn *on_head; /* NULL: not asked */
	http_data_fn *on_data; /* stream: data as it arrives */
	http_done_fn *on_done;
	void *arg;
};

int http_new(sd_event *event, const struct http_tls *tls, struct http **ret);
/* Requests under way are dropped without a callback. */
void http_free(struct http *h);
AUTO_DEFINE(struct http *, http_free)

/* Of the server that was spoken to last by TLS; NULL: none yet. */
const struct certificate *http_server(const struct http *h);

int http_post(struct http *h, const struct http_request *request, struct http_call **ret);
/* Body and once do not count: a GET may be sent again. */
int http_get(struct http *h, const struct http_request *request, struct http_call **ret);
/* No callback will come. */
void http_cancel(struct http_call *c);
