/* SPDX-License-Identifier: Apache-2.0 */
/* The templates of a set: loaded and parsed when they are first named. */
#include <errno.h>
#include <string.h>

#include "confd/mustache/mustache_parts.h"
#include "lib/base/names.h"

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

int mustache_set_get(struct mustache_set *s, const char *name, struct mustache_template **ret,
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

int mustache_set_target(struct mustache_set *s, struct mustache_node *node,
			struct mustache_template **ret, struct err *err)
{
	int r;

	if (!node->target && !node->absent) {
		r = mustache_set_get(s, node->name.text, &node->target, err);
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
		r = mustache_set_target(s, node, &target, err);
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
	int r = mustache_set_get(s, name, &t, err);

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
