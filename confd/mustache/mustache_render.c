/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over the nodes, variables and sections. */
#include <errno.h>

#include "confd/mustache/mustache_walk.h"
#include "lib/base/names.h"

#define DEPTH_MAX 1024U

/* --- limits ---------------------------------------------------------------------------------- */

int mustache_walk_failed(struct mustache_walk *w, int code, const struct mustache_node *node)
{
	if (code != -EFBIG)
		return code;
	return mustache_wrong_at(w, code, node, "the output has more than %zu bytes", w->out.max);
}

int mustache_walk_enter(struct mustache_walk *w, const struct mustache_node *node)
{
	if (w->depth == w->max_depth)
		return mustache_wrong_at(w, -ELOOP, node,
					 "sections, partials and parents are nested deeper than %u",
					 w->max_depth);
	w->depth++;
	return 0;
}

static int step(struct mustache_walk *w, const struct mustache_node *node)
{
	if (++w->steps > w->max_steps)
		return mustache_wrong_at(w, -EFBIG, node, "rendering takes more than %zu steps",
					 w->max_steps);
	return 0;
}

/* --- variables -------------------------------------------------------------------------------- */

static int not_found(struct mustache_walk *w, const struct mustache_node *node, uint32_t resolved)
{
	char name[MUSTACHE_NAME_TEXT], there[MUSTACHE_NAME_TEXT], part[MUSTACHE_NAME_TEXT];

	mustache_name_show(node, name);
	if (resolved == 0)
		return mustache_wrong_at(w, -EINVAL, node, "\"%s\" is not in the data", name);
	return mustache_wrong_at(w, -EINVAL, node,
				 "\"%s\" is not in the data: \"%s\" has no \"%s\"", name,
				 mustache_parts_show(node, resolved, there),
				 mustache_part_show(node, resolved, part));
}

static int not_a_scalar(struct mustache_walk *w, const struct mustache_node *node,
			struct json_object *value)
{
	char name[MUSTACHE_NAME_TEXT];

	mustache_name_show(node, name);
	if (!value)
		return mustache_wrong_at(w, -EINVAL, node, "\"%s\" is null", name);
	return mustache_wrong_at(w, -EINVAL, node, "\"%s\" is %s, not a text or a number", name,
				 json_object_is_type(value, json_type_array) ? "a list"
									     : "an object");
}

static bool is_scalar(struct json_object *value)
{
	return value && !json_object_is_type(value, json_type_array) &&
	       !json_object_is_type(value, json_type_object);
}

/* The text of the name's value; without strictness the empty one for what has none. */
int mustache_walk_text(struct mustache_walk *w, const struct mustache_node *node, char *room,
		       struct piece *ret)
{
	struct json_object *value = NULL;
	uint32_t resolved;
	bool found = mustache_find(w->context, node, &value, &resolved);

	if (!found && w->o->strict)
		return not_found(w, node, resolved);
	if (!is_scalar(value) && w->o->strict)
		return not_a_scalar(w, node, value);
	*ret = mustache_scalar(value, room);
	return 0;
}

static int render_variable(struct mustache_walk *w, const struct mustache_node *node)
{
	char room[MUSTACHE_NUMBER_TEXT];
	struct piece text;
	int e = mustache_walk_text(w, node, room, &text);

	if (e < 0)
		return e;
	e = node->kind == MUSTACHE_VARIABLE && w->o->html
		    ? mustache_out_html(&w->out, text.text, text.len)
		    : mustache_out_add(&w->out, text.text, text.len);
	return mustache_walk_failed(w, e, node);
}

/* --- sections --------------------------------------------------------------------------------- */

static int render_with(struct mustache_walk *w, const struct mustache_node *node,
		       struct json_object *value)
{
	struct mustache_context context = { value, w->context };
	uint32_t first = (uint32_t)(node - w->t->nodes) + 1;
	int e = step(w, node);

	if (e < 0)
		return e;
	w->context = &context;
	e = mustache_walk_nodes(w, first, node->end);
	w->context = context.up;
	return e;
}

static int render_section(struct mustache_walk *w, const struct mustache_node *node)
{
	struct json_object *value = NULL;
	uint32_t resolved;
	size_t n;
	int e;

	if (!mustache_find(w->context, node, &value, &resolved) || !mustache_is_true(value))
		return 0;
	e = mustache_walk_enter(w, node);
	if (e < 0)
		return e;
	if (json_object_is_type(value, json_type_array)) {
		n = json_object_array_length(value);
		for (size_t i = 0; i < n && e == 0; i++)
			e = render_with(w, node, json_object_array_get_idx(value, i));
	} else {
		e = render_with(w, node, value);
	}
	w->depth--;
	return e;
}

/* What is inside of a node, in the context that is there. */
int mustache_walk_inside(struct mustache_walk *w, const struct mustache_node *node)
{
	int e = mustache_walk_enter(w, node);

	if (e < 0)
		return e;
	e = mustache_walk_nodes(w, (uint32_t)(node - w->t->nodes) + 1, node->end);
	w->depth--;
	return e;
}

static int render_inverted(struct mustache_walk *w, const struct mustache_node *node)
{
	struct json_object *value = NULL;
	uint32_t resolved;

	if (mustache_find(w->context, node, &value, &resolved) && mustache_is_true(value))
		return 0;
	return mustache_walk_inside(w, node);
}

/* --- the walk --------------------------------------------------------------------------------- */

static int render_node(struct mustache_walk *w, struct mustache_node *node)
{
	switch (node->kind) {
	case MUSTACHE_TEXT:
		return mustache_walk_failed(w, mustache_render_text(w, node), node);
	case MUSTACHE_VARIABLE:
	case MUSTACHE_RAW:
		return render_variable(w, node);
	case MUSTACHE_SECTION:
		return render_section(w, node);
	case MUSTACHE_INVERTED:
		return render_inverted(w, node);
	case MUSTACHE_PARTIAL:
	case MUSTACHE_PARENT:
		return mustache_render_included(w, node);
	case MUSTACHE_BLOCK:
		return mustache_render_block(w, node);
	case MUSTACHE_NOTHING:
	case MUSTACHE_END:
		break;
	}
	return 0;
}

bool mustache_has_inside(const struct mustache_node *node)
{
	return node->kind == MUSTACHE_SECTION || node->kind == MUSTACHE_INVERTED ||
	       node->kind == MUSTACHE_PARENT || node->kind == MUSTACHE_BLOCK;
}

int mustache_walk_nodes(struct mustache_walk *w, uint32_t from, uint32_t to)
{
	struct mustache_node *nodes = w->t->nodes;

	for (uint32_t i = from; i < to; i++) {
		int e = step(w, &nodes[i]);

		if (e == 0)
			e = render_node(w, &nodes[i]);
		if (e < 0)
			return e;
		if (mustache_has_inside(&nodes[i]))
			i = nodes[i].end;
	}
	return 0;
}

static int render_top(struct mustache_walk *w, const char *name, struct json_object *data)
{
	struct mustache_context top = { data, NULL };
	char shown[SHOW_TEXT];
	int e = mustache_set_get(w->s, name, &w->t, w->err);

	if (e == -ENOENT)
		return err_set(w->err, e, "there is no template \"%s\"", text_show(name, shown));
	if (e < 0)
		return e;
	w->context = &top;
	e = mustache_walk_nodes(w, 0, w->t->n);
	w->context = NULL;
	/* Room for the NUL also if there was no output. */
	return e < 0 ? e : mustache_out_add(&w->out, "", 0);
}

int mustache_render(struct mustache_set *s, const char *name, struct json_object *data,
		    const struct mustache_options *o, char **ret_text, size_t *ret_len,
		    struct err *err)
{
	size_t max = o->max_output ?: MUSTACHE_MAX_OUTPUT;
	unsigned depth = o->max_depth ?: MUSTACHE_MAX_DEPTH;
	struct mustache_walk w = {
		.s = s,
		.o = o,
		.err = err,
		.out.max = max,
		.indents.max = max,
		.max_depth = depth < DEPTH_MAX ? depth : DEPTH_MAX,
		/* Loops that print nothing end too. */
		.max_steps = max < SIZE_MAX / 8 ? max * 4 + 65536 : SIZE_MAX,
	};
	int e = render_top(&w, name, data);

	free(w.indents.text);
	if (e < 0) {
		free(w.out.text);
		return e == -ENOMEM ? err_set(err, e, "out of memory") : e;
	}
	w.out.text[w.out.len] = '\0';
	*ret_text = w.out.text;
	*ret_len = w.out.len;
	return 0;
}
