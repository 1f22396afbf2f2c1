/* SPDX-License-Identifier: Apache-2.0 */
/* A set of templates, and the walk that renders one of them. */
#include "confd/mustache/mustache.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "confd/mustache/mustache_template.h"
#include "lib/base/names.h"

#define DEPTH_MAX 1024U
/* Of a template that the data names. */
#define NAME_MAX_LEN 1024U
#define NUMBER_TEXT  64

/* --- the templates of a set ----------------------------------------------------------------- */

struct mustache_set {
	mustache_load_fn *load;
	void *arg;
	struct mustache_template **v;
	size_t n;
	unsigned run;
};

static void template_free(struct mustache_template *t)
{
	free(t->name);
	free(t->text);
	free(t->nodes);
	free(t);
}
AUTO_DEFINE(struct mustache_template *, template_free)

int mustache_set_new(mustache_load_fn *load, void *arg, struct mustache_set **ret)
{
	struct mustache_set *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->load = load;
	s->arg = arg;
	*ret = s;
	return 0;
}

void mustache_set_free(struct mustache_set *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		template_free(s->v[i]);
	free(s->v);
	free(s);
}

static int load(struct mustache_set *s, struct mustache_template *t, struct err *err)
{
	char shown[SHOW_TEXT];
	struct err why = { "" };
	int r = s->load(t->name, &t->text, &t->len, s->arg, &why);

	text_show(t->name, shown);
	if (r == -ENOENT)
		return r;
	if (r < 0)
		return err_set(err, r, "template \"%s\" cannot be read: %s", shown,
			       why.text[0] ? why.text : strerror(-r));
	if (t->len > MUSTACHE_MAX_TEMPLATE)
		return err_set(err, -EFBIG, "template \"%s\" has more than %u bytes", shown,
			       MUSTACHE_MAX_TEMPLATE);
	return mustache_parse(t, err);
}

static int set_get(struct mustache_set *s, const char *name, struct mustache_template **ret,
		   struct err *err)
{
	AUTO(template_free) struct mustache_template *t = NULL;
	struct mustache_template **v;
	int r;

	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i]->name, name) == 0) {
			*ret = s->v[i];
			return 0;
		}

	t = calloc(1, sizeof(*t));
	if (!t || !(t->name = strdup(name)))
		return -ENOMEM;
	r = load(s, t, err);
	if (r < 0)
		return r;
	v = reallocarray(s->v, s->n + 1, sizeof(struct mustache_template *));
	if (!v)
		return -ENOMEM;
	s->v = v;
	*ret = s->v[s->n++] = TAKE(t);
	return 0;
}

static int set_target(struct mustache_set *s, struct mustache_node *node,
		      struct mustache_template **ret, struct err *err)
{
	int r;

	if (!node->target && !node->absent) {
		r = set_get(s, node->name.text, &node->target, err);
		if (r < 0 && r != -ENOENT)
			return r;
		node->absent = r == -ENOENT;
	}
	*ret = node->target;
	return 0;
}

/* Marks what t names as wanted by this run. */
static int check_one(struct mustache_set *s, struct mustache_template *t, struct err *err)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct mustache_node *node = &t->nodes[i];
		struct mustache_template *target;
		char name[MUSTACHE_NAME_TEXT];
		int r;

		if ((node->kind != MUSTACHE_PARTIAL && node->kind != MUSTACHE_PARENT) ||
		    node->dynamic)
			continue;
		r = set_target(s, node, &target, err);
		if (r < 0)
			return r;
		if (!target)
			return mustache_wrong(err, -EINVAL, t, node->line, node->column,
					      "there is no template \"%s\"",
					      mustache_name_show(node, name));
		target->wanted = s->run;
	}
	t->checked = s->run;
	return 0;
}

int mustache_check(struct mustache_set *s, const char *name, struct err *err)
{
	struct mustache_template *t;
	char shown[SHOW_TEXT];
	bool more = true;
	int r = set_get(s, name, &t, err);

	if (r == -ENOENT)
		return err_set(err, r, "there is no template \"%s\"", text_show(name, shown));
	if (r < 0)
		return r;

	t->wanted = ++s->run;
	while (more) {
		more = false;
		for (size_t i = 0; i < s->n; i++) {
			if (s->v[i]->wanted != s->run || s->v[i]->checked == s->run)
				continue;
			more = true;
			r = check_one(s, s->v[i], err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* --- the output ----------------------------------------------------------------------------- */

struct out {
	char *text;
	size_t len, room, max;
};

/* One byte more than is asked for, so that there is always room for the NUL. */
static int make_room(struct out *out, size_t len)
{
	size_t room = out->room ?: 4096;
	char *text;

	if (len > out->max - out->len)
		return -EFBIG;
	while (room <= out->len + len)
		room *= 2;
	text = realloc(out->text, room);
	if (!text)
		return -ENOMEM;
	out->text = text;
	out->room = room;
	return 0;
}

/* 0, -ENOMEM, -EFBIG. */
static int out_add(struct out *out, const char *text, size_t len)
{
	int r;

	if (out->room - out->len <= len || len > out->max - out->len) {
		r = make_room(out, len);
		if (r < 0)
			return r;
	}
	if (len > 0)
		memcpy(out->text + out->len, text, len);
	out->len += len;
	return 0;
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	default:
		return NULL;
	}
}

static int out_html(struct out *out, const char *text, size_t len)
{
	size_t done = 0;
	int r;

	for (size_t i = 0; i < len; i++) {
		const char *e = entity(text[i]);

		if (!e)
			continue;
		r = out_add(out, text + done, i - done);
		if (r == 0)
			r = out_add(out, e, strlen(e));
		if (r < 0)
			return r;
		done = i + 1;
	}
	return out_add(out, text + done, len - done);
}

static struct piece integer(struct json_object *value, char *room)
{
	int64_t number = json_object_get_int64(value);
	int n;

	/* Above the largest int64 only the other reader tells the truth. */
	if (number < 0)
		n = snprintf(room, NUMBER_TEXT, "%" PRId64, number);
	else
		n = snprintf(room, NUMBER_TEXT, "%" PRIu64, json_object_get_uint64(value));
	return (struct piece){ room, (size_t)n };
}

/* One that was read from text prints as it was written; one that was computed, as short as it
 * can be without becoming another number. */
static struct piece decimal(struct json_object *value, char *room)
{
	double number = json_object_get_double(value);
	int n = 0;

	if (json_object_get_userdata(value) || !isfinite(number)) {
		const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);

		return (struct piece){ text, text ? strlen(text) : 0 };
	}
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(room, NUMBER_TEXT, "%.*g", digits, number);
		if (strtod(room, NULL) == number)
			break;
	}
	return (struct piece){ room, (size_t)n };
}

/* A scalar as it is printed, in room (NUMBER_TEXT) or in the value itself. */
static struct piece scalar(struct json_object *value, char *room)
{
	switch (json_object_get_type(value)) {
	case json_type_string:
		return (struct piece){ json_object_get_string(value),
				       (size_t)json_object_get_string_len(value) };
	case json_type_int:
		return integer(value, room);
	case json_type_double:
		return decimal(value, room);
	case json_type_boolean:
		return json_object_get_boolean(value) ? (struct piece){ "true", 4 }
						      : (struct piece){ "false", 5 };
	default:
		return (struct piece){ "", 0 };
	}
}

/* --- the walk over the nodes: its state ----------------------------------------------------- */

/*
 * The context stack and the arguments given to parents are lists on the C stack, whose depth is
 * bounded; nothing is allocated but the output and the indentation.
 */

/* The context stack. */
struct context {
	struct json_object *value; /* NULL: null */
	const struct context *up;
};

/* What {{<parent}}...{{/parent}} gives to the parent; up: what its own template was given. */
struct arguments {
	struct mustache_template *t;
	uint32_t parent;
	const struct arguments *up;
};

/* The indentation is text[start, start + len) of the buffer. */
struct indent {
	size_t start, len;
	size_t skip; /* so much of it is not to be put before the next line */
	struct piece strip;
};

struct walk {
	struct mustache_set *s;
	const struct mustache_options *o;
	struct err *err;
	struct out out;
	struct out indents;
	struct indent indent;
	struct mustache_template *t;
	const struct context *context;
	const struct arguments *arguments;
	unsigned depth, max_depth;
	size_t steps, max_steps;
};

#define wrong_at(w, code, node, ...)                                                               \
	mustache_wrong((w)->err, code, (w)->t, (node)->line, (node)->column, __VA_ARGS__)

static int walk_nodes(struct walk *w, uint32_t from, uint32_t to);

static int failed(struct walk *w, int code, const struct mustache_node *node)
{
	if (code != -EFBIG)
		return code;
	return wrong_at(w, code, node, "the output has more than %zu bytes", w->out.max);
}

static int enter(struct walk *w, const struct mustache_node *node)
{
	if (w->depth == w->max_depth)
		return wrong_at(w, -ELOOP, node,
				"sections, partials and parents are nested deeper than %u",
				w->max_depth);
	w->depth++;
	return 0;
}

static int step(struct walk *w, const struct mustache_node *node)
{
	if (++w->steps > w->max_steps)
		return wrong_at(w, -EFBIG, node, "rendering takes more than %zu steps",
				w->max_steps);
	return 0;
}

static bool has_inside(const struct mustache_node *node)
{
	return node->kind == MUSTACHE_SECTION || node->kind == MUSTACHE_INVERTED ||
	       node->kind == MUSTACHE_PARENT || node->kind == MUSTACHE_BLOCK;
}

/* What is inside of a node, in the context that is there. */
static int walk_inside(struct walk *w, const struct mustache_node *node)
{
	int e = enter(w, node);

	if (e < 0)
		return e;
	e = walk_nodes(w, (uint32_t)(node - w->t->nodes) + 1, node->end);
	w->depth--;
	return e;
}

/* --- names in the data ---------------------------------------------------------------------- */

static bool member(struct json_object *object, const char *name, struct json_object **ret)
{
	return json_object_is_type(object, json_type_object) &&
	       json_object_object_get_ex(object, name, ret);
}

/* How many parts of the name resolve: all of them if it is found, and only then *ret is set. */
static bool find(const struct context *top, const struct mustache_node *node,
		 struct json_object **ret, uint32_t *ret_resolved)
{
	const char *part = node->name.text;
	struct json_object *value = top->value;
	uint32_t resolved = 0;

	if (node->parts > 0) {
		while (top && !member(top->value, part, &value))
			top = top->up;
		/* Only the first part is looked for in the outer contexts. */
		for (resolved = top ? 1 : 0; resolved > 0 && resolved < node->parts; resolved++) {
			part += strlen(part) + 1;
			if (!member(value, part, &value))
				break;
		}
	}
	*ret_resolved = resolved;
	if (resolved < node->parts)
		return false;
	*ret = value;
	return true;
}

/* Absent, null, false and the empty list are false; the empty text and 0 are values. */
static bool is_true(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return false;
	case json_type_boolean:
		return json_object_get_boolean(value);
	case json_type_array:
		return json_object_array_length(value) > 0;
	default:
		return true;
	}
}

static const char *part_at(const struct mustache_node *node, uint32_t n)
{
	const char *part = node->name.text;

	while (n-- > 0)
		part += strlen(part) + 1;
	return part;
}

static int not_found(struct walk *w, const struct mustache_node *node, uint32_t resolved)
{
	char name[MUSTACHE_NAME_TEXT], there[MUSTACHE_NAME_TEXT], part[MUSTACHE_NAME_TEXT];
	const char *from = part_at(node, resolved);

	mustache_name_show(node, name);
	if (resolved == 0)
		return wrong_at(w, -EINVAL, node, "\"%s\" is not in the data", name);
	return wrong_at(
		w, -EINVAL, node, "\"%s\" is not in the data: \"%s\" has no \"%s\"", name,
		mustache_part_show(node->name.text, (size_t)(from - node->name.text) - 1, there),
		mustache_part_show(from, strlen(from), part));
}

static int not_a_scalar(struct walk *w, const struct mustache_node *node, struct json_object *value)
{
	char name[MUSTACHE_NAME_TEXT];

	mustache_name_show(node, name);
	if (!value)
		return wrong_at(w, -EINVAL, node, "\"%s\" is null", name);
	return wrong_at(w, -EINVAL, node, "\"%s\" is %s, not a text or a number", name,
			json_object_is_type(value, json_type_array) ? "a list" : "an object");
}

static bool is_scalar(struct json_object *value)
{
	return value && !json_object_is_type(value, json_type_array) &&
	       !json_object_is_type(value, json_type_object);
}

/* The text of the name's value; without strictness the empty one for what has none. */
static int text_of(struct walk *w, const struct mustache_node *node, char *room, struct piece *ret)
{
	struct json_object *value = NULL;
	uint32_t resolved;
	bool found = find(w->context, node, &value, &resolved);

	if (!found && w->o->strict)
		return not_found(w, node, resolved);
	if (!is_scalar(value) && w->o->strict)
		return not_a_scalar(w, node, value);
	*ret = scalar(value, room);
	return 0;
}

/* --- text, with the indentation of the moment ----------------------------------------------- */

/*
 * What stands before a standalone partial or parent is put before each of its lines. A block
 * that is replaced gets the argument's lines without the indentation they have there and with
 * the one that the block has here: that of its default content, or of the tag itself if there is
 * none. Empty lines stay empty, and what comes out of the data is left as it is.
 */

static size_t common(struct piece strip, const char *text, size_t len)
{
	size_t n = 0;

	while (n < strip.len && n < len && text[n] == strip.text[n])
		n++;
	return n;
}

/* Adds to the indentation; to take it away, put w->indent back. */
static int indent_push(struct walk *w, struct piece indent)
{
	size_t cut = common(w->indent.strip, indent.text, indent.len);
	int e;

	if (cut == indent.len)
		return 0;
	w->steps += indent.len;
	w->indents.len = w->indent.start + w->indent.len;
	e = out_add(&w->indents, indent.text + cut, indent.len - cut);
	if (e == 0)
		w->indent.len += indent.len - cut;
	return e;
}

static int indent_put(struct walk *w)
{
	size_t skip = w->indent.skip;

	w->indent.skip = 0;
	if (skip >= w->indent.len)
		return 0;
	return out_add(&w->out, w->indents.text + w->indent.start + skip, w->indent.len - skip);
}

static int put_line(struct walk *w, const char *line, size_t len, bool line_start)
{
	size_t cut = line_start ? common(w->indent.strip, line, len) : 0;
	int e = 0;

	line += cut;
	len -= cut;
	if (line_start && len > 0 &&
	    (line[0] == '\n' || (line[0] == '\r' && line[len - 1] == '\n')))
		w->indent.skip = 0;
	else if (line_start)
		e = indent_put(w);
	return e < 0 ? e : out_add(&w->out, line, len);
}

static int render_text(struct walk *w, const struct mustache_node *node)
{
	const char *text = node->name.text, *end = text + node->name.len;
	bool line_start = node->line_start;
	int e = 0;

	if (w->indent.len == 0 && w->indent.strip.len == 0)
		return out_add(&w->out, text, node->name.len);
	do {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *next = newline ? newline + 1 : end;

		e = put_line(w, text, (size_t)(next - text), line_start);
		text = next;
		line_start = true;
	} while (e == 0 && text < end);
	return e;
}

/* --- variables and sections ----------------------------------------------------------------- */

static int render_variable(struct walk *w, const struct mustache_node *node)
{
	char room[NUMBER_TEXT];
	struct piece text;
	int e = text_of(w, node, room, &text);

	if (e < 0)
		return e;
	e = node->kind == MUSTACHE_VARIABLE && w->o->html ? out_html(&w->out, text.text, text.len)
							  : out_add(&w->out, text.text, text.len);
	return failed(w, e, node);
}

static int render_with(struct walk *w, const struct mustache_node *node, struct json_object *value)
{
	struct context context = { value, w->context };
	uint32_t first = (uint32_t)(node - w->t->nodes) + 1;
	int e = step(w, node);

	if (e < 0)
		return e;
	w->context = &context;
	e = walk_nodes(w, first, node->end);
	w->context = context.up;
	return e;
}

static int render_section(struct walk *w, const struct mustache_node *node)
{
	struct json_object *value = NULL;
	uint32_t resolved;
	size_t n;
	int e;

	if (!find(w->context, node, &value, &resolved) || !is_true(value))
		return 0;
	e = enter(w, node);
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

static int render_inverted(struct walk *w, const struct mustache_node *node)
{
	struct json_object *value = NULL;
	uint32_t resolved;

	if (find(w->context, node, &value, &resolved) && is_true(value))
		return 0;
	return walk_inside(w, node);
}

/* --- partials and parents ------------------------------------------------------------------- */

static int dynamic_target(struct walk *w, struct mustache_node *node, char **ret_name,
			  struct mustache_template **ret)
{
	char room[NUMBER_TEXT];
	struct piece text = { 0 };
	int e = text_of(w, node, room, &text);

	if (e < 0)
		return e;
	*ret_name = strndup(text.text ?: "", text.len < NAME_MAX_LEN ? text.len : NAME_MAX_LEN);
	if (!*ret_name)
		return -ENOMEM;
	/* No template is named so. */
	if (text.len == 0 || strlen(*ret_name) != text.len)
		return 0;
	/* One that is not there is not remembered: the data may name ever more of them. */
	e = set_get(w->s, *ret_name, ret, w->err);
	return e == -ENOENT ? 0 : e;
}

static int find_target(struct walk *w, struct mustache_node *node, struct mustache_template **ret)
{
	AUTO(free) char *name = NULL;
	char shown[SHOW_TEXT];
	int e;

	*ret = NULL;
	e = node->dynamic ? dynamic_target(w, node, &name, ret)
			  : set_target(w->s, node, ret, w->err);
	if (e < 0 || *ret || !w->o->strict)
		return e;
	text_show(name ?: node->name.text, shown);
	return wrong_at(w, -EINVAL, node, "there is no template \"%s\"", shown);
}

static int render_target(struct walk *w, const struct mustache_node *node,
			 struct mustache_template *target)
{
	struct mustache_template *here = w->t;
	struct indent indent = w->indent;
	int e;

	if (node->alone) {
		e = indent_push(w, node->indent);
		if (e < 0)
			return failed(w, e, node);
	} else {
		/* Its lines are not lines of ours. */
		w->indent.start += w->indent.len;
		w->indent.len = w->indent.skip = 0;
	}
	w->indent.strip = (struct piece){ NULL, 0 };
	w->t = target;
	e = walk_nodes(w, 0, target->n);
	w->t = here;
	indent.skip = node->alone ? w->indent.skip : 0;
	w->indent = indent;
	return e;
}

static int render_included(struct walk *w, struct mustache_node *node)
{
	const struct arguments *above = w->arguments;
	struct arguments given = { w->t, (uint32_t)(node - w->t->nodes), above };
	struct mustache_template *target;
	int e = find_target(w, node, &target);

	if (e < 0 || !target)
		return e;
	e = enter(w, node);
	if (e < 0)
		return e;
	if (node->kind == MUSTACHE_PARENT)
		w->arguments = &given;
	e = render_target(w, node, target);
	w->arguments = above;
	w->depth--;
	return e;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Looking is work, too. */
static const struct mustache_node *argument(struct walk *w, const struct arguments *given,
					    const struct mustache_node *block)
{
	const struct mustache_node *nodes = given->t->nodes;

	for (uint32_t i = given->parent + 1; i < nodes[given->parent].end; i++, w->steps++) {
		if (nodes[i].kind == MUSTACHE_BLOCK && nodes[i].name.len == block->name.len &&
		    memcmp(nodes[i].name.text, block->name.text, block->name.len) == 0)
			return &nodes[i];
		if (has_inside(&nodes[i]))
			i = nodes[i].end;
	}
	return NULL;
}

/* The outermost wins: who includes knows better than what is included. */
static const struct mustache_node *find_argument(struct walk *w, const struct mustache_node *block,
						 const struct arguments **ret)
{
	const struct mustache_node *found = NULL;

	for (const struct arguments *a = w->arguments; a; a = a->up) {
		const struct mustache_node *node = argument(w, a, block);

		if (!node)
			continue;
		found = node;
		*ret = a;
	}
	return found;
}

static int begin_argument(struct walk *w, const struct mustache_node *block,
			  const struct mustache_node *node)
{
	bool empty = node->end == (uint32_t)(node - w->t->nodes) + 1;
	int e = indent_push(w, block->indent);

	if (e < 0)
		return e;
	w->indent.strip = node->strip;
	/* Where the block stands inside a line, that line has its indentation already. */
	if (!block->alone)
		w->indent.skip = node->from_next_line ? w->indent.len : 0;
	else if (!node->from_next_line && !empty)
		return indent_put(w);
	return 0;
}

/* Inside of an argument, the blocks and parents see what its own template was given. */
static int render_argument(struct walk *w, const struct mustache_node *block,
			   const struct mustache_node *node, const struct arguments *from)
{
	const struct arguments *above = w->arguments;
	struct mustache_template *here = w->t;
	struct indent indent = w->indent;
	size_t before = w->out.len;
	int e;

	w->t = from->t;
	w->arguments = from->up;
	e = begin_argument(w, block, node);
	e = e < 0 ? failed(w, e, node) : walk_inside(w, node);
	w->t = here;
	w->arguments = above;
	indent.skip = block->alone ? w->indent.skip : 0;
	w->indent = indent;
	if (e == 0 && block->own_lines && w->out.len > before &&
	    w->out.text[w->out.len - 1] != '\n')
		e = failed(w, out_add(&w->out, block->newline.text, block->newline.len), block);
	return e;
}

static int render_block(struct walk *w, const struct mustache_node *block)
{
	const struct arguments *from = NULL;
	const struct mustache_node *node = find_argument(w, block, &from);

	return node ? render_argument(w, block, node, from) : walk_inside(w, block);
}

/* --- the walk ------------------------------------------------------------------------------- */

static int render_node(struct walk *w, struct mustache_node *node)
{
	switch (node->kind) {
	case MUSTACHE_TEXT:
		return failed(w, render_text(w, node), node);
	case MUSTACHE_VARIABLE:
	case MUSTACHE_RAW:
		return render_variable(w, node);
	case MUSTACHE_SECTION:
		return render_section(w, node);
	case MUSTACHE_INVERTED:
		return render_inverted(w, node);
	case MUSTACHE_PARTIAL:
	case MUSTACHE_PARENT:
		return render_included(w, node);
	case MUSTACHE_BLOCK:
		return render_block(w, node);
	case MUSTACHE_NOTHING:
	case MUSTACHE_END:
		break;
	}
	return 0;
}

static int walk_nodes(struct walk *w, uint32_t from, uint32_t to)
{
	struct mustache_node *nodes = w->t->nodes;

	for (uint32_t i = from; i < to; i++) {
		int e = step(w, &nodes[i]);

		if (e == 0)
			e = render_node(w, &nodes[i]);
		if (e < 0)
			return e;
		if (has_inside(&nodes[i]))
			i = nodes[i].end;
	}
	return 0;
}

static int render_top(struct walk *w, const char *name, struct json_object *data)
{
	struct context top = { data, NULL };
	char shown[SHOW_TEXT];
	int e = set_get(w->s, name, &w->t, w->err);

	if (e == -ENOENT)
		return err_set(w->err, e, "there is no template \"%s\"", text_show(name, shown));
	if (e < 0)
		return e;
	w->context = &top;
	e = walk_nodes(w, 0, w->t->n);
	w->context = NULL;
	/* Room for the NUL also if there was no output. */
	return e < 0 ? e : out_add(&w->out, "", 0);
}

int mustache_render(struct mustache_set *s, const char *name, struct json_object *data,
		    const struct mustache_options *o, char **ret_text, size_t *ret_len,
		    struct err *err)
{
	size_t max = o->max_output ?: MUSTACHE_MAX_OUTPUT;
	unsigned depth = o->max_depth ?: MUSTACHE_MAX_DEPTH;
	struct walk w = {
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
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): render_top() made room */
	w.out.text[w.out.len] = '\0';
	*ret_text = w.out.text;
	*ret_len = w.out.len;
	return 0;
}
