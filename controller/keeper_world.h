/* SPDX-License-Identifier: Apache-2.0 */
/* For the keeper's tests: a leader on a fake etcd whose every step can be stopped at. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/keeper.h"
#include "lib/store/fake_time.h"

#define P "/roost/v1/"
#define NODE_VALUE                                                                                 \
	"{\"ipv4\":\"192.0.2.1/24\",\"machine\":\"m1\",\"boot\":\"b1\","                           \
	"\"agent\":{\"version\":\"1\",\"started\":\"2026-11-16T02:45:55Z\"}}"

struct world {
	struct store *store;
	struct fake_time time;
	struct health *health;
	struct elect *elect;
	struct keeper *keeper;
	bool dirty;
};

static inline void world_elected(int64_t token, void *arg)
{
	struct world *w = arg;

	assert_int_equal(keeper_start(w->keeper), 0);
}

static inline void world_deposed(const char *why, void *arg)
{
	struct world *w = arg;

	keeper_stop(w->keeper);
}

static inline void world_changed(void *arg)
{
	((struct world *)arg)->dirty = true;
}

static inline struct world *world_begin(void)
{
	static const struct elect_handlers handlers = { world_elected, world_deposed, NULL, NULL };
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	log_set_level(LOG_LEVEL_ERROR);
	w->time = FAKE_TIME;
	w->store = store_fake_new();
	assert_int_equal(health_new(NULL, NULL, &w->health), 0);
	assert_int_equal(elect_new(&(struct elect_options){ w->store, &w->time.base, P, "c1", "",
							    15, &handlers, w },
				   &w->elect),
			 0);
	assert_int_equal(keeper_new(&(struct keeper_options){ .store = w->store,
							      .timers = &w->time.base,
							      .health = w->health,
							      .elect = w->elect,
							      .prefix = P,
							      .minute = 60000,
							      .changed = world_changed,
							      .arg = w },
				    &w->keeper),
			 0);
	return w;
}

static inline void world_end(struct world *w)
{
	keeper_free(w->keeper);
	elect_free(w->elect);
	health_free(w->health);
	store_free(w->store);
	free(w);
}

/* One step of the store, and the pass that follows; false: there was nothing to do. */
static inline bool world_step(struct world *w)
{
	bool stepped = store_fake_step(w->store);

	if (!w->dirty)
		return stepped;
	w->dirty = false;
	assert_int_equal(keeper_pass(w->keeper), 0);
	return true;
}

static inline void world_run(struct world *w)
{
	for (unsigned n = 0; world_step(w); n++)
		assert_true(n < 100000);
}

static inline void world_pass(struct world *w, unsigned seconds)
{
	world_run(w);
	for (unsigned i = 0; i < seconds; i++) {
		w->time.ms += 1000;
		store_fake_advance(w->store, 1);
		if (timers_wake(&w->time.base) <= w->time.ms)
			timers_run(&w->time.base);
		world_run(w);
	}
}

static inline bool has(const struct world *w, const char *key)
{
	char full[512];

	snprintf(full, sizeof(full), P "%s", key);
	return store_fake_get(w->store, full) != NULL;
}

static inline void put(struct world *w, const char *key, const char *value)
{
	char full[512];

	snprintf(full, sizeof(full), P "%s", key);
	store_fake_put(w->store, full, value);
}

/* "node" owns the i-th /28 of 10.1.0.0/16, with one address in it. */
static inline void own_block(struct world *w, const char *node, unsigned i, bool address)
{
	char key[256], value[256];
	unsigned a = i * 16 / 256, b = i * 16 % 256;

	snprintf(key, sizeof(key), "block/default/10.1.%u.%u-28", a, b);
	snprintf(value, sizeof(value), "{\"node\":\"%s\",\"pool\":\"web\",\"token\":\"t%u\"}", node,
		 i);
	put(w, key, value);
	snprintf(key, sizeof(key), "host/%s/ipv4/block/default/10.1.%u.%u-28", node, a, b);
	put(w, key, "{\"pool\":\"web\"}");
	if (!address)
		return;
	snprintf(key, sizeof(key), "host/%s/address/default/10.1.%u.%u", node, a, b + 1);
	put(w, key,
	    "{\"container\":\"c\",\"interface\":\"eth0\",\"pool\":\"web\",\"boot\":\"b1\"}");
}

static inline void web_pool(struct world *w)
{
	put(w, "pool/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
	put(w, "extent/default/web", "{\"cidr\":\"10.1.0.0/16\",\"blockSize\":28}");
}

static inline void expect_range(const struct world *w, const char *beginning, const char *want)
{
	char full[512], *end, *dump;

	snprintf(full, sizeof(full), P "%s", beginning);
	end = store_prefix_end(full);
	dump = store_fake_dump(w->store, full, end);
	assert_string_equal(dump, want);
	free(dump);
	free(end);
}
