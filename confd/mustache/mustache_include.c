/* SPDX-License-Identifier: Apache-2.0 */
/* Partials, parents and blocks: other templates, and what is put into them. */
#include <errno.h>
#include <string.h>

#include "confd/mustache/mustache_walk.h"
#include "lib/base/names.h"

/* Of a template that the data names. */
#define NAME_MAX_LEN 1024U

/* --- partials and parents --------------------------------------------------------------------- */

static int dynamic_target(struct mustache_walk *w, struct mustache_node *node, char **ret_name,
			  struct mustache_template **ret)
{
	char room[MUSTACHE_NUMBER_TEXT];
	struct piece text;
	int e = mustache_walk_text(w, node, room, &text);

	if (e < 0)
		return e;
	*ret_name = strndup(text.text, text.len < NAME_MAX_LEN ? text.len : NAME_MAX_LEN);
	if (!*ret_name)
		return -ENOMEM;
	/* No template is named so. */
	if (text.len == 0 || strlen(*ret_name) != text.len)
		return 0;
	/* One that is not there is not remembered: the data may name ever more of them. */
	e = mustache_set_get(w->s, *ret_name, ret, w->err);
	return e == -ENOENT ? 0 : e;
}

static int find_target(struct mustache_walk *w, struct mustache_node *node,
		       struct mustache_template **ret)
{
	AUTO(free) char *name = NULL;
	char shown[SHOW_TEXT];
	int e;

	*ret = NULL;
	e = node->dynamic ? dynamic_target(w, node, &name, ret)
			  : mustache_set_target(w->s, node, ret, w->err);
	if (e < 0 || *ret || !w->o->strict)
		return e;
	text_show(name ?: node->name.text, shown);
	return mustache_wrong_at(w, -EINVAL, node, "there is no template \"%s\"", shown);
}

static int render_target(struct mustache_walk *w, const struct mustache_node *node,
			 struct mustache_template *target)
{
	struct mustache_template *here = w->t;
	struct mustache_indent indent = w->indent;
	int e;

	if (node->alone) {
		e = mustache_indent_push(w, node->indent);
		if (e < 0)
			return mustache_walk_failed(w, e, node);
	} else {
		/* Its lines are not lines of ours. */
		w->indent.start += w->indent.len;
		w->indent.len = w->indent.skip = 0;
	}
	w->indent.strip = (struct piece){ NULL, 0 };
	w->t = target;
	e = mustache_walk_nodes(w, 0, target->n);
	w->t = here;
	indent.skip = node->alone ? w->indent.skip : 0;
	w->indent = indent;
	return e;
}

int mustache_render_included(struct mustache_walk *w, struct mustache_node *node)
{
	const struct mustache_arguments *above = w->arguments;
	struct mustache_arguments given = { w->t, (uint32_t)(node - w->t->nodes), above };
	struct mustache_template *target;
	int e = find_target(w, node, &target);

	if (e < 0 || !target)
		return e;
	e = mustache_walk_enter(w, node);
	if (e < 0)
		return e;
	if (node->kind == MUSTACHE_PARENT)
		w->arguments = &given;
	e = render_target(w, node, target);
	w->arguments = above;
	w->depth--;
	return e;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Looking is work, too. */
static const struct mustache_node *argument(struct mustache_walk *w,
					    const struct mustache_arguments *given,
					    const struct mustache_node *block)
{
	const struct mustache_node *nodes = given->t->nodes;

	for (uint32_t i = given->parent + 1; i < nodes[given->parent].end; i++, w->steps++) {
		if (nodes[i].kind == MUSTACHE_BLOCK && nodes[i].name.len == block->name.len &&
		    memcmp(nodes[i].name.text, block->name.text, block->name.len) == 0)
			return &nodes[i];
		if (mustache_has_inside(&nodes[i]))
			i = nodes[i].end;
	}
	return NULL;
}

/* The outermost wins: who includes knows better than what is included. */
static const struct mustache_node *find_argument(struct mustache_walk *w,
						 const struct mustache_node *block,
						 const struct mustache_arguments **ret)
{
	const struct mustache_node *found = NULL;

	for (const struct mustache_arguments *a = w->arguments; a; a = a->up) {
		const struct mustache_node *node = argument(w, a, block);

		if (!node)
			continue;
		found = node;
		*ret = a;
	}
	return found;
}

static int begin_argument(struct mustache_walk *w, const struct mustache_node *block,
			  const struct mustache_node *node)
{
	bool empty = node->end == (uint32_t)(node - w->t->nodes) + 1;
	int e = mustache_indent_push(w, block->indent);

	if (e < 0)
		return e;
	w->indent.strip = node->strip;
	/* Where the block stands inside a line, that line has its indentation already. */
	if (!block->alone)
		w->indent.skip = node->from_next_line ? w->indent.len : 0;
	else if (!node->from_next_line && !empty)
		return mustache_indent_put(w);
	return 0;
}

/* Inside of an argument, the blocks and parents see what its own template was given. */
static int render_argument(struct mustache_walk *w, const struct mustache_node *block,
			   const struct mustache_node *node, const struct mustache_arguments *from)
{
	const struct mustache_arguments *above = w->arguments;
	struct mustache_template *here = w->t;
	struct mustache_indent indent = w->indent;
	size_t before = w->out.len;
	int e;

	w->t = from->t;
	w->arguments = from->up;
	e = begin_argument(w, block, node);
	e = e < 0 ? mustache_walk_failed(w, e, node) : mustache_walk_inside(w, node);
	w->t = here;
	w->arguments = above;
	indent.skip = block->alone ? w->indent.skip : 0;
	w->indent = indent;
	if (e == 0 && block->own_lines && w->out.len > before &&
	    w->out.text[w->out.len - 1] != '\n')
		e = mustache_walk_failed(
			w, mustache_out_add(&w->out, block->newline.text, block->newline.len),
			block);
	return e;
}

int mustache_render_block(struct mustache_walk *w, const struct mustache_node *block)
{
	const struct mustache_arguments *from = NULL;
	const struct mustache_node *node = find_argument(w, block, &from);

	return node ? render_argument(w, block, node, from) : mustache_walk_inside(w, block);
}
