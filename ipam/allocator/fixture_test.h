/* SPDX-License-Identifier: Apache-2.0 */
/* For the allocator's tests: a small world of pools, and answers as text. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ipam/allocator/allocator.h"
#include "lib/model/model.h"

#define SECONDS(n) ((int64_t)(n)*1000000000LL)
#define WORLD_MAX  16

struct world {
	struct allocator *a;
	struct pool pools[WORLD_MAX];
	struct extent extents[WORLD_MAX];
	const struct extent *extent_list[WORLD_MAX];
	struct pool_input input[WORLD_MAX];
	char names[WORLD_MAX][NAME_TEXT];
	size_t n_pools, n_extents;
	struct labels labels;
	struct prefixes pod_cidrs;
	int64_t now;
	char text[4096];
};

static inline void world_configure(struct world *w)
{
	struct pools_input in = { w->input, w->n_pools, w->extent_list, w->n_extents,
				  "n1",     w->labels,  w->pod_cidrs };

	assert_int_equal(allocator_configure(w->a, &in), 0);
}

static inline void world_open(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->a = allocator_new();
	w->now = SECONDS(1000);
	assert_non_null(w->a);
	world_configure(w);
}

static inline void world_close(struct world *w)
{
	allocator_free(w->a);
	for (size_t i = 0; i < w->n_pools; i++)
		pool_done(&w->pools[i]);
	for (size_t i = 0; i < w->n_extents; i++)
		extent_done(&w->extents[i]);
}

static inline size_t world_place(struct world *w, const char *name)
{
	size_t i = 0;

	while (i < w->n_pools && strcmp(w->names[i], name) != 0)
		i++;
	assert_true(i < WORLD_MAX);
	return i;
}

/* Made, or replaced; json NULL: deleted. What does not decode is there as an invalid one. */
static inline void world_pool(struct world *w, const char *name, const char *json)
{
	size_t i = world_place(w, name);
	static struct err invalid[WORLD_MAX];
	struct pool old = i < w->n_pools ? w->pools[i] : (struct pool){ 0 };
	char key[NAME_TEXT + 8];

	if (!json) {
		assert_true(i < w->n_pools);
		w->n_pools--;
		w->pools[i] = w->pools[w->n_pools];
		w->input[i] = w->input[w->n_pools];
		memcpy(w->names[i], w->names[w->n_pools], NAME_TEXT);
		w->input[i].name = w->names[i];
		w->input[i].pool = w->input[i].pool ? &w->pools[i] : NULL;
		w->pools[w->n_pools] = (struct pool){ 0 };
	} else {
		int64_t created = i < w->n_pools ? w->input[i].created : 0;

		snprintf(w->names[i], NAME_TEXT, "%s", name);
		snprintf(key, sizeof(key), "pool/%s", name);
		w->pools[i] = (struct pool){ 0 };
		w->input[i] = (struct pool_input){ .name = w->names[i],
						   .invalid = invalid[i].text,
						   .created = created };
		if (pool_decode(key, json, strlen(json), &w->pools[i], &invalid[i]) == 0)
			w->input[i].pool = &w->pools[i];
		if (i == w->n_pools)
			w->n_pools++;
	}
	world_configure(w);
	pool_done(&old);
}

static inline void world_extent(struct world *w, const char *key, const char *json)
{
	struct err err;

	if (extent_decode(key, json, strlen(json), &w->extents[w->n_extents], &err) != 0)
		fail_msg("%s", err.text);
	w->extent_list[w->n_extents] = &w->extents[w->n_extents];
	w->n_extents++;
	world_configure(w);
}

static inline struct prefix prefix_from(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(text, &p), 0);
	return p;
}

static inline struct address address_from(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(text, &a), 0);
	return a;
}

static inline void world_block_state(struct world *w, const char *network, const char *pool,
				     const char *block, enum block_state state)
{
	const struct prefix p = prefix_from(block);
	struct err err;

	if (allocator_block_set(w->a, network, pool, &p, state, w->now, &err) != 0)
		fail_msg("%s", err.text);
}

static inline void world_block(struct world *w, const char *pool, const char *block)
{
	world_block_state(w, "default", pool, block, BLOCK_OWNED);
}

/* --- answers as text ------------------------------------------------------------------------ */

static inline size_t show_spans(const struct spans *s, char *text, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, room - n, " %llu-%llu",
				      (unsigned long long)s->v[i].first,
				      (unsigned long long)s->v[i].last);
	return n;
}

static inline void show_result(const struct assign_result *r, char *text, size_t room)
{
	static const char *const why[] = { "request", "low-water", "preallocate" };
	char a[PREFIX_TEXT];
	size_t n = 0;

	switch (r->verdict) {
	case ASSIGN_DONE:
		n = (size_t)snprintf(text, room, "%s", r->existing ? "existing" : "new");
		for (size_t i = 0; i < r->attachment->addresses.n; i++) {
			const struct held_address *h = &r->attachment->addresses.v[i];

			n += (size_t)snprintf(text + n, room - n, " %s/%u %s",
					      address_print(&h->address, a), h->length, h->pool);
		}
		break;
	case ASSIGN_NEED_BLOCK:
		for (size_t i = 0; i < r->n_needs; i++) {
			n += (size_t)snprintf(
				text + n, room - n, "%sneed %s /%u for %s%s:", i ? ", " : "",
				r->needs[i].pool, r->needs[i].block_size, why[r->needs[i].reason],
				r->needs[i].specific ? " only" : "");
			n += show_spans(&r->needs[i].usable, text + n, room - n);
		}
		break;
	case ASSIGN_NEED_POOL:
		snprintf(text, room, "make %s: %s in /%u%s", r->make.name,
			 prefix_print(&r->make.cidr, a), r->make.block_size,
			 r->make.reserve_edges ? "" : " (part)");
		break;
	case ASSIGN_WAIT:
		snprintf(text, room, "wait");
		break;
	case ASSIGN_REFUSED:
		snprintf(text, room, "%d: %s", (int)r->code, r->why.text);
		break;
	}
}

/* fields: the JSON after network, container and interface, with a comma in front, or "". */
static inline const char *world_assign(struct world *w, const char *container, const char *fields,
				       struct assign_options options)
{
	AUTO_DONE(assign_request_done) struct assign_request q = { 0 };
	AUTO_DONE(assign_result_done) struct assign_result r = { 0 };
	char body[2048];
	struct err err;

	snprintf(body, sizeof(body),
		 "{\"network\":\"pods\",\"container\":\"%s\",\"interface\":\"eth0\"%s}", container,
		 fields);
	if (assign_request_decode(body, strlen(body), &q, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(allocator_assign(w->a, &q, &options, w->now, &r), 0);
	show_result(&r, w->text, sizeof(w->text));
	return w->text;
}

static inline const char *world_add(struct world *w, const char *container)
{
	return world_assign(w, container, "", (struct assign_options){ .may_claim = true });
}

static inline const char *world_del(struct world *w, const char *container)
{
	const struct attachment_key key = { "pods", container, "eth0" };
	AUTO(attachment_free) struct attachment *x = allocator_release(w->a, &key, w->now);
	char a[ADDRESS_TEXT];
	size_t n = 0;

	w->text[0] = '\0';
	for (size_t i = 0; x && i < x->addresses.n; i++)
		n += (size_t)snprintf(w->text + n, sizeof(w->text) - n, "%s%s", i ? " " : "",
				      address_print(&x->addresses.v[i].address, a));
	return w->text;
}

/* "10.1.0.0/26 web owned used 1 free 63 resting 0" per line, then the attachments. */
static inline const char *world_show(struct world *w)
{
	const struct blocks *b = allocator_blocks(w->a);
	const struct attachments *t = allocator_attachments(w->a);
	char p[PREFIX_TEXT];
	size_t n = 0;

	w->text[0] = '\0';
	for (size_t i = 0; i < b->n; i++) {
		struct address_counts c = allocator_block_counts(w->a, b->v[i], w->now);

		n += (size_t)snprintf(w->text + n, sizeof(w->text) - n,
				      "%s %s %s used %llu free %llu resting %llu\n",
				      prefix_print(&b->v[i]->prefix, p), b->v[i]->pool,
				      block_state_name(b->v[i]->state), (unsigned long long)c.used,
				      (unsigned long long)c.free, (unsigned long long)c.resting);
	}
	for (size_t i = 0; i < t->n; i++) {
		n += (size_t)snprintf(w->text + n, sizeof(w->text) - n, "%s:", t->v[i]->container);
		for (size_t j = 0; j < t->v[i]->addresses.n; j++)
			n += (size_t)snprintf(w->text + n, sizeof(w->text) - n, " %s",
					      address_print(&t->v[i]->addresses.v[j].address, p));
		n += (size_t)snprintf(w->text + n, sizeof(w->text) - n, "\n");
	}
	return w->text;
}
