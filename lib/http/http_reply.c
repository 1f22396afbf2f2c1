/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/http_reply.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define HEAD_END     "\r\n\r\n"
#define HEAD_END_LEN 4

/* What the head says about the body. */
struct framing {
	bool has_length;
	size_t length;
};

void http_reply_init(struct http_reply_parser *p, size_t max_body)
{
	p->head_len = p->len = p->want = 0;
	p->max_body = max_body;
	p->status = 0;
	p->body = NULL;
	p->result = 0;
	p->part = HTTP_REPLY_HEAD;
}

void http_reply_done(struct http_reply_parser *p)
{
	free(p->body);
	p->body = NULL;
}

/* --- the head ------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK"; the phrase may be empty, and some servers leave out its blank too. */
static int read_status_line(struct http_reply_parser *p, const char *line, size_t n,
			    struct err *err)
{
	const char *digits = line + strlen("HTTP/1.x ");

	if (n < strlen("HTTP/1.x nnn") || memcmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) ||
	    line[8] != ' ' || !is_digit(digits[0]) || !is_digit(digits[1]) ||
	    !is_digit(digits[2]) || (n > 12 && line[12] != ' '))
		return err_set(err, -EBADMSG, "the reply does not begin like one of HTTP/1.1");
	p->status = (unsigned)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + digits[2] - '0');
	if (p->status < 200)
		return err_set(err, -EBADMSG, "status %u is not a final one", p->status);
	return 0;
}

static int read_length(const char *value, size_t n, size_t max, struct framing *f, struct err *err)
{
	size_t length = 0;

	if (f->has_length)
		return err_set(err, -EBADMSG, "the reply gives its length twice");
	if (n == 0)
		return err_set(err, -EBADMSG, "the reply's length is empty");
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(value[i]))
			return err_set(err, -EBADMSG, "the reply's length is not a number");
		length = length * 10 + (size_t)(value[i] - '0');
		if (length > max)
			return err_set(err, -EBADMSG, "the reply is larger than %zu bytes", max);
	}
	f->has_length = true;
	f->length = length;
	return 0;
}

static bool is_name(const char *name, size_t n, const char *want)
{
	return n == strlen(want) && strncasecmp(name, want, n) == 0;
}

static int read_field(const struct http_reply_parser *p, const char *line, size_t n,
		      struct framing *f, struct err *err)
{
	const char *end = line + n, *colon = memchr(line, ':', n), *value;
	size_t name_len;

	if (!colon || colon == line || memchr(line, ' ', (size_t)(colon - line)) ||
	    memchr(line, '\t', (size_t)(colon - line)))
		return err_set(err, -EBADMSG, "the reply's head has a line that is no field");
	name_len = (size_t)(colon - line);
	for (value = colon + 1; value < end && (*value == ' ' || *value == '\t'); value++)
		;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (is_name(line, name_len, "Content-Length"))
		return read_length(value, (size_t)(end - value), p->max_body, f, err);
	if (is_name(line, name_len, "Transfer-Encoding"))
		return err_set(err, -EBADMSG,
			       "the reply has a transfer encoding, which is not "
			       "understood here");
	return 0;
}

static int read_lines(struct http_reply_parser *p, struct framing *f, struct err *err)
{
	const char *line = p->head, *end = p->head + p->head_len - 2; /* at the empty line */
	int r;

	while (line < end) {
		const char *cr = memchr(line, '\r', (size_t)(end - line));
		size_t n = (size_t)(cr - line);

		/* The head ends in CR LF CR LF, so there always is one. */
		if (cr[1] != '\n' || memchr(line, '\n', n) || memchr(line, '\0', n))
			return err_set(err, -EBADMSG, "the reply's head has a broken line");
		r = line == p->head ? read_status_line(p, line, n, err)
				    : read_field(p, line, n, f, err);
		if (r < 0)
			return r;
		line = cr + 2;
	}
	return 0;
}

static int read_head(struct http_reply_parser *p, struct err *err)
{
	struct framing f = { 0 };
	int r = read_lines(p, &f, err);

	if (r < 0)
		return r;
	/* These have no body, whatever their length says (RFC 9110, 8.6). */
	if (p->status == 204 || p->status == 304)
		f = (struct framing){ .has_length = true };
	if (!f.has_length)
		return err_set(err, -EBADMSG, "the reply does not say its length");
	p->want = f.length;
	p->body = malloc(p->want + 1);
	if (!p->body)
		return err_set(err, -ENOMEM, "out of memory");
	p->body[p->want] = '\0';
	p->part = HTTP_REPLY_BODY;
	return 0;
}

/* --- the pieces ----------------------------------------------------------------------------- */

/* How many bytes of data belong to the head, which may end within them. */
static size_t take_head(struct http_reply_parser *p, const char *data, size_t n, bool *ret_whole)
{
	size_t i = 0;

	*ret_whole = false;
	while (i < n && p->head_len < sizeof(p->head) && !*ret_whole) {
		p->head[p->head_len++] = data[i++];
		*ret_whole = p->head_len >= HEAD_END_LEN &&
			     memcmp(p->head + p->head_len - HEAD_END_LEN, HEAD_END, HEAD_END_LEN) ==
				     0;
	}
	return i;
}

static int feed(struct http_reply_parser *p, const char *data, size_t n, struct err *err)
{
	if (p->part == HTTP_REPLY_HEAD) {
		bool whole;
		size_t used = take_head(p, data, n, &whole);
		int r;

		if (!whole)
			return p->head_len < sizeof(p->head)
				       ? 0
				       : err_set(err, -EBADMSG, "the reply's head is too long");
		r = read_head(p, err);
		if (r < 0)
			return r;
		data += used;
		n -= used;
	}
	if (n > p->want - p->len)
		n = p->want - p->len;
	memcpy(p->body + p->len, data, n);
	p->len += n;
	return p->len == p->want;
}

int http_reply_feed(struct http_reply_parser *p, const char *data, size_t n, struct err *err)
{
	if (p->result == 0)
		p->result = feed(p, data, n, err);
	return p->result;
}
