/* SPDX-License-Identifier: Apache-2.0 */
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
#include <string.h>

#include "confd/mustache/mustache_parts.h"

bool mustache_is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != ' ' && text[i] != '\t')
			return false;
	return true;
}

static bool inside_parent(const struct mustache_parser *p)
{
	return p->outer != MUSTACHE_NONE && p->t->nodes[p->outer].kind == MUSTACHE_PARENT;
}

static int add_text(struct mustache_parser *p, const char *from, const char *to, bool line_start)
{
	struct mustache_node node = {
		.kind = MUSTACHE_TEXT,
		.line_start = line_start,
		.name = { from, (size_t)(to - from) },
	};

	mustache_count_to(p, from);
	node.line = p->line;
	node.column = p->column;
	return mustache_node_add(p, &node);
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
	if (!mustache_is_blank(from, (size_t)(stop - from)))
		return false;
	ret->next = newline ? newline + 1 : end;
	ret->newline = (struct piece){ stop, (size_t)(ret->next - stop) };
	return true;
}

static void block_is_alone(struct mustache_parser *p, struct mustache_node *block,
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
static void standalone(struct mustache_parser *p, const struct line_end *end)
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
static char *after_candidate(struct mustache_parser *p, char *to)
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

int mustache_lines_text(struct mustache_parser *p, char *to)
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
	p->fresh = !last && head && mustache_is_blank(head, (size_t)(to - head));
	if (!p->fresh)
		return from < to ? add_text(p, from, to, line_start) : 0;
	if (from < head)
		r = add_text(p, from, head, line_start);
	return r < 0 ? r : add_text(p, head, to, true);
}

void mustache_lines_tag(struct mustache_parser *p, uint32_t node)
{
	p->candidate = p->fresh;
	p->pair = false;
	p->tag = node;
	if (p->fresh)
		p->pad = (node == MUSTACHE_NONE ? p->t->n : node) - 1;
	p->fresh = false;
}

void mustache_lines_other_tag(struct mustache_parser *p)
{
	p->candidate = p->fresh = false;
}

void mustache_lines_open(struct mustache_parser *p, uint32_t index)
{
	struct mustache_node *node = &p->t->nodes[index];
	struct line_end end;

	if (node->kind == MUSTACHE_PARENT) {
		node->fresh = p->fresh;
		mustache_lines_other_tag(p);
	} else if (node->kind == MUSTACHE_BLOCK && inside_parent(p)) {
		mustache_lines_other_tag(p);
		if (rest_is_blank(p->at, p->end, &end) && end.newline.len > 0) {
			node->from_next_line = true;
			node->strip.text = end.next;
			p->at += end.next - p->at;
		}
		p->line_start = node->from_next_line;
	} else {
		if (node->kind == MUSTACHE_BLOCK && p->fresh)
			node->indent = p->t->nodes[index - 1].name;
		mustache_lines_tag(p, index);
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

static void close_block(struct mustache_parser *p, struct mustache_node *block, bool argument,
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
void mustache_lines_close(struct mustache_parser *p, uint32_t open, uint32_t end,
			  const char *end_tag)
{
	struct mustache_node *node = &p->t->nodes[open];
	bool argument = node->kind == MUSTACHE_BLOCK && inside_parent(p);

	if (node->kind == MUSTACHE_BLOCK)
		close_block(p, node, argument, end_tag);
	if (argument) {
		mustache_lines_other_tag(p);
	} else if (node->kind == MUSTACHE_PARENT) {
		/* The line goes on where the parent began in it. */
		p->fresh = node->fresh;
		mustache_lines_tag(p, open);
	} else if (node->kind == MUSTACHE_BLOCK && p->candidate && p->tag == open &&
		   end == open + 1) {
		p->pair = true;
	} else {
		mustache_lines_tag(p, end);
	}
}
