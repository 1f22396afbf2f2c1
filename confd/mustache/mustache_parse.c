/* SPDX-License-Identifier: Apache-2.0 */
/* Tags: found by the delimiters of the moment, checked, their names cut in place. */
#include <errno.h>
#include <string.h>

#include "confd/mustache/mustache_parts.h"

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int mustache_node_add(struct mustache_parser *p, const struct mustache_node *node)
{
	struct mustache_template *t = p->t;

	if (t->n == t->room) {
		uint32_t room = t->room ? t->room * 2 : 64;
		struct mustache_node *v = reallocarray(t->nodes, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		t->nodes = v;
		t->room = room;
	}
	t->nodes[t->n++] = *node;
	return 0;
}

void mustache_count_to(struct mustache_parser *p, const char *to)
{
	for (; p->counted < to; p->counted++) {
		if (*p->counted == '\n') {
			p->line++;
			p->column = 1;
		} else {
			p->column++;
		}
	}
}

/* A tag while it is read. */
struct tag {
	char sigil; /* 0 for a variable */
	char *start;
	uint32_t line, column;
	struct {
		char *text;
		size_t len;
	} inside; /* without sigil and white space around */
};

static int wrong(struct mustache_parser *p, const struct tag *tag, const char *what)
{
	mustache_wrong(p->err, -EINVAL, p->t, tag->line, tag->column, "%s", what);
	return -EINVAL;
}

/* The closing delimiter from here on; before: the byte that must stand before it, or 0. */
static char *find_close(const struct mustache_parser *p, char *from, char before)
{
	for (char *at = from;; at++) {
		at = memmem(at, (size_t)(p->end - at), p->close.text, p->close.len);
		if (!at || before == '\0' || (at > from && at[-1] == before))
			return at;
	}
}

static int read_tag(struct mustache_parser *p, struct tag *tag)
{
	char *from = tag->start + p->open.len, *to;
	char before;

	while (from < p->end && is_space(*from))
		from++;
	tag->sigil = '\0';
	if (from < p->end && *from && strchr("#^/><$&!={", *from))
		tag->sigil = *from++;
	before = tag->sigil == '{' ? '}' : tag->sigil == '=' ? '=' : '\0';

	to = find_close(p, from, before);
	if (!to)
		return wrong(p, tag, "the tag is not closed");
	p->at = to + p->close.len;
	mustache_count_to(p, p->at);

	to -= before ? 1 : 0;
	while (from < to && is_space(*from))
		from++;
	while (from < to && is_space(to[-1]))
		to--;
	tag->inside.text = from;
	tag->inside.len = (size_t)(to - from);
	return 0;
}

/* "<% %>": the new ones stay where they stand in the text. */
static int set_delimiters(struct mustache_parser *p, const struct tag *tag)
{
	const char *from = tag->inside.text, *end = from + tag->inside.len;
	const char *open_end = from, *close = end;

	while (open_end < end && !is_space(*open_end))
		open_end++;
	while (close > open_end && !is_space(close[-1]))
		close--;
	if (from == open_end || close == end || close == open_end)
		return wrong(p, tag, "two delimiters with white space between them are wanted");
	for (const char *c = open_end; c < close; c++)
		if (!is_space(*c))
			return wrong(p, tag, "there are more than two delimiters");
	if (memchr(from, '=', (size_t)(end - from)))
		return wrong(p, tag, "a delimiter must not contain '='");
	p->open = (struct piece){ from, (size_t)(open_end - from) };
	p->close = (struct piece){ close, (size_t)(end - close) };
	mustache_lines_tag(p, MUSTACHE_NONE);
	return 0;
}

static int check_name(struct mustache_parser *p, const struct tag *tag)
{
	if (tag->inside.len == 0)
		return wrong(p, tag, "the tag has no name");
	for (size_t i = 0; i < tag->inside.len; i++) {
		if (is_space(tag->inside.text[i]))
			return wrong(p, tag, "a name must not contain white space");
		if (tag->inside.text[i] == '\0')
			return wrong(p, tag, "a name must not contain a NUL");
	}
	if (memmem(tag->inside.text, tag->inside.len, p->close.text, p->close.len))
		return wrong(p, tag, "a name must not contain the closing delimiter");
	return 0;
}

/* "*name" of partials and parents; white space may follow the asterisk. */
static bool cut_asterisk(struct tag *tag)
{
	if (tag->inside.len == 0 || tag->inside.text[0] != '*')
		return false;
	do {
		tag->inside.text++;
		tag->inside.len--;
	} while (tag->inside.len > 0 && is_space(tag->inside.text[0]));
	return true;
}

/* a.b.c becomes three texts in a row. */
static int cut_parts(struct mustache_parser *p, const struct tag *tag, uint32_t *ret)
{
	char *name = tag->inside.text;
	size_t len = tag->inside.len;

	*ret = 0;
	if (len == 1 && name[0] == '.')
		return 0;
	for (size_t i = 0; i < len; i++)
		if (name[i] == '.' && (i == 0 || i + 1 == len || name[i + 1] == '.'))
			return wrong(p, tag, "a part of the dotted name is empty");
	for (size_t i = 0; i < len; i++)
		if (name[i] == '.') {
			name[i] = '\0';
			++*ret;
		}
	++*ret;
	return 0;
}

static enum mustache_kind kind_of(char sigil)
{
	switch (sigil) {
	case '#':
		return MUSTACHE_SECTION;
	case '^':
		return MUSTACHE_INVERTED;
	case '>':
		return MUSTACHE_PARTIAL;
	case '<':
		return MUSTACHE_PARENT;
	case '$':
		return MUSTACHE_BLOCK;
	case '&':
	case '{':
		return MUSTACHE_RAW;
	default:
		return MUSTACHE_VARIABLE;
	}
}

static int wrong_end(struct mustache_parser *p, const struct tag *tag,
		     const struct mustache_node *open)
{
	struct mustache_node node = { .name = { tag->inside.text, tag->inside.len } };
	char name[MUSTACHE_NAME_TEXT], other[MUSTACHE_NAME_TEXT];

	mustache_name_show(&node, name);
	if (!open)
		return mustache_wrong(p->err, -EINVAL, p->t, tag->line, tag->column,
				      "\"%s\" ends here, but nothing is open", name);
	return mustache_wrong(p->err, -EINVAL, p->t, tag->line, tag->column,
			      "\"%s\" ends here, but \"%s\" of line %u is open", name,
			      mustache_name_show(open, other), open->line);
}

static int end_tag(struct mustache_parser *p, struct tag *tag)
{
	uint32_t open = p->outer;
	struct mustache_node *node = open == MUSTACHE_NONE ? NULL : &p->t->nodes[open];
	bool dynamic = node && node->dynamic && cut_asterisk(tag);
	int r = check_name(p, tag);

	if (r < 0)
		return r;
	if (!node || !mustache_name_is(node, tag->inside.text, tag->inside.len) ||
	    node->dynamic != dynamic)
		return wrong_end(p, tag, node);
	p->outer = node->end;
	node->end = p->t->n;
	r = mustache_node_add(p, &(struct mustache_node){ .kind = MUSTACHE_END, .end = open });
	if (r < 0)
		return r;
	mustache_lines_close(p, open, p->t->n - 1, tag->start);
	return 0;
}

static int named_tag(struct mustache_parser *p, struct tag *tag)
{
	enum mustache_kind kind = kind_of(tag->sigil);
	bool included = kind == MUSTACHE_PARTIAL || kind == MUSTACHE_PARENT;
	struct mustache_node node = { .kind = kind, .line = tag->line, .column = tag->column };
	int r;

	node.dynamic = included && cut_asterisk(tag);
	r = check_name(p, tag);
	if (r == 0 && kind != MUSTACHE_BLOCK && (!included || node.dynamic))
		r = cut_parts(p, tag, &node.parts);
	if (r < 0)
		return r;
	tag->inside.text[tag->inside.len] = '\0';
	node.name = (struct piece){ tag->inside.text, tag->inside.len };
	node.end = p->outer;
	r = mustache_node_add(p, &node);
	if (r < 0)
		return r;

	if (kind == MUSTACHE_VARIABLE || kind == MUSTACHE_RAW) {
		mustache_lines_other_tag(p);
	} else if (kind == MUSTACHE_PARTIAL) {
		mustache_lines_tag(p, p->t->n - 1);
	} else {
		mustache_lines_open(p, p->t->n - 1);
		p->outer = p->t->n - 1;
	}
	return 0;
}

static int parse_tag(struct mustache_parser *p, char *start)
{
	struct tag tag = { .start = start };
	int r;

	mustache_count_to(p, start);
	tag.line = p->line;
	tag.column = p->column;
	r = read_tag(p, &tag);
	if (r < 0)
		return r;
	switch (tag.sigil) {
	case '!':
		mustache_lines_tag(p, MUSTACHE_NONE);
		return 0;
	case '=':
		return set_delimiters(p, &tag);
	case '/':
		return end_tag(p, &tag);
	default:
		return named_tag(p, &tag);
	}
}

static int parse_all(struct mustache_parser *p)
{
	for (;;) {
		char *tag = memmem(p->at, (size_t)(p->end - p->at), p->open.text, p->open.len);
		int r = mustache_lines_text(p, tag ?: p->end);

		if (r < 0 || !tag)
			return r;
		r = parse_tag(p, tag);
		if (r < 0)
			return r;
	}
}

static int not_ended(const struct mustache_parser *p)
{
	const struct mustache_node *open = &p->t->nodes[p->outer];
	char name[MUSTACHE_NAME_TEXT];

	return mustache_wrong(p->err, -EINVAL, p->t, open->line, open->column,
			      "\"%s\" is not ended", mustache_name_show(open, name));
}

int mustache_parse(struct mustache_template *t, struct err *err)
{
	struct mustache_parser p = {
		.t = t,
		.err = err,
		.open = { "{{", 2 },
		.close = { "}}", 2 },
		.outer = MUSTACHE_NONE,
		.line_start = true,
		.line = 1,
		.column = 1,
	};
	int r;

	if (t->len == 0)
		return 0;
	p.at = t->text;
	p.end = t->text + t->len;
	p.counted = t->text;
	r = parse_all(&p);
	return r == 0 && p.outer != MUSTACHE_NONE ? not_ended(&p) : r;
}
