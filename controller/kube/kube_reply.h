/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server's answer means, and the sentence for people.
 *
 *   HTTP status, body (a Status object, or a proxy's page) -> [kube_reply] -> verdict, text
 *
 * Pure. Nothing is believed to be gone because of a bare 404: a wrong path, a proxy or
 * another server says that too. Only a Status object that names the very Node counts.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum kube_verdict {
	KUBE_OK,
	KUBE_EXPIRED,      /* 410: list anew */
	KUBE_NOT_FOUND,    /* 404, of this very Node */
	KUBE_UNAUTHORIZED, /* 401 */
	KUBE_FORBIDDEN,    /* 403 */
	KUBE_FAILED,       /* anything else: later again */
};

struct kube_status {
	bool is_status; /* the object was one */
	long code;
	char reason[64], message[256];
	char kind[32], name[254]; /* details */
};

/* Of an object that need not be a Status at all; NULL is none. */
void kube_status_read(struct json_object *object, struct kube_status *ret);
/* The same from a body as it came: anything else than JSON is no Status. */
void kube_status_parse(const char *body, size_t len, struct kube_status *ret);

/*
 * verb: "list", "watch" or "get"; node: whom a get asked for, else NULL. http: the status; 0: an
 * ERROR event of a watch, where the Status' own code counts. text is set unless it is KUBE_OK.
 */
enum kube_verdict kube_judge(const char *verb, const char *node, long http,
			     const struct kube_status *status, struct err *text);
