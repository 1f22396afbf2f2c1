/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of desired_bird and of the templates: a whole state from one JSON text.
 *
 *   {"self": "n1", "records": {"config": {...}, "node/n1": {...}, "peer/tor": {...}, ...},
 *    "blocks": ["10.244.1.0/26"], "passwords": {"/etc/roost/tor": "s3cret", "/gone": null},
 *    "version": 2017, "snippets": "/etc/roost/bird.d"}
 *
 * Records go through the real decoders; what they refuse is kept as sentences.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/bird/desired_bird.h"
#include "lib/json/json.h"
#include "lib/model/keys.h"

struct world {
	struct json_object *json;
	struct bird_input in;
	struct cluster_config config;
	struct node *node;
	struct node_spec *spec;
	struct extent *extent;
	struct pool *pool;
	struct peer *peer;
	struct filter *filter;
	size_t n_node, n_spec, n_extent, n_pool, n_peer, n_filter;
	struct bird_node *nodes;
	struct bird_extent *extents;
	const struct peer **peers;
	const struct filter **filters;
	struct prefix *blocks;
	struct block *block;
	struct bird_owned *owned;
	size_t n_owned;
	struct bird_password *passwords;
	char refused[8192]; /* sentences, a line each */
};

#define WORLD_TAKE(w, noun, record, key, text)                                                     \
	(record##_decode(key, text, strlen(text), &(w)->noun[(w)->n_##noun], &err) == 0            \
		 ? (void)(w)->n_##noun++                                                           \
		 : world_refuse(w, &err))

static inline void world_refuse(struct world *w, const struct err *err)
{
	size_t n = strlen(w->refused);

	snprintf(w->refused + n, sizeof(w->refused) - n, "%s\n", err->text);
}

static inline void world_record(struct world *w, const char *name, struct json_object *value)
{
	const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
	struct err err = { "" };
	struct key key;

	assert_int_equal(key_parse(name, &key), 0);
	switch ((int)key.kind) {
	case KEY_CONFIG:
		cluster_config_done(&w->config);
		if (cluster_config_decode(name, text, strlen(text), &w->config, &err) < 0) {
			world_refuse(w, &err);
			assert_int_equal(cluster_config_decode(name, "{}", 2, &w->config, &err), 0);
		}
		break;
	case KEY_NODE:
		WORLD_TAKE(w, node, node, name, text);
		break;
	case KEY_SPEC:
		WORLD_TAKE(w, spec, node_spec, name, text);
		break;
	case KEY_EXTENT:
		WORLD_TAKE(w, extent, extent, name, text);
		break;
	case KEY_POOL:
		WORLD_TAKE(w, pool, pool, name, text);
		break;
	case KEY_BLOCK:
		assert_int_equal(
			block_decode(name, text, strlen(text), &w->block[w->n_owned], &err), 0);
		w->owned[w->n_owned] = (struct bird_owned){ w->block[w->n_owned].block,
							    w->block[w->n_owned].node };
		w->n_owned++;
		break;
	case KEY_PEER:
		WORLD_TAKE(w, peer, peer, name, text);
		break;
	case KEY_FILTER:
		WORLD_TAKE(w, filter, filter, name, text);
		break;
	default:
		fail_msg("%s is no record of routing", name);
	}
}

static inline void *world_array(size_t n, size_t size)
{
	void *v = calloc(n + 1, size);

	assert_non_null(v);
	return v;
}

static inline const struct node_spec *world_spec(const struct world *w, const char *node)
{
	for (size_t i = 0; i < w->n_spec; i++)
		if (strcmp(w->spec[i].node, node) == 0)
			return &w->spec[i];
	return NULL;
}

static inline const struct pool *world_pool(const struct world *w, const char *name)
{
	for (size_t i = 0; i < w->n_pool; i++)
		if (strcmp(w->pool[i].name, name) == 0)
			return &w->pool[i];
	return NULL;
}

static inline struct json_object *world_get(struct world *w, const char *name)
{
	return json_object_object_get(w->json, name);
}

static inline void world_records(struct world *w)
{
	struct json_object *records = world_get(w, "records");
	size_t n = (size_t)json_object_object_length(records);

	w->node = world_array(n, sizeof(*w->node));
	w->spec = world_array(n, sizeof(*w->spec));
	w->extent = world_array(n, sizeof(*w->extent));
	w->pool = world_array(n, sizeof(*w->pool));
	w->peer = world_array(n, sizeof(*w->peer));
	w->block = world_array(n, sizeof(*w->block));
	w->owned = world_array(n, sizeof(*w->owned));
	w->filter = world_array(n, sizeof(*w->filter));
	assert_int_equal(cluster_config_decode("config", "{}", 2, &w->config, NULL), 0);
	json_object_object_foreach(records, name, value)
		world_record(w, name, value);
}

static inline void world_lists(struct world *w)
{
	w->nodes = world_array(w->n_node, sizeof(*w->nodes));
	for (size_t i = 0; i < w->n_node; i++)
		w->nodes[i] = (struct bird_node){ &w->node[i], world_spec(w, w->node[i].name) };
	w->extents = world_array(w->n_extent, sizeof(*w->extents));
	for (size_t i = 0; i < w->n_extent; i++)
		w->extents[i] = (struct bird_extent){ .extent = &w->extent[i],
						      .pool = world_pool(w, w->extent[i].pool) };
	w->peers = world_array(w->n_peer, sizeof(*w->peers));
	for (size_t i = 0; i < w->n_peer; i++)
		w->peers[i] = &w->peer[i];
	w->filters = world_array(w->n_filter, sizeof(*w->filters));
	for (size_t i = 0; i < w->n_filter; i++)
		w->filters[i] = &w->filter[i];
}

static inline void world_blocks(struct world *w)
{
	struct json_object *list = world_get(w, "blocks");
	size_t n = list ? json_object_array_length(list) : 0;

	w->blocks = world_array(n, sizeof(*w->blocks));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			prefix_parse(json_object_get_string(json_object_array_get_idx(list, i)),
				     &w->blocks[i]),
			0);
	w->in.blocks = w->blocks;
	w->in.n_blocks = n;
	w->in.owned = w->owned;
	w->in.n_owned = w->n_owned;
}

static inline void world_passwords(struct world *w)
{
	struct json_object *map = world_get(w, "passwords");
	size_t n = 0;

	w->passwords = world_array(map ? (size_t)json_object_object_length(map) : 0,
				   sizeof(*w->passwords));
	if (map) {
		json_object_object_foreach(map, path, value)
			w->passwords[n++] = (struct bird_password){
				.path = path,
				.text = value ? json_object_get_string(value) : NULL,
				.reason = value ? NULL : "No such file or directory",
			};
	}
	w->in.passwords = w->passwords;
	w->in.n_passwords = n;
}

static inline void world_self(struct world *w)
{
	struct json_object *router_id = world_get(w, "routerId");

	w->in.self = json_object_get_string(world_get(w, "self"));
	w->in.spec = world_spec(w, w->in.self);
	for (size_t i = 0; i < w->n_node; i++)
		if (strcmp(w->node[i].name, w->in.self) == 0) {
			w->in.ipv4 = w->node[i].ipv4;
			w->in.ipv6 = w->node[i].ipv6;
		}
	w->in.router_id = w->in.ipv4.address;
	if (router_id)
		assert_int_equal(address_parse(json_object_get_string(router_id), &w->in.router_id),
				 0);
}

static inline void world_make(struct world *w, const char *json)
{
	*w = (struct world){ .json = json_tokener_parse(json) };
	assert_non_null(w->json);
	world_records(w);
	world_lists(w);
	world_blocks(w);
	world_passwords(w);
	world_self(w);
	w->in.config = &w->config;
	w->in.nodes = w->nodes;
	w->in.n_nodes = w->n_node;
	w->in.extents = w->extents;
	w->in.n_extents = w->n_extent;
	w->in.peers = w->peers;
	w->in.n_peers = w->n_peer;
	w->in.filters = w->filters;
	w->in.n_filters = w->n_filter;
	w->in.kernel_protocol = 114;
	w->in.version = (unsigned)json_object_get_int(world_get(w, "version"));
	w->in.snippets = json_object_get_string(world_get(w, "snippets"));
}

#define WORLD_DONE(w, noun, record)                                                                \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (w)->n_##noun; i_++)                                      \
			record##_done(&(w)->noun[i_]);                                             \
		free((w)->noun);                                                                   \
	} while (0)

static inline void world_done(struct world *w)
{
	WORLD_DONE(w, node, node);
	WORLD_DONE(w, spec, node_spec);
	WORLD_DONE(w, extent, extent);
	WORLD_DONE(w, pool, pool);
	WORLD_DONE(w, peer, peer);
	WORLD_DONE(w, filter, filter);
	cluster_config_done(&w->config);
	free(w->nodes);
	free(w->extents);
	free(w->peers);
	free(w->filters);
	free(w->blocks);
	free(w->passwords);
	for (size_t i = 0; i < w->n_owned; i++)
		block_done(&w->block[i]);
	free(w->block);
	free(w->owned);
	json_object_put(w->json);
}

/* "peer/tor: sentence", a line each; free() it. */
static inline char *world_problems(const struct bird_plan *plan)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; i < plan->problems.n; i++)
		fprintf(f, "%s: %s%s\n", plan->problems.v[i].record,
			plan->problems.v[i].level == BIRD_NOTICE ? "(notice) " : "",
			plan->problems.v[i].text);
	fclose(f);
	return text;
}
