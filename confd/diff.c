/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/diff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/auto.h"

/* --- lines ---------------------------------------------------------------------------------- */

struct line {
	const char *text; /* with its newline, if it has one */
	size_t len;
};
struct lines {
	struct line *v;
	size_t n;
};

static int split(const char *text, size_t len, struct lines *ret)
{
	size_t room = 1, n = 0;

	for (size_t i = 0; i < len; i++)
		room += text[i] == '\n';
	ret->v = calloc(room, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) + 1 : len;

		ret->v[n++] = (struct line){ text, line };
		text += line;
		len -= line;
	}
	ret->n = n;
	return 0;
}

static void lines_done_auto(struct lines *l)
{
	free(l->v);
}

static bool same(const struct line *a, const struct line *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* --- the shortest edit ---------------------------------------------------------------------- */

/* The middles, without the common head and tail; what happens to each line of theirs. */
struct edit {
	const struct line *a, *b;
	size_t n_a, n_b;
	bool *gone, *come;
};

/* ends: how far each diagonal got. trace: the same before each step d, 2 * d + 1 numbers of it,
 * which is all that the way back looks at. */
struct search {
	int32_t *ends, *trace;
	int32_t max;
};

static int32_t *trace_at(const struct search *s, int32_t d)
{
	return s->trace + (size_t)d * (size_t)d; /* 1 + 3 + 5 + ... */
}

static int32_t step(const int32_t *ends, int32_t d, int32_t k)
{
	bool down = k == -d || (k != d && ends[k - 1] < ends[k + 1]);

	return down ? ends[k + 1] : ends[k - 1] + 1;
}

/* The number of edits, or -1 for too many. */
static int32_t search(const struct edit *e, const struct search *s)
{
	int32_t n = (int32_t)e->n_a, m = (int32_t)e->n_b, *ends = s->ends + s->max + 1;

	for (int32_t d = 0; d <= s->max; d++) {
		for (int32_t k = -d; k <= d; k++)
			trace_at(s, d)[k + d] = ends[k];
		for (int32_t k = -d; k <= d; k += 2) {
			int32_t x = d == 0 ? 0 : step(ends, d, k), y = x - k;

			while (x < n && y >= 0 && y < m && same(&e->a[x], &e->b[y]))
				x++, y++;
			ends[k] = x;
			if (x >= n && y >= m)
				return d;
		}
	}
	return -1;
}

static void walk_back(struct edit *e, const struct search *s, int32_t d)
{
	int32_t x = (int32_t)e->n_a, y = (int32_t)e->n_b;

	for (; d > 0; d--) {
		const int32_t *ends = trace_at(s, d) + d;
		int32_t k = x - y;
		bool down = k == -d || (k != d && ends[k - 1] < ends[k + 1]);
		int32_t before = down ? k + 1 : k - 1;

		x = ends[before];
		y = x - before;
		if (down)
			e->come[y] = true;
		else
			e->gone[x] = true;
	}
}

static int shortest(struct edit *e)
{
	AUTO(free) int32_t *ends = NULL;
	AUTO(free) int32_t *trace = NULL;
	struct search s = { .max = DIFF_EDITS_MAX };
	int32_t d = -1;

	if (e->n_a + e->n_b < DIFF_EDITS_MAX)
		s.max = (int32_t)(e->n_a + e->n_b);
	/* A billion lines would not fit the numbers; nobody compares those. */
	if (e->n_a < INT32_MAX / 2 && e->n_b < INT32_MAX / 2) {
		s.ends = ends = calloc((size_t)s.max * 2 + 3, sizeof(*ends));
		s.trace = trace = calloc(((size_t)s.max + 1) * ((size_t)s.max + 1), sizeof(*trace));
		if (!ends || !trace)
			return -ENOMEM;
		d = search(e, &s);
	}
	if (d >= 0) {
		walk_back(e, &s, d);
		return 0;
	}
	memset(e->gone, true, e->n_a);
	memset(e->come, true, e->n_b);
	return 0;
}

/* --- printing ------------------------------------------------------------------------------- */

struct shown {
	struct lines a, b;
	const bool *gone, *come;
	FILE *out;
};

static void print_line(FILE *out, char mark, const struct line *l)
{
	fputc(mark, out);
	fwrite(l->text, 1, l->len, out);
	if (l->text[l->len - 1] != '\n')
		fputs("\n\\ No newline at end of file\n", out);
}

/* Lines are numbered from 1; an empty range has the number of the line before it. */
static void print_range(FILE *out, char mark, size_t from, size_t n)
{
	fprintf(out, "%c%zu", mark, n ? from + 1 : from);
	if (n != 1)
		fprintf(out, ",%zu", n);
}

static bool went(const struct shown *s, size_t i)
{
	return i < s->a.n && s->gone[i];
}

static bool came(const struct shown *s, size_t j)
{
	return j < s->b.n && s->come[j];
}

/* From where something changes to the context behind the last change that is near. */
static void find_end(const struct shown *s, size_t *i, size_t *j)
{
	size_t stayed = 0;

	while ((*i < s->a.n || *j < s->b.n) && stayed <= 2UL * DIFF_CONTEXT) {
		bool out = went(s, *i), in = !out && came(s, *j);

		stayed = out || in ? 0 : stayed + 1;
		*i += !in;
		*j += !out;
	}
	if (stayed > DIFF_CONTEXT) {
		*i -= stayed - DIFF_CONTEXT;
		*j -= stayed - DIFF_CONTEXT;
	}
}

static void print_hunk(const struct shown *s, size_t i, size_t j, size_t end_i, size_t end_j)
{
	fputs("@@ ", s->out);
	print_range(s->out, '-', i, end_i - i);
	fputc(' ', s->out);
	print_range(s->out, '+', j, end_j - j);
	fputs(" @@\n", s->out);
	while (i < end_i || j < end_j) {
		if (went(s, i)) {
			print_line(s->out, '-', &s->a.v[i++]);
		} else if (came(s, j)) {
			print_line(s->out, '+', &s->b.v[j++]);
		} else {
			print_line(s->out, ' ', &s->a.v[i++]);
			j++;
		}
	}
}

static void print_hunks(const struct shown *s)
{
	size_t i = 0, j = 0;

	while (i < s->a.n || j < s->b.n) {
		size_t context = i < DIFF_CONTEXT ? i : DIFF_CONTEXT, end_i = i, end_j = j;

		if (!went(s, i) && !came(s, j)) {
			i++;
			j++;
			continue;
		}
		find_end(s, &end_i, &end_j);
		print_hunk(s, i - context, j - context, end_i, end_j);
		i = end_i;
		j = end_j;
	}
}

/* --- all together --------------------------------------------------------------------------- */

static int compare(const struct lines *a, const struct lines *b, bool *gone, bool *come)
{
	size_t least = a->n < b->n ? a->n : b->n, head = 0, tail = 0;
	struct edit e;

	while (head < least && same(&a->v[head], &b->v[head]))
		head++;
	while (tail < least - head && same(&a->v[a->n - 1 - tail], &b->v[b->n - 1 - tail]))
		tail++;
	e = (struct edit){ a->v + head,        b->v + head, a->n - head - tail,
			   b->n - head - tail, gone + head, come + head };
	return shortest(&e);
}

static int print(const struct diff_side *before, const struct diff_side *after, struct shown *s,
		 char **ret)
{
	AUTO(free) char *text = NULL;
	size_t len;
	bool bad;

	s->out = open_memstream(&text, &len);
	if (!s->out)
		return -ENOMEM;
	fprintf(s->out, "--- %s\n+++ %s\n", before->name, after->name);
	print_hunks(s);
	bad = ferror(s->out);
	if (fclose(s->out) != 0 || bad)
		return -ENOMEM;
	*ret = TAKE(text);
	return 0;
}

int diff_unified(const struct diff_side *before, const struct diff_side *after, char **ret)
{
	AUTO(lines_done) struct lines a = { 0 };
	AUTO(lines_done) struct lines b = { 0 };
	AUTO(free) bool *gone = NULL;
	AUTO(free) bool *come = NULL;
	struct shown s;
	int r;

	if (before->len == after->len && memcmp(before->text, after->text, after->len) == 0) {
		*ret = strdup("");
		return *ret ? 0 : -ENOMEM;
	}
	r = split(before->text, before->len, &a);
	r = r ?: split(after->text, after->len, &b);
	if (r < 0)
		return r;
	gone = calloc(a.n + 1, sizeof(*gone));
	come = calloc(b.n + 1, sizeof(*come));
	if (!gone || !come)
		return -ENOMEM;
	r = compare(&a, &b, gone, come);
	s = (struct shown){ .a = a, .b = b, .gone = gone, .come = come };
	return r ?: print(before, after, &s, ret);
}
