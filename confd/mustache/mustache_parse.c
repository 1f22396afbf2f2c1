/* SPDX-License-Identifier: Apache-2.0 */
/* Tags: found by the delimiters of the moment, checked, their names cut in place. */
#include "confd/mustache/mustache_template.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/names.h"

struct parser {
	struct mustache_template *t;
	struct err *err;
	char *at, *end;
	struct piece open, close; /* the delimiters */
	uint32_t outer;           /* the innermost that is open */

	/* Where we are in the current line. */
	bool line_start; /* nothing of it was read yet */
	bool fresh;      /* nothing but white space, in the last node, and now comes a tag */
	bool candidate;  /* one tag that may be standalone, nothing else */
	bool pair;       /* it is a block with its end */
	uint32_t pad;    /* the white space before it */
	uint32_t tag;    /* its node or MUSTACHE_NONE */

	/* Position of a byte that was reached. */
	const char *counted;
	uint32_t line, column;
};

/* --- names and messages --------------------------------------------------------------------- */

const char *mustache_part_show(const char *from, size_t len, char *text)
{
	char joined[MUSTACHE_NAME_TEXT + 1];
	size_t n = len < sizeof(joined) - 1 ? len : sizeof(joined) - 1;

	_Static_assert(MUSTACHE_NAME_TEXT >= SHOW_TEXT, "text_show() writes so much");
	for (size_t i = 0; i < n; i++)
		joined[i] = from[i] ?: '.';
	joined[n] = '\0';
	return text_show(joined, text);
}

const char *mustache_name_show(const struct mustache_node *node, char *text)
{
	return mustache_part_show(node->name.text, node->name.len, text);
}

int mustache_wrong(struct err *err, int code, const struct mustache_template *t, uint32_t line,
		   uint32_t column, const char *fmt, ...)
{
	char name[SHOW_TEXT];
	char sentence[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s:%u:%u: %s", text_show(t->name, name), line, column, sentence);
}

static int add_node(struct parser *p, const struct mustache_node *node)
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

/* Moves .line and .column on to a byte further down. */
static void count_to(struct parser *p, const char *to)
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

/* --- lines ---------------------------------------------------------------------------------- */

/*
 * Lines: which text a tag takes with it, and where indentation comes from.
 *
 * A tag alone in its line takes the line with it. A parent counts as one tag from its opening to
 * its end, a block with nothing between its two tags likewise. The text before a tag is kept in a
 * node of its own, the pad, as long as it is blank; it becomes MUSTACHE_NOTHING when the rest of
 * the line turns out to be blank too.
 *
 * A block directly inside a parent is an argument. What stands around it is not printed,
 * so only the inner side of each of its tags matters: content that begins on the next line begins
 * there, and white space before the closing tag is no part of it.
 */

static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != ' ' && text[i] != '\t')
			return false;
	return true;
}

static bool inside_parent(const struct parser *p)
{
	return p->outer != MUSTACHE_NONE && p->t->nodes[p->outer].kind == MUSTACHE_PARENT;
}

static int add_text(struct parser *p, const char *from, const char *to, bool line_start)
{
	struct mustache_node node = {
		.kind = MUSTACHE_TEXT,
		.line_start = line_start,
		.name = { from, (size_t)(to - from) },
	};

	count_to(p, from);
	node.line = p->line;
	node.column = p->column;
	return add_node(p, &node);
}

/* The end of a line: newline is "\n" or "\r\n", empty at the end of the template. */
struct line_end {
	struct piece newline;
	const char *next;
};

/* If nothing but white space is left in the line. */
static bool rest_is_blank(const char *from, const char *end, struct line_end *ret)
{
	const char *newline = memchr(from, '\n', (size_t)(end - from));
	const char *stop = newline ?: end;

	if (newline && stop > from && stop[-1] == '\r')
		stop--;
	if (!is_blank(from, (size_t)(stop - from)))
		return false;
	ret->next = newline ? newline + 1 : end;
	ret->newline = (struct piece){ stop, (size_t)(ret->next - stop) };
	return true;
}

static void block_is_alone(struct parser *p, struct mustache_node *block,
			   const struct line_end *end)
{
	block->alone = true;
	if (p->pair) {
		block->own_lines = true;
		block->newline = end->newline;
		return;
	}
	block->from_next_line = true;
	block->strip.text = end->next; /* until its end is known */
}

/* The candidate is alone in its line. */
static void standalone(struct parser *p, const struct line_end *end)
{
	struct mustache_node *pad = &p->t->nodes[p->pad];
	struct mustache_node *tag = p->tag == MUSTACHE_NONE ? NULL : &p->t->nodes[p->tag];

	pad->kind = MUSTACHE_NOTHING;
	if (!tag)
		return;
	if (tag->kind == MUSTACHE_PARTIAL || tag->kind == MUSTACHE_PARENT) {
		tag->alone = true;
		tag->indent = pad->name;
	} else if (tag->kind == MUSTACHE_BLOCK) {
		block_is_alone(p, tag, end);
	} else if (tag->kind == MUSTACHE_END) {
		struct mustache_node *open = &p->t->nodes[tag->end];

		open->own_lines = open->alone;
		open->newline = end->newline;
	}
}

/* Text in which the line of a tag may go on; returns where the text begins that counts. */
static char *after_candidate(struct parser *p, char *to)
{
	struct line_end end;
	bool last = to == p->end;

	if (!p->candidate || (p->at == to && !last))
		return p->at;
	p->candidate = false;
	if (!rest_is_blank(p->at, to, &end) || (end.newline.len == 0 && !last))
		return p->at;
	standalone(p, &end);
	p->line_start = true;
	return p->at + (end.next - p->at);
}

/* The text from .at up to a tag or the end of the template. */
static int take_text(struct parser *p, char *to)
{
	bool last = to == p->end;
	bool line_start;
	char *from, *head;
	int r = 0;

	p->fresh = false;
	if (inside_parent(p))
		return 0;
	from = after_candidate(p, to);
	line_start = p->line_start;
	p->line_start = false;

	/* The beginning of the line in which the tag stands. */
	head = memrchr(from, '\n', (size_t)(to - from));
	head = head ? head + 1 : line_start ? from : NULL;
	p->fresh = !last && head && is_blank(head, (size_t)(to - head));
	if (!p->fresh)
		return from < to ? add_text(p, from, to, line_start) : 0;
	if (from < head)
		r = add_text(p, from, head, line_start);
	return r < 0 ? r : add_text(p, head, to, true);
}

/* A tag that can be standalone was read; node is NONE for those that leave none. */
static void line_has_tag(struct parser *p, uint32_t node)
{
	p->candidate = p->fresh;
	p->pair = false;
	p->tag = node;
	if (p->fresh)
		p->pad = (node == MUSTACHE_NONE ? p->t->n : node) - 1;
	p->fresh = false;
}

/* One that cannot. */
static void line_has_other_tag(struct parser *p)
{
	p->candidate = p->fresh = false;
}

static void line_opens(struct parser *p, uint32_t index)
{
	struct mustache_node *node = &p->t->nodes[index];
	struct line_end end;

	if (node->kind == MUSTACHE_PARENT) {
		node->fresh = p->fresh;
		line_has_other_tag(p);
	} else if (node->kind == MUSTACHE_BLOCK && inside_parent(p)) {
		line_has_other_tag(p);
		if (rest_is_blank(p->at, p->end, &end) && end.newline.len > 0) {
			node->from_next_line = true;
			node->strip.text = end.next;
			p->at += end.next - p->at;
		}
		p->line_start = node->from_next_line;
	} else {
		if (node->kind == MUSTACHE_BLOCK && p->fresh)
			node->indent = p->t->nodes[index - 1].name;
		line_has_tag(p, index);
	}
}

/* White space before the first line of the block that has something else; none: no such line. */
static struct piece block_indent(const char *from, const char *to)
{
	const char *line = from;

	for (const char *c = from; c < to; c++) {
		if (*c == '\n')
			line = c + 1;
		else if (*c != ' ' && *c != '\t' && *c != '\r')
			return (struct piece){ line, (size_t)(c - line) };
	}
	return (struct piece){ NULL, 0 };
}

static void close_block(struct parser *p, struct mustache_node *block, bool argument,
			const char *end_tag)
{
	if (block->from_next_line) {
		block->strip = block_indent(block->strip.text, end_tag);
		if (block->strip.text && !argument)
			block->indent = block->strip;
	}
	if (argument && p->fresh)
		p->t->nodes[p->t->n - 2].kind = MUSTACHE_NOTHING;
}

/* p->outer is what encloses it again; end is the last node. */
static void line_closes(struct parser *p, uint32_t open, uint32_t end, const char *end_tag)
{
	struct mustache_node *node = &p->t->nodes[open];
	bool argument = node->kind == MUSTACHE_BLOCK && inside_parent(p);

	if (node->kind == MUSTACHE_BLOCK)
		close_block(p, node, argument, end_tag);
	if (argument) {
		line_has_other_tag(p);
	} else if (node->kind == MUSTACHE_PARENT) {
		/* The line goes on where the parent began in it. */
		p->fresh = node->fresh;
		line_has_tag(p, open);
	} else if (node->kind == MUSTACHE_BLOCK && p->candidate && p->tag == open &&
		   end == open + 1) {
		p->pair = true;
	} else {
		line_has_tag(p, end);
	}
}

/* --- tags ----------------------------------------------------------------------------------- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
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

static int wrong(struct parser *p, const struct tag *tag, const char *what)
{
	mustache_wrong(p->err, -EINVAL, p->t, tag->line, tag->column, "%s", what);
	return -EINVAL;
}

/* The closing delimiter from here on; before: the byte that must stand before it, or 0. */
static char *find_close(const struct parser *p, char *from, char before)
{
	for (char *at = from;; at++) {
		at = memmem(at, (size_t)(p->end - at), p->close.text, p->close.len);
		if (!at || before == '\0' || (at > from && at[-1] == before))
			return at;
	}
}

static int read_tag(struct parser *p, struct tag *tag)
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
	count_to(p, p->at);

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
static int set_delimiters(struct parser *p, const struct tag *tag)
{
	const char *from = tag->inside.text, *end = from + tag->inside.len;
	const char *open_end = from, *close = end;

	while (open_end < end && !is_space(*open_end))
		open_end++;
	while (close > open_end && !is_space(close[-1]))
		close--;
	if (from == open_end || close == end || close == open_end)
		return wrong(p, tag, "expected two delimiters with white space between them");
	for (const char *c = open_end; c < close; c++)
		if (!is_space(*c))
			return wrong(p, tag, "there are more than two delimiters");
	if (memchr(from, '=', (size_t)(end - from)))
		return wrong(p, tag, "a delimiter must not contain '='");
	p->open = (struct piece){ from, (size_t)(open_end - from) };
	p->close = (struct piece){ close, (size_t)(end - close) };
	line_has_tag(p, MUSTACHE_NONE);
	return 0;
}

static int check_name(struct parser *p, const struct tag *tag)
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
static int cut_parts(struct parser *p, const struct tag *tag, uint32_t *ret)
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

/* name is not cut yet: its dots stand where the node has NULs. */
static bool name_is(const struct mustache_node *node, const char *name, size_t len)
{
	if (node->name.len != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (node->name.text[i] != name[i] && (node->name.text[i] != '\0' || name[i] != '.'))
			return false;
	return true;
}

static int wrong_end(struct parser *p, const struct tag *tag, const struct mustache_node *open)
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

static int end_tag(struct parser *p, struct tag *tag)
{
	uint32_t open = p->outer;
	struct mustache_node *node = open == MUSTACHE_NONE ? NULL : &p->t->nodes[open];
	bool dynamic = node && node->dynamic && cut_asterisk(tag);
	int r = check_name(p, tag);

	if (r < 0)
		return r;
	if (!node || !name_is(node, tag->inside.text, tag->inside.len) || node->dynamic != dynamic)
		return wrong_end(p, tag, node);
	p->outer = node->end;
	node->end = p->t->n;
	r = add_node(p, &(struct mustache_node){ .kind = MUSTACHE_END, .end = open });
	if (r < 0)
		return r;
	line_closes(p, open, p->t->n - 1, tag->start);
	return 0;
}

static int named_tag(struct parser *p, struct tag *tag)
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
	r = add_node(p, &node);
	if (r < 0)
		return r;

	if (kind == MUSTACHE_VARIABLE || kind == MUSTACHE_RAW) {
		line_has_other_tag(p);
	} else if (kind == MUSTACHE_PARTIAL) {
		line_has_tag(p, p->t->n - 1);
	} else {
		line_opens(p, p->t->n - 1);
		p->outer = p->t->n - 1;
	}
	return 0;
}

static int parse_tag(struct parser *p, char *start)
{
	struct tag tag = { .start = start };
	int r;

	count_to(p, start);
	tag.line = p->line;
	tag.column = p->column;
	r = read_tag(p, &tag);
	if (r < 0)
		return r;
	switch (tag.sigil) {
	case '!':
		line_has_tag(p, MUSTACHE_NONE);
		return 0;
	case '=':
		return set_delimiters(p, &tag);
	case '/':
		return end_tag(p, &tag);
	default:
		return named_tag(p, &tag);
	}
}

/* --- a template ----------------------------------------------------------------------------- */

static int parse_all(struct parser *p)
{
	for (;;) {
		char *tag = memmem(p->at, (size_t)(p->end - p->at), p->open.text, p->open.len);
		int r = take_text(p, tag ?: p->end);

		if (r < 0 || !tag)
			return r;
		r = parse_tag(p, tag);
		if (r < 0)
			return r;
	}
}

static int not_ended(const struct parser *p)
{
	const struct mustache_node *open = &p->t->nodes[p->outer];
	char name[MUSTACHE_NAME_TEXT];

	return mustache_wrong(p->err, -EINVAL, p->t, open->line, open->column,
			      "\"%s\" is not ended", mustache_name_show(open, name));
}

int mustache_parse(struct mustache_template *t, struct err *err)
{
	struct parser p = {
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
