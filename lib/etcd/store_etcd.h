/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store over a real etcd, 3.4 or later, through its JSON gateway.
 *
 * Stays with one endpoint while it answers; goes to the next at once when it
 * does not, and waits (0.1 s growing to 5 s, jittered) after a full round. A request is
 * given 1.5 s, and up to 6 s where answers are known or found to take longer. One
 * HTTP stream carries all watches. A stream that has gone silent is probed
 * after 15 s and given up within 26 s. Every ten minutes each watched range is
 * re-checked by count and newest revision, because etcd itself has lost
 * events after compactions (before 3.4.31).
 */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/err.h"
#include "lib/http/http.h"
#include "lib/store/store.h"

struct store_etcd_options {
	const char *endpoints; /* "http://10.0.0.1:2379,https://b:2379,unix:///run/etcd.sock" */
	struct http_tls tls;
	const char *user, *password; /* NULL: no login */
	const char *name;            /* decides which endpoint is tried first; NULL: the first */
};

/* -EINVAL with the reason, or -ENOMEM. Connects only when the first request is made. */
int store_etcd_new(sd_event *event, const struct store_etcd_options *options, struct store **ret,
		   struct err *err);

/*
 * One request to a path of the gateway that is not about keys, such as "/v3/auth/role/add": a literal.
 * *answer gets the whole reply before fn hears of it; json_object_put() it.
 */
struct json_object;
int store_etcd_ask(struct store *s, const char *path, const char *body, uint32_t timeout_ms,
		   store_reply_fn *fn, void *arg, struct json_object **answer,
		   struct store_call **ret_call);
