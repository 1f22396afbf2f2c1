/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_mask.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORD "password"

struct out {
	char *text; /* NULL: out of memory */
	size_t len, room;
};

static void put(struct out *o, const char *text, size_t n)
{
	if (o->text && o->len + n >= o->room) {
		size_t room = 2 * (o->len + n) + 1;
		char *grown = realloc(o->text, room);

		if (!grown)
			free(o->text);
		o->text = grown;
		o->room = room;
	}
	if (!o->text)
		return;
	memcpy(o->text + o->len, text, n);
	o->len += n;
	o->text[o->len] = '\0';
}

static struct out begin(size_t room)
{
	struct out o = { malloc(room + 1), 0, room + 1 };

	if (o.text)
		o.text[0] = '\0';
	return o;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether p is at the word, and at no part of a longer one. */
static bool is_word(const char *text, const char *p, const char *end)
{
	const size_t n = strlen(WORD);

	return (size_t)(end - p) >= n && strncasecmp(p, WORD, n) == 0 &&
	       (p == text || !in_word(p[-1])) && (p + n == end || !in_word(p[n]));
}

/* Behind blanks and comments. */
static const char *skip(const char *p, const char *end)
{
	for (;;) {
		const char *before = p;

		while (p < end && isspace((unsigned char)*p))
			p++;
		if (p < end && *p == '#')
			while (p < end && *p != '\n')
				p++;
		if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
			const char *close = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);

			p = close ? close + 2 : end;
		}
		if (p == before)
			return p;
	}
}

/* The end of the value that begins at p; in *ret_quoted whether it is a text. */
static const char *value_end(const char *p, const char *end, bool *ret_quoted)
{
	*ret_quoted = p < end && *p == '"';
	if (*ret_quoted) {
		for (p++; p < end && *p != '"';)
			p++;
		return p < end ? p + 1 : end;
	}
	while (p < end && !isspace((unsigned char)*p) && !strchr(";{}", *p))
		p++;
	return p;
}

static char *mask_words(const char *text, size_t len)
{
	const char *end = text + len, *done = text;
	struct out o = begin(len);

	for (const char *p = text; p < end; p++) {
		const char *value;
		bool quoted;

		if (!is_word(text, p, end))
			continue;
		value = skip(p + strlen(WORD), end);
		p = value_end(value, end, &quoted);
		put(&o, done, (size_t)(value - done));
		if (p > value && quoted)
			put(&o, "\"" BIRD_MASK "\"", strlen(BIRD_MASK) + 2);
		else if (p > value)
			put(&o, BIRD_MASK, strlen(BIRD_MASK));
		done = p--;
	}
	put(&o, done, (size_t)(end - done));
	return o.text;
}

static char *mask_secret(char *text, const char *secret)
{
	struct out o = begin(strlen(text));
	const char *done = text;

	for (const char *p; (p = strstr(done, secret)); done = p + strlen(secret)) {
		put(&o, done, (size_t)(p - done));
		put(&o, BIRD_MASK, strlen(BIRD_MASK));
	}
	put(&o, done, strlen(done));
	free(text);
	return o.text;
}

char *bird_mask(const char *text, size_t len, const struct texts *secrets)
{
	char *masked = mask_words(text, len);

	for (size_t i = 0; masked && i < secrets->n; i++)
		if (secrets->v[i][0])
			masked = mask_secret(masked, secrets->v[i]);
	return masked;
}
