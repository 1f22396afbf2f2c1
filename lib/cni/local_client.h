/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the agent on its unix socket: the plugins' side of docs/API.md.
 *
 *   plugin -> [local_call] -> agent.sock -> serve
 *
 * Blocks, and needs nothing but libc and json-c, for a static program that
 * lives for a millisecond: socket, connect, send, poll, read, close.
 */
#pragma once

#include <json-c/json.h>

#include "lib/base/err.h"

/* A larger reply is refused. */
#define LOCAL_REPLY_MAX (1024U * 1024U)

/*
 * body: JSON text, or NULL for none. 0 with the agent's status (also 4xx and 5xx) and the reply's
 * JSON object, which is NULL when the reply has no body; json_object_put() it. Otherwise, with a
 * sentence in err:
 *   -ENOTCONN    no agent: no socket there, or nobody listens on it
 *   -ETIMEDOUT   not answered in deadline_ms; the request may have been carried out
 *   -ECONNRESET  the agent went away before it had answered; likewise
 *   -EBADMSG     the answer is not one: not HTTP, no JSON object, larger than LOCAL_REPLY_MAX
 *   -EINVAL      socket_path too long, or method or path with a blank or control character
 *   else         what connect(2) and its like said: -EACCES, -EMFILE, -ENOMEM
 */
int local_call(const char *socket_path, const char *method, const char *path, const char *body,
	       unsigned deadline_ms, unsigned *ret_status, struct json_object **ret_json,
	       struct err *err);
