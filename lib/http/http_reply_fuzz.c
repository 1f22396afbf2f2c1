/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same bytes, whole and in pieces, must come out as the same reply or the
 * same failure. The first byte seeds the pieces.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/http/http_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT 3000

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct outcome {
	struct http_reply_parser parser;
	struct err err;
	int result;
};

/* seed 0: whole; 1: byte by byte. Each piece in memory of its own size, so that one byte too many
 * is seen. */
static void feed(struct outcome *o, const uint8_t *data, size_t size, unsigned seed)
{
	memset(o, 0, sizeof(*o));
	http_reply_init(&o->parser, LIMIT);
	while (size) {
		size_t n = seed == 1 ? 1 : size;
		char *piece;

		if (seed > 1) {
			seed = seed * 1103515245u + 12345u;
			n = 1 + (seed >> 16 & 63);
			n = n < size ? n : size;
			seed |= 2;
		}
		piece = malloc(n);
		MUST(piece);
		memcpy(piece, data, n);
		o->result = http_reply_feed(&o->parser, piece, n, &o->err);
		free(piece);
		data += n;
		size -= n;
	}
}

static void check(const struct outcome *o)
{
	const struct http_reply_parser *p = &o->parser;

	MUST(o->result == 0 || o->result == 1 || o->result == -EBADMSG);
	MUST((o->result < 0) == (o->err.text[0] != '\0'));
	if (o->result != 1)
		return;
	MUST(p->status >= 200 && p->status <= 999);
	MUST(p->len == p->want && p->len <= LIMIT && p->body[p->len] == '\0');
}

static void same(const struct outcome *a, const struct outcome *b)
{
	MUST(a->result == b->result);
	MUST(strcmp(a->err.text, b->err.text) == 0);
	if (a->result != 1)
		return;
	MUST(a->parser.status == b->parser.status && a->parser.len == b->parser.len);
	MUST(memcmp(a->parser.body, b->parser.body, a->parser.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, bytes, pieces;

	if (size < 1)
		return 0;
	feed(&whole, data + 1, size - 1, 0);
	feed(&bytes, data + 1, size - 1, 1);
	feed(&pieces, data + 1, size - 1, 2U + data[0]);
	check(&whole);
	same(&whole, &bytes);
	same(&whole, &pieces);
	http_reply_done(&whole.parser);
	http_reply_done(&bytes.parser);
	http_reply_done(&pieces.parser);
	return 0;
}
