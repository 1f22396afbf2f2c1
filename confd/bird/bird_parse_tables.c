/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_parse_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "confd/bird/bird_words.h"

enum { BFD = 1020, OSPF = 1013, COUNT = 1007 };

/* Room for a record to each line, and one. */
static size_t count_lines(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };
	size_t n = 1;

	while (bird_line_next(reply, &line))
		n++;
	return n;
}

/* --- six words to a row --------------------------------------------------------------------- */

/* "bfd1:" begins a section, "bfd1: is not up" is all of one. NULL: neither. */
static char *section_of(char *text)
{
	size_t n;

	if (text[0] == ' ' || text[0] == '\t')
		return NULL;
	n = strcspn(text, " \t");
	if (n < 2 || text[n - 1] != ':')
		return NULL;
	if (text[n] && strcmp(text + n, " is not up") != 0)
		return NULL;
	text[n - 1] = '\0';
	return text;
}

static int take_row(struct bird_table *t, const char *protocol, char *text)
{
	struct bird_row row = { .protocol = protocol };

	for (size_t i = 0; i < BIRD_COLUMNS; i++)
		row.cell[i] = i == BIRD_BFD_SINCE ? bird_time(&text) : bird_word(&text);
	if (!row.cell[BIRD_COLUMNS - 1][0] || *bird_rest(text))
		return -EBADMSG;
	t->v[t->n++] = row;
	return 0;
}

static int take_table(struct bird_table *t, const struct bird_reply *copy)
{
	struct bird_line line = { 0 };
	const char *protocol = NULL;
	bool heading = false;

	while (bird_line_next(copy, &line)) {
		char *text = t->text + (line.text - t->text), *section;

		if ((line.code != BFD && line.code != OSPF) || !text[strspn(text, " \t")])
			continue;
		section = section_of(text);
		if (section) {
			protocol = section;
			heading = true;
		} else if (heading) {
			heading = false;
		} else if (!protocol || take_row(t, protocol, text) < 0) {
			return -EBADMSG;
		}
	}
	return 0;
}

static bool says_none_runs(const struct bird_reply *reply)
{
	return strncmp(reply->text, "There is no ", 12) == 0 &&
	       strstr(reply->text, " protocol running");
}

int bird_table_parse(const struct bird_reply *reply, struct bird_table *ret)
{
	AUTO_DONE(bird_table_done)
	struct bird_table t = {
		.v = calloc(count_lines(reply), sizeof(*t.v)),
		.text = malloc(reply->len + 1),
	};
	struct bird_reply copy = *reply;
	int r;

	if (!t.v || !t.text)
		return -ENOMEM;
	if (bird_reply_failed(reply) && !says_none_runs(reply))
		return -EBADMSG;
	memcpy(t.text, reply->data, reply->len);
	copy.data = t.text;
	r = take_table(&t, &copy);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct bird_table){ 0 };
	return 0;
}

void bird_table_done(struct bird_table *t)
{
	free(t->v);
	free(t->text);
	*t = (struct bird_table){ 0 };
}

/* --- show route count ----------------------------------------------------------------------- */

static int take_count(struct bird_counts *c, const char *text)
{
	struct bird_count *to = &c->v[c->n];
	int end = 0;

	if (sscanf(text, "%*u of %" SCNu64 " routes for %" SCNu64 " networks in table %71s%n",
		   &to->routes, &to->networks, to->table, &end) != 3 ||
	    text[end])
		return -EBADMSG;
	c->n++;
	return 0;
}

int bird_counts_parse(const struct bird_reply *reply, struct bird_counts *ret)
{
	AUTO_DONE(bird_counts_done)
	struct bird_counts c = {
		.v = calloc(count_lines(reply), sizeof(*c.v)),
	};
	struct bird_line line = { 0 };

	if (!c.v)
		return -ENOMEM;
	if (bird_reply_failed(reply))
		return -EBADMSG;
	while (bird_line_next(reply, &line))
		if (line.code == COUNT && take_count(&c, line.text) < 0)
			return -EBADMSG;
	*ret = c;
	c = (struct bird_counts){ 0 };
	return 0;
}

void bird_counts_done(struct bird_counts *c)
{
	free(c->v);
	*c = (struct bird_counts){ 0 };
}
