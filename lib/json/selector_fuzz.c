/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two uses of the bytes: as a selector's text, which may be refused but only
 * in an orderly way, and as choices that write a valid selector whose answer
 * is known while it is written.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const struct label label_array[] = { { "a", "x" }, { "in", "" }, { "k.io/n-1", "y" } };
static const struct labels labels = { label_array, ARRAY_SIZE(label_array) };

static bool matches(const char *text)
{
	AUTO(selector_free) struct selector *s = NULL;
	struct err err;
	int r = selector_parse(text, &s, &err);

	if (r < 0)
		fprintf(stderr, "%s\n%s\n", text, err.text);
	MUST(r == 0);
	return selector_matches(s, &labels);
}

/* --- any text ------------------------------------------------------------------------------- */

static void check_refusal(const char *text, int r, const struct err *err)
{
	size_t column = 0;

	MUST(r == -EINVAL);
	MUST(sscanf(err->text, "column %zu: ", &column) == 1);
	MUST(column >= 1 && column <= strlen(text) + 1);
}

static void check_text(const char *text)
{
	AUTO(selector_free) struct selector *s = NULL;
	AUTO(free) char *negated = NULL;
	struct err err;
	int r = selector_parse(text, &s, &err);

	if (r < 0) {
		MUST(s == NULL);
		check_refusal(text, r, &err);
		return;
	}
	MUST(selector_matches(s, &labels) == matches(text));
	if (strspn(text, " \t\r\n") == strlen(text))
		return;

	MUST(asprintf(&negated, "!(%s)", text) > 0);
	selector_free(TAKE(s));
	/* Two levels and three bytes more may be too much, and nothing else. */
	if (selector_parse(negated, &s, &err) < 0)
		MUST(strstr(err.text, "nested deeper") || strstr(err.text, "selector longer"));
	else
		MUST(selector_matches(s, &labels) != matches(text));
}

/* --- a selector that knows its answer ------------------------------------------------------- */

struct writer {
	const uint8_t *data;
	size_t size;
	char text[4097];
	size_t length;
	unsigned depth;
};

/* Without bytes left it is always 0, which all choices below take as "end it". */
static unsigned choose(struct writer *w, unsigned n)
{
	if (w->size == 0 || w->length > 3500)
		return 0;
	w->size--;
	return *w->data++ % n;
}

static void put(struct writer *w, const char *text)
{
	size_t n = strlen(text);

	MUST(w->length + n < sizeof(w->text));
	memcpy(w->text + w->length, text, n + 1);
	w->length += n;
}

static bool write_term(struct writer *w)
{
	static const struct {
		const char *text;
		bool holds;
	} terms[] = {
		{ "all()", true },          { "has(a)", true },
		{ "has(b)", false },        { "a == 'x'", true },
		{ "a!='x'", false },        { "a == \"y\"", false },
		{ "b!=''", true },          { "in == ''", true },
		{ "in in{}", false },       { "in not in {''}", false },
		{ "a in {'y','x'}", true }, { "k.io/n-1 in { \"y\" }", true },
		{ "b not in {'x'}", true }, { "a not in {'y','z'}", true },
		{ "k.io/n == 'y'", false },
	};
	unsigned i = choose(w, ARRAY_SIZE(terms));

	put(w, terms[i].text);
	return terms[i].holds;
}

static bool write_or(struct writer *w);

static bool write_unary(struct writer *w)
{
	unsigned form = w->depth < 64 ? choose(w, 4) : 0;
	bool holds;

	if (form < 2)
		return write_term(w);
	w->depth++;
	put(w, form == 2 ? "!" : "(");
	holds = form == 2 ? !write_unary(w) : write_or(w);
	put(w, form == 2 ? "" : ")");
	w->depth--;
	return holds;
}

static bool write_and(struct writer *w)
{
	bool holds = write_unary(w);

	while (choose(w, 3) == 1) {
		put(w, " && ");
		holds = write_unary(w) && holds;
	}
	return holds;
}

static bool write_or(struct writer *w)
{
	bool holds = write_and(w);

	while (choose(w, 3) == 1) {
		put(w, "||");
		holds = write_and(w) || holds;
	}
	return holds;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(free) char *text = strndup((const char *)data, size);
	struct writer w = { .data = data, .size = size };
	bool holds = write_or(&w);

	MUST(text);
	check_text(text);
	MUST(matches(w.text) == holds);
	return 0;
}
