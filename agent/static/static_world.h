/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a node's kernel as a view, records as JSON, and what becomes of them as text. */
#pragma once

#include "agent/kernel/kernel_message_make.h"
#include "agent/static/static_decide.h"
#include "agent/static/static_status.h"

#define NOW "2026-11-17T12:00:00Z"

struct world {
	struct kernel_view view;
	struct records *records;
	struct static_entries entries;
	struct static_input in;
	struct label label;
	struct prefix protect, endpoint, pool;
	int64_t revision;
};

static inline void way(struct world *w, const char *to, const char *gateway, uint32_t oif,
		       uint8_t type)
{
	struct route_lookup l = { .to = address(to), .route = { .type = type, .hop.oif = oif } };

	if (gateway)
		l.route.hop.gateway = address(gateway);
	l.err = type ? 0 : -ENETUNREACH;
	assert_int_equal(kernel_view_put_lookup(&w->view, &l), 0);
}

/* What the kernel would say, after anything has changed. */
static inline void look_up(struct world *w)
{
	w->view.ways++;
	way(w, "10.0.0.1", "192.0.2.1", 2, RTN_UNICAST);
	way(w, "fd00::1", "fe80::1", 2, RTN_UNICAST);
	way(w, "192.0.2.1", NULL, 2, RTN_UNICAST);
	way(w, "192.0.2.2", NULL, 2, RTN_UNICAST);
	way(w, "fd00:2::1", NULL, 2, RTN_UNICAST);
	way(w, "192.0.2.7", NULL, 1, RTN_LOCAL);
	way(w, "198.51.100.1", "192.0.2.1", 2, RTN_UNICAST);
	way(w, "198.51.100.2", NULL, 0, 0);
}

static inline int world_set_up(void **state)
{
	static struct world world;
	struct world *w = &world;

	*w = (struct world){ .view.own_port = OWN_PORT, .revision = 10 };
	*state = w;
	if (records_new(&(struct records_options){ .prefix = "/", .node = "n1" }, &w->records) < 0)
		return -1;
	w->label = (struct label){ "zone", "a" };
	w->protect = prefix("172.20.0.0/16");
	w->endpoint = prefix("203.0.113.9/32");
	w->pool = prefix("10.1.0.0/16");
	w->in = (struct static_input){ .labels = { &w->label, 1 },
				       .protect = { &w->protect, 1 },
				       .endpoints = { &w->endpoint, 1 },
				       .pools = { &w->pool, 1 },
				       .table = RT_TABLE_MAIN,
				       .probes = { address("10.0.0.1"), address("fd00::1") },
				       .view = &w->view };
	take(&w->view, link_message(RTM_NEWLINK, 2, "eth0", "dummy", IFF_UP));
	take(&w->view, address_message(RTM_NEWADDR, 2, "192.0.2.7", 24, 0));
	look_up(w);
	return 0;
}

static inline int world_tear_down(void **state)
{
	struct world *w = *state;

	kernel_view_done(&w->view);
	static_entries_done(&w->entries);
	records_free(w->records);
	return 0;
}

/* Another revision of the record; the first one made it. */
static inline struct static_entry *record(struct world *w, const char *name, const char *json)
{
	struct static_entry *old = static_find(&w->entries, name), *e = NULL;
	char key[KEY_TEXT];
	struct store_kv kv = { .value = json, .value_len = strlen(json) };

	w->revision++;
	kv.mod_revision = w->revision;
	kv.create_revision = old ? old->create_revision : w->revision;
	snprintf(key, sizeof(key), KEYS_STATIC_ROUTE "%s", name);
	assert_int_equal(records_put(w->records, key, json, strlen(json), w->revision), 0);
	assert_int_equal(static_take(&w->entries, key, &kv,
				     records_entry(w->records, KEY_STATIC_ROUTE, name), &e),
			 0);
	return e;
}

/* "name: route [! why]", or "name: -" where the node is not meant. */
#define expect(w, text) expect_at(w, text, __LINE__)
static inline void expect_at(struct world *w, const char *text, int line)
{
	char got[8192] = "";
	size_t n = 0;

	assert_int_equal(static_decide(&w->entries, &w->in), 0);
	for (size_t i = 0; i < w->entries.n; i++) {
		const struct static_entry *e = w->entries.v[i];
		char route[KROUTE_TEXT];

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s: %s%s%s\n", e->name,
				      e->wanted     ? kroute_print(&e->route, "eth0", route)
				      : e->selected ? "none"
						    : "-",
				      e->why ? " ! " : "", e->why ?: "");
	}
	if (strcmp(got, text) != 0)
		fail_msg("line %d:\n%swanted:\n%s", line, got, text);
}

/* The kernel has taken all that is wanted, and later found it right. */
static inline void apply(struct world *w)
{
	AUTO(free) struct kroute *v = NULL;
	size_t n, none = 0;

	assert_int_equal(static_routes_wanted(&w->entries, &w->view, NULL, &none, &v, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kernel_view_replace_route(&w->view, &v[i]), 0);
		kernel_view_route(&w->view, &v[i])->h.confirmed = true;
	}
	look_up(w);
}

static inline void tell(struct world *w)
{
	assert_int_equal(static_status(&w->entries, &w->view, "n1", NOW), 0);
}

static inline const char *status_of(struct world *w, const char *name)
{
	const struct static_entry *e = static_find(&w->entries, name);

	return e && e->status ? e->status : "";
}

/* Somebody removes it from the kernel: what the view makes of that. */
static inline void remove_by_hand(struct world *w, const char *name)
{
	const struct static_entry *e = static_find(&w->entries, name);
	const struct kroute *r = &e->route;
	const struct rtmsg body = { .rtm_family = (uint8_t)r->dst.address.family,
				    .rtm_dst_len = r->dst.length,
				    .rtm_table = RT_TABLE_MAIN,
				    .rtm_protocol = r->protocol,
				    .rtm_type = r->type };
	struct message m = begin(RTM_DELROUTE, 0, OTHERS, &body, sizeof(body));
	size_t size = address_bits(&r->dst.address) / 8;

	put(&m, RTA_DST, r->dst.address.bytes, size);
	if (r->metric)
		put_u32(&m, RTA_PRIORITY, r->metric);
	put(&m, RTA_GATEWAY, r->hop.gateway.bytes, size);
	put_u32(&m, RTA_OIF, r->hop.oif);
	take(&w->view, m);
	look_up(w);
}
