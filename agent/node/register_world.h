/* SPDX-License-Identifier: Apache-2.0 */
/* For register's tests: agents on one fake etcd, and what they were told as a story. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node/register.h"
#include "lib/store/fake_time.h"

#define NODE_KEY    "/roost/v1/node/n1"
#define STATUS_KEY  "/roost/v1/status/node/n1"
#define REMOVED_KEY "/roost/v1/removed/n1"

struct world {
	struct store *store;
	struct fake_time time;
	char story[2048];
};

struct agent {
	struct world *world;
	const char *machine;
	unsigned lost; /* how often it was told that no proof counts any more */
	struct health *health;
	struct records *records;
	struct registration *registration;
};

static inline void say(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void say(struct world *w, const char *fmt, ...)
{
	size_t n = strlen(w->story);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->story + n, sizeof(w->story) - n, fmt, ap);
	va_end(ap);
}

static inline void expect(struct world *w, const char *want)
{
	assert_string_equal(w->story, want);
	w->story[0] = '\0';
}

static inline void on_registered(const struct fence *fence, void *arg)
{
	struct agent *a = arg;
	const struct store_kv *kv = store_fake_get(a->world->store, NODE_KEY);

	assert_string_equal(fence->key, NODE_KEY);
	/* Told is what is; a test that holds events back says otherwise itself. */
	if (kv && kv->create_revision == fence->create_revision &&
	    kv->mod_revision == fence->mod_revision)
		say(a->world, "%s registered\n", a->machine);
	else
		say(a->world, "%s registered with a stale fence\n", a->machine);
}

static inline void on_unregistered(const char *why, void *arg)
{
	struct agent *a = arg;

	say(a->world, "%s lost: %s\n", a->machine, why);
}

static inline void on_lost(const char *why, void *arg)
{
	struct agent *a = arg;

	a->lost++;
}

static inline void on_removed(const struct node_removed *removed, void *arg)
{
	struct agent *a = arg;

	say(a->world, "%s %s\n", a->machine, removed ? "removed" : "no longer removed");
}

static inline void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct agent *a = arg;

	if (a->records)
		records_notice(a->records, notice);
	if (a->registration)
		register_notice(a->registration, notice, text);
}

static inline void quiet_sink(const struct log_record *record)
{
}

static inline void world_open(struct world *w)
{
	*w = (struct world){ .store = store_fake_new(), .time = FAKE_TIME };
	log_set_sink(quiet_sink);
}

static inline bool holds(void *arg)
{
	return true;
}

/* An agent of that machine, boot and start; its address follows from the machine. */
static inline void agent_start(struct world *w, struct agent *a, const char *machine,
			       const char *boot, const char *started)
{
	static const struct register_handlers handlers = { on_registered, on_unregistered, on_lost,
							   holds, on_removed };
	struct node node = { .name = "n1", .machine = machine, .boot = boot };
	char text[32];

	snprintf(text, sizeof(text), "10.0.0.%c/24", machine[1]);
	assert_int_equal(prefix_parse_host(text, &node.ipv4), 0);
	node.agent.version = "0.1.0";
	snprintf(node.agent.started, TIME_TEXT, "2026-11-16T02:45:0%sZ", started);
	*a = (struct agent){ .world = w, .machine = machine };
	assert_int_equal(health_new(NULL, NULL, &a->health), 0);
	store_on_notice(w->store, on_notice, a);
	assert_int_equal(records_new(&(struct records_options){ .store = w->store,
								.timers = &w->time.base,
								.health = a->health,
								.prefix = "/roost/v1/",
								.node = "n1",
								.minute = 60000 },
				     &a->records),
			 0);
	const struct register_options options = { .store = w->store,
						  .records = a->records,
						  .timers = &w->time.base,
						  .health = a->health,
						  .prefix = "/roost/v1/",
						  .minute = 60000,
						  .node = &node,
						  .handlers = &handlers,
						  .arg = a };

	assert_int_equal(register_new(&options, &a->registration), 0);
}

/* As SIGKILL does: what was sent may still be applied. */
static inline void agent_stop(struct agent *a)
{
	register_free(TAKE(a->registration));
	records_free(TAKE(a->records));
	health_free(TAKE(a->health));
}

static inline void world_close(struct world *w)
{
	store_free(w->store);
	log_set_sink(log_to_stderr);
}

static inline void expect_record(struct world *w, const char *machine, const char *boot)
{
	const struct store_kv *kv = store_fake_get(w->store, NODE_KEY);
	char want[128];

	assert_non_null(kv);
	snprintf(want, sizeof(want), "\"machine\":\"%s\",\"boot\":\"%s\"", machine, boot);
	if (!strstr(kv->value, want))
		fail_msg("%s lacks %s", kv->value, want);
}

static inline int64_t create_revision(struct world *w)
{
	const struct store_kv *kv = store_fake_get(w->store, NODE_KEY);

	return kv ? kv->create_revision : 0;
}
