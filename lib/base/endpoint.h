/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server is, as an operator writes it: http://HOST:PORT, https://HOST:PORT or
 * unix:///PATH, several of them with ',' between.
 *
 * Pure. No path behind the port: it would end up in every request's URL.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

struct endpoint {
	char *name;      /* as configured, for people */
	char *url;       /* without a path */
	char *unix_path; /* NULL: by the URL */
};

/* whose: "etcd endpoint", for the sentence. -EINVAL or -ENOMEM; what is set is the caller's. */
int endpoint_parse(const char *text, size_t len, const char *whose, struct endpoint *ret,
		   struct err *err);
void endpoint_done(struct endpoint *e);
/* Whether the first n letters are http:// on another machine: what is sent there can be read on the way. */
bool endpoint_is_plain(const char *text, size_t n);
/* The first such one of a list, or NULL. */
const char *endpoints_plain(const char *text, size_t *ret_len);
/* How many a list names; at least 1. */
size_t endpoints_count(const char *text);
/* Which of n is tried first by whom: spreads nodes over servers. NULL: the first. */
size_t endpoints_start(const char *name, size_t n);
