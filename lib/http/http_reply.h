/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reply of an HTTP/1.1 server, read piece by piece.
 *
 *   bytes of the socket -> [http_reply_feed] -> status, body
 *
 * Pure. Understands just what our own server sends: a status line, fields, a
 * body with Content-Length. Chunked replies, interim ones (1xx), folded lines
 * and lines without CR are refused with a sentence. How the bytes are cut into
 * pieces changes nothing; what follows the body is not looked at.
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

#define HTTP_REPLY_HEAD_MAX 8192

struct http_reply_parser {
	char head[HTTP_REPLY_HEAD_MAX];
	size_t head_len;
	size_t max_body;
	unsigned status;
	char *body; /* NUL-terminated once complete */
	size_t len, want;
	int result; /* what the last feed returned */
	enum { HTTP_REPLY_HEAD, HTTP_REPLY_BODY } part;
};

void http_reply_init(struct http_reply_parser *p, size_t max_body);
void http_reply_done(struct http_reply_parser *p);

/*
 * 1: complete, status and body are there. 0: more is needed. -EBADMSG: not such a reply, or larger
 * than max_body; -ENOMEM. All but 0 stay so.
 */
int http_reply_feed(struct http_reply_parser *p, const char *data, size_t n, struct err *err);
