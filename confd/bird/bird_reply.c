/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_reply.h"

#include <errno.h>
#include <string.h>

#define KEEP_ROOM 65536

/* --- lines ---------------------------------------------------------------------------------- */

/* The code that a line starts with, or -1. */
static int code_of(const char *line)
{
	int code = 0;

	for (int i = 0; i < 4; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		code = code * 10 + (line[i] - '0');
	}
	return line[4] == '-' || line[4] == ' ' ? code : -1;
}

bool bird_line_next(const struct bird_reply *reply, struct bird_line *line)
{
	const char *start = reply->data + line->next;
	int code;

	if (line->next >= reply->len)
		return false;
	line->next += strlen(start) + 1;
	code = code_of(start);
	if (code >= 0)
		line->code = code;
	line->text = start + (code >= 0 ? 5 : 1);
	return true;
}

/* --- reader --------------------------------------------------------------------------------- */

static int make_room(struct bird_reader *r, size_t n)
{
	size_t room = r->room ?: 4096, max = r->max ?: BIRD_REPLY_MAX;
	char *grown;

	if (n > max - r->len)
		return -EMSGSIZE;
	if (r->len + n <= r->room)
		return 0;
	while (room < r->len + n)
		room *= 2;
	grown = realloc(r->data, room);
	if (!grown)
		return -ENOMEM;
	r->data = grown;
	r->room = room;
	return 0;
}

/* NULs end lines here, so one that came from outside is shown instead. */
static void append(struct bird_reader *r, const char *bytes, size_t n)
{
	char *to = r->data + r->len;

	memcpy(to, bytes, n);
	for (char *nul = memchr(to, '\0', n); nul; nul = memchr(nul, '\0', (size_t)(to + n - nul)))
		*nul = '?';
	r->len += n;
}

/* The line at r->line is whole, its LF a NUL. 1: it is the last one of its reply. */
static int take_line(struct bird_reader *r)
{
	const char *line = r->data + r->line;
	int code;

	if (line[0] == '+') {
		r->len = r->line;
		return 0;
	}
	if (line[0] == ' ') {
		if (!r->started)
			return -EBADMSG;
		r->line = r->len;
		return 0;
	}
	code = code_of(line);
	if (code < 0)
		return -EBADMSG;
	r->started = true;
	r->code = code;
	if (line[4] == ' ')
		return 1;
	r->line = r->len;
	return 0;
}

int bird_reader_feed(struct bird_reader *r, const char *bytes, size_t n, size_t *used,
		     struct bird_reply *ret)
{
	*used = 0;
	while (*used < n) {
		const char *from = bytes + *used;
		const char *lf = memchr(from, '\n', n - *used);
		size_t part = lf ? (size_t)(lf - from) + 1 : n - *used;
		int e = make_room(r, part);

		if (e < 0)
			return e;
		append(r, from, part);
		*used += part;
		if (!lf)
			return 0;
		r->data[r->len - 1] = '\0';
		e = take_line(r);
		if (e < 0)
			return e;
		if (e == 0)
			continue;
		*ret = (struct bird_reply){
			.code = r->code,
			.text = r->data + r->line + 5,
			.data = r->data,
			.len = r->len,
		};
		return 1;
	}
	return 0;
}

void bird_reader_next(struct bird_reader *r)
{
	if (r->room > KEEP_ROOM)
		bird_reader_done(r);
	r->len = r->line = 0;
	r->started = false;
	r->code = 0;
}

bool bird_reader_pending(const struct bird_reader *r)
{
	return r->len > 0;
}

void bird_reader_done(struct bird_reader *r)
{
	free(r->data);
	*r = (struct bird_reader){ .max = r->max };
}
