/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/overlay/overlay_pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/fields.h"

void overlay_pools_done(struct overlay_pools *p)
{
	free(p->v);
	*p = (struct overlay_pools){ 0 };
}

bool overlay_pools_equal(const struct overlay_pools *a, const struct overlay_pools *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, b->v[i].name) != 0 ||
		    strcmp(a->v[i].network, b->v[i].network) != 0 ||
		    a->v[i].encapsulation != b->v[i].encapsulation ||
		    a->v[i].family != b->v[i].family || a->v[i].announce != b->v[i].announce)
			return false;
	return true;
}

/* --- from the records ----------------------------------------------------------------------- */

static bool has_extent(const struct records *records, const struct overlay_pool *p)
{
	char name[2 * NAME_TEXT];

	snprintf(name, sizeof(name), "%s/%s", p->network, p->name);
	return records_find(records, KEY_EXTENT, name);
}

/* Names are unique, but not in a file that somebody has edited. */
static int by_name(const void *a, const void *b)
{
	const struct overlay_pool *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	c = c ?: strcmp(x->network, y->network);
	c = c ?: (int)x->encapsulation - (int)y->encapsulation;
	c = c ?: (int)x->family - (int)y->family;
	return c ?: (int)x->announce - (int)y->announce;
}

int overlay_pools_learn(struct overlay_pools *p, const struct records *records)
{
	AUTO(free) const void **pools = NULL;
	size_t n = 0, kept = 0;
	int r = records_list(records, KEY_POOL, &pools, &n);
	struct overlay_pool *v = calloc(n + p->n ?: 1, sizeof(*v));

	if (r < 0 || !v) {
		free(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct pool *pool = pools[i];

		if (!pool->routed || pool->encapsulation == ENCAPSULATION_NONE)
			continue;
		v[kept] = (struct overlay_pool){ .encapsulation = pool->encapsulation,
						 .family = pool->cidr.address.family,
						 .announce = pool->announce };
		snprintf(v[kept].name, NAME_TEXT, "%s", pool->name);
		snprintf(v[kept].network, NAME_TEXT, "%s", pool->network);
		kept++;
	}
	for (size_t i = 0; i < p->n; i++)
		if (!records_find(records, KEY_POOL, p->v[i].name) && has_extent(records, &p->v[i]))
			v[kept++] = p->v[i];
	qsort(v, kept, sizeof(*v), by_name);
	overlay_pools_done(p);
	*p = (struct overlay_pools){ v, kept };
	return 0;
}

/* --- the file ------------------------------------------------------------------------------- */

/* As texts, for the tables of fields. */
struct line {
	const char *name, *network;
	enum encapsulation encapsulation;
	bool ipv6, announce;
};
struct lines {
	struct line *v;
	size_t n;
};
struct file {
	struct lines pools;
};

static const char *const encapsulations[] = { "none", "vxlan", "vxlan-cross-subnet", NULL };
static const struct field line_fields[] = {
	{ FIELD(line, name, "name", text), .required = true, .check = name_check },
	{ FIELD(line, network, "network", text), .required = true, .check = network_check },
	{ FIELD(line, encapsulation, "encapsulation", choice), .required = true,
	  .choices = encapsulations },
	{ FIELD(line, ipv6, "ipv6", flag) },
	{ FIELD(line, announce, "announce", flag) },
};
static const struct field line = { ELEMENT_OBJECT(line, line_fields) };
static const struct field fields[] = {
	{ LIST(file, pools, "pools", &line), .required = true },
};

int overlay_pools_encode(const struct overlay_pools *p, char **ret)
{
	AUTO(free) struct line *v = calloc(p->n ?: 1, sizeof(*v));
	AUTO(json_put) struct json_object *o = json_object_new_object();
	const struct file file = { { v, p->n } }, usual = { 0 };
	int r = v && o ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < p->n; i++)
		v[i] = (struct line){ p->v[i].name, p->v[i].network, p->v[i].encapsulation,
				      p->v[i].family == AF_INET6, p->v[i].announce };
	r = r ?: fields_write(fields, ARRAY_SIZE(fields), &file, &usual, o);
	return r ?: json_print(o, ret);
}

static int take(const struct file *file, struct overlay_pools *ret)
{
	struct overlay_pool *v = calloc(file->pools.n ?: 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < file->pools.n; i++) {
		const struct line *l = &file->pools.v[i];

		v[i].encapsulation = l->encapsulation;
		v[i].family = l->ipv6 ? AF_INET6 : AF_INET;
		v[i].announce = l->announce;
		snprintf(v[i].name, NAME_TEXT, "%s", l->name);
		snprintf(v[i].network, NAME_TEXT, "%s", l->network);
	}
	qsort(v, file->pools.n, sizeof(*v), by_name);
	*ret = (struct overlay_pools){ v, file->pools.n };
	return 0;
}

int overlay_pools_decode(const char *text, size_t len, struct overlay_pools *ret, struct err *err)
{
	AUTO(json_put) struct json_object *o = NULL;
	struct file file = { 0 };
	struct json_at root;
	int r = json_parse(text, len, &o, err);

	if (r < 0)
		return r;
	root = json_root(o, err);
	r = fields_init(fields, ARRAY_SIZE(fields), &file);
	r = r ?: fields_read(fields, ARRAY_SIZE(fields), &root, &file);
	r = r ?: take(&file, ret);
	fields_done(fields, ARRAY_SIZE(fields), &file);
	return r;
}
