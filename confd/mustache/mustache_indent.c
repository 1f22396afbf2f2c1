/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text with the indentation of the moment.
 *
 * What stands before a standalone partial or parent is put before each of its lines. A block
 * that is replaced gets the argument's lines without the indentation they have there and with
 * the one that the block has here: that of its default content, or of the tag itself if there is
 * none. Empty lines stay empty, and what comes out of the data is left as it is.
 */
#include <string.h>

#include "confd/mustache/mustache_walk.h"

static size_t common(struct piece strip, const char *text, size_t len)
{
	size_t n = 0;

	while (n < strip.len && n < len && text[n] == strip.text[n])
		n++;
	return n;
}

int mustache_indent_push(struct mustache_walk *w, struct piece indent)
{
	size_t cut = common(w->indent.strip, indent.text, indent.len);
	int e;

	if (cut == indent.len)
		return 0;
	w->steps += indent.len;
	w->indents.len = w->indent.start + w->indent.len;
	e = mustache_out_add(&w->indents, indent.text + cut, indent.len - cut);
	if (e == 0)
		w->indent.len += indent.len - cut;
	return e;
}

int mustache_indent_put(struct mustache_walk *w)
{
	size_t skip = w->indent.skip;

	w->indent.skip = 0;
	if (skip >= w->indent.len)
		return 0;
	return mustache_out_add(&w->out, w->indents.text + w->indent.start + skip,
				w->indent.len - skip);
}

static int put_line(struct mustache_walk *w, const char *line, size_t len, bool line_start)
{
	size_t cut = line_start ? common(w->indent.strip, line, len) : 0;
	int e = 0;

	line += cut;
	len -= cut;
	if (line_start && len > 0 &&
	    (line[0] == '\n' || (line[0] == '\r' && line[len - 1] == '\n')))
		w->indent.skip = 0;
	else if (line_start)
		e = mustache_indent_put(w);
	return e < 0 ? e : mustache_out_add(&w->out, line, len);
}

int mustache_render_text(struct mustache_walk *w, const struct mustache_node *node)
{
	const char *text = node->name.text, *end = text + node->name.len;
	bool line_start = node->line_start;
	int e = 0;

	if (w->indent.len == 0 && w->indent.strip.len == 0)
		return mustache_out_add(&w->out, text, node->name.len);
	do {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *next = newline ? newline + 1 : end;

		e = put_line(w, text, (size_t)(next - text), line_start);
		text = next;
		line_start = true;
	} while (e == 0 && text < end);
	return e;
}
