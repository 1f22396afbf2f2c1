/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_store.h"

#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/lease/lease_store_parts.h"

#define MINUTE_MS    60000
#define POLL_MINUTES 5
/* Steps in one go, so that a long list does not hold up a pod. */
#define STEPS_AT_ONCE 64

static struct lease_store *store_of(struct memory *m)
{
	return (struct lease_store *)(void *)m;
}

/* --- steps on the loop ---------------------------------------------------------------------- */

static void wind_clock(struct lease_store *s)
{
	uint64_t now = clock_boottime_ns() / 1000000000;

	if (now == s->clock)
		return;
	memory_advance(&s->memory.own, (int64_t)(now - s->clock));
	s->clock = now;
	memory_changed(&s->memory);
}

static int on_work(sd_event_source *source, void *arg)
{
	struct lease_store *s = arg;
	unsigned n = 0;

	wind_clock(s);
	while (n < STEPS_AT_ONCE && memory_step(&s->memory))
		n++;
	memory_trim(&s->memory);
	sd_event_source_set_enabled(s->work, n == STEPS_AT_ONCE ? SD_EVENT_ON : SD_EVENT_OFF);
	return 0;
}

static void on_waiting(struct memory *m)
{
	struct lease_store *s = store_of(m);

	if (s->work)
		sd_event_source_set_enabled(s->work, SD_EVENT_ON);
}

/* --- what the client brings ----------------------------------------------------------------- */

static void on_network(const struct lease_network *network, void *arg)
{
	struct lease_store *s = arg;

	lease_store_mirrored(s, lease_mirror_network(&s->mirror, network));
}

static void on_changes(const struct lease_changes *changes, void *arg)
{
	struct lease_store *s = arg;

	lease_store_mirrored(s, lease_mirror_changes(&s->mirror, changes));
}

static void on_watching(const char *text, void *arg)
{
	struct lease_store *s = arg;

	wind_clock(s);
	snprintf(s->watched, sizeof(s->watched), "%s", text);
	memory_connect(&s->memory, true, true, NULL);
}

static void on_trouble(const char *text, void *arg)
{
	struct lease_store *s = arg;

	if (s->memory.online)
		lease_store_assert(s);
	snprintf(s->trouble, sizeof(s->trouble), "%s", text);
	memory_connect(&s->memory, false, true, s->trouble);
}

/* --- the whole ------------------------------------------------------------------------------ */

static int lease_turn(struct store *base, uint32_t timeout_ms)
{
	struct lease_store *s = (struct lease_store *)base;
	int r = sd_event_run(s->event, timeout_ms * 1000ULL);

	return r < 0 ? r : 0;
}

static void lease_stats(const struct store *base, struct store_stats *ret)
{
	const struct lease_store *s = (const struct lease_store *)base;

	lease_client_stats(s->client, ret);
	ret->revision = s->memory.own.revision;
}

static void lease_free(struct store *base)
{
	struct lease_store *s = (struct lease_store *)base;

	memory_close(&s->memory);
	lease_client_free(s->client);
	sd_event_source_disable_unref(TAKE(s->work));
	sd_event_source_disable_unref(s->renew);
	sd_event_source_disable_unref(s->check);
	lease_mirror_done(&s->mirror);
	memory_done(&s->memory);
	sd_event_unref(s->event);
	free(s);
}

static const struct store_ops lease_ops = {
	.txn = memory_txn_start,
	.list = memory_list_start,
	.lease = memory_lease_start,
	.watch = memory_watch,
	.turn = lease_turn,
	.stats = lease_stats,
	.free = lease_free,
};

static int64_t lease_sent(struct memory *m)
{
	return store_of(m)->confirmed;
}

static const struct memory_hooks hooks = {
	.verdict = lease_store_verdict,
	.work = on_waiting,
	.sent = lease_sent,
};

static const struct lease_client_handlers handlers = { on_network, on_changes, on_watching,
						       on_trouble };

static int make_names(struct lease_store *s, const struct lease_store_options *o)
{
	char relative[KEY_TEXT];
	int r = key_node(relative, o->node);

	snprintf(s->prefix, sizeof(s->prefix), "%s", o->prefix);
	snprintf(s->node, sizeof(s->node), "%s", o->node);
	snprintf(s->network, sizeof(s->network), "%s",
		 strcmp(o->network, "_") == 0 ? "default" : o->network);
	return r ?: key_full(s->prefix, relative, s->node_key);
}

static int make_sources(struct lease_store *s)
{
	int r = sd_event_add_defer(s->event, &s->work, on_work, s);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->work, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &s->renew, CLOCK_BOOTTIME, 0, 1000000,
					       lease_store_renew, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->renew, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &s->check, CLOCK_BOOTTIME,
					       s->minute_ms * 1000ULL, 1000000, lease_store_check,
					       s);
	return r < 0 ? r : 0;
}

int lease_store_new(sd_event *event, const struct lease_store_options *o, struct store **ret,
		    struct err *err)
{
	struct lease_store *s = calloc(1, sizeof(*s));
	struct lease_client_options client = {
		.event = event,
		.servers = o->servers,
		.network = o->network,
		.name = o->node,
		.tls = o->tls,
		.poll_ms = POLL_MINUTES * o->minute_ms,
		.handlers = &handlers,
		.arg = s,
	};
	int r;

	if (!s)
		return -ENOMEM;
	memory_init(&s->memory, &lease_ops, &hooks);
	/* Nothing is known yet, and nobody has failed yet. */
	s->memory.online = false;
	s->memory.watched = s->watched;
	s->event = sd_event_ref(event);
	s->minute_ms = o->minute_ms ?: MINUTE_MS;
	s->in_use = o->in_use;
	s->arg = o->arg;
	s->clock = clock_boottime_ns() / 1000000000;
	r = make_names(s, o);
	lease_mirror_init(&s->mirror, &s->memory.own, s->prefix, s->network, s->node);
	if (o->address.family)
		lease_mirror_self(&s->mirror, &o->address);
	r = r ?: make_sources(s);
	r = r ?: lease_client_new(&client, &s->client, err);
	if (r < 0) {
		store_free(&s->memory.base);
		return r;
	}
	*ret = &s->memory.base;
	return 0;
}
