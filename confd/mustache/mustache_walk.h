/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendering is one walk over the nodes; this is its state, and what its files have of each other.
 *
 *   mustache_render.c (the walk, variables, sections) -> mustache_include.c (partials, parents,
 *   blocks) -> mustache_indent.c (text, indentation)
 *
 * The context stack and the arguments given to parents are lists on the C stack, whose depth is
 * bounded; nothing is allocated but the output and the indentation.
 */
#pragma once

#include "confd/mustache/mustache_parts.h"

/* What {{<parent}}...{{/parent}} gives to the parent; up: what its own template was given. */
struct mustache_arguments {
	struct mustache_template *t;
	uint32_t parent;
	const struct mustache_arguments *up;
};

/* The indentation is text[start, start + len) of the buffer. */
struct mustache_indent {
	size_t start, len;
	size_t skip; /* so much of it is not to be put before the next line */
	struct piece strip;
};

struct mustache_walk {
	struct mustache_set *s;
	const struct mustache_options *o;
	struct err *err;
	struct mustache_out out;
	struct mustache_out indents;
	struct mustache_indent indent;
	struct mustache_template *t;
	const struct mustache_context *context;
	const struct mustache_arguments *arguments;
	unsigned depth, max_depth;
	size_t steps, max_steps;
};

#define mustache_wrong_at(w, code, node, ...)                                                      \
	mustache_wrong((w)->err, code, (w)->t, (node)->line, (node)->column, __VA_ARGS__)

/* --- mustache_render.c ------------------------------------------------------------------------ */

int mustache_walk_nodes(struct mustache_walk *w, uint32_t from, uint32_t to);
/* What is inside of a node of w->t. */
int mustache_walk_inside(struct mustache_walk *w, const struct mustache_node *node);
/* One level deeper, until w->depth-- again: 0 or -ELOOP. */
int mustache_walk_enter(struct mustache_walk *w, const struct mustache_node *node);
/* The text of the name's value; without strictness the empty one for what has none. */
int mustache_walk_text(struct mustache_walk *w, const struct mustache_node *node, char *room,
		       struct piece *ret);
/* code; a sentence for -EFBIG. */
int mustache_walk_failed(struct mustache_walk *w, int code, const struct mustache_node *node);
bool mustache_has_inside(const struct mustache_node *node);

/* --- mustache_include.c ----------------------------------------------------------------------- */

int mustache_render_included(struct mustache_walk *w, struct mustache_node *node);
int mustache_render_block(struct mustache_walk *w, const struct mustache_node *block);

/* --- mustache_indent.c ------------------------------------------------------------------------ */

int mustache_render_text(struct mustache_walk *w, const struct mustache_node *node);
/* Adds to the indentation; to take it away, put w->indent back. */
int mustache_indent_push(struct mustache_walk *w, struct piece indent);
int mustache_indent_put(struct mustache_walk *w);
