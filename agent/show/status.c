/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/status.h"
#include "agent/show/readiness.h"

#include <errno.h>
#include <string.h>

#include "lib/json/tree.h"

#define REASON_MAX 300 /* bytes of one trouble's sentence */

/* Room for the closing parts that are decided last: "omitted" and brackets. */
#define RESERVE 96

/* The root stays open until the end; what has to fit in is made apart and added. */
struct builder {
	struct tree root;
	size_t max, used; /* max 0: no limit */
};

static void number(struct tree *t, const char *name, uint64_t value)
{
	tree_number(t, name, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static size_t printed(struct json_object *value)
{
	const char *json = json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	return json ? strlen(json) : 0;
}

/*
 * Into the list, or as the member of that name, if it fits into the part of the limit that is open
 * to it.
 */
static bool add(struct builder *b, struct tree *made, struct json_object *to, const char *name,
		size_t share)
{
	AUTO(json_put) struct json_object *o = NULL;
	size_t bytes;

	if (tree_end(made, &o) < 0 || !to) {
		b->root.failed = true;
		return false;
	}
	bytes = printed(o) + (name ? strlen(name) + 4 : 1);
	if (b->max && b->used + bytes > share)
		return false;
	b->used += bytes;
	if ((name ? json_object_object_add(to, name, o) : json_object_array_add(to, o)) < 0) {
		b->root.failed = true;
		return false;
	}
	o = NULL;
	return true;
}

/* --- parts ---------------------------------------------------------------------------------- */

static void add_etcd(struct tree *t, const struct status_etcd *etcd)
{
	tree_open(t, "etcd", '{');
	tree_bool(t, "connected", etcd->connected);
	tree_some_text(t, "endpoint", etcd->endpoint);
	tree_some_text(t, "error", etcd->error);
	tree_some_text(t, "server", etcd->server);
	tree_close(t);
}

static void add_kernel(struct tree *t, const struct kernel_stats *k)
{
	tree_open(t, "kernel", '{');
	number(t, "links", k->links);
	number(t, "routes", k->routes);
	number(t, "repairs", k->repairs);
	number(t, "conflicts", k->conflicts);
	number(t, "failures", k->failures);
	tree_close(t);
}

/* As the kernel has it, and not as it was asked for. */
static void add_firewall(struct tree *t, const struct firewall_stats *f)
{
	static const struct {
		enum firewall_part part;
		const char *name;
	} parts[] = { { FIREWALL_NAT, "natOutgoing" },
		      { FIREWALL_SOURCES, "sourceCheck" },
		      { FIREWALL_PROTECTION, "protection" } };

	tree_open(t, "firewall", '{');
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		tree_text(t, parts[i].name,
			  !(f->wanted & parts[i].part) ? "off"
			  : f->held & parts[i].part    ? "set"
						       : "missing");
	number(t, "repairs", f->repairs);
	tree_close(t);
}

static void add_statics(struct tree *t, const struct static_counts *c)
{
	tree_open(t, "staticRoutes", '{');
	number(t, "selected", c->selected);
	number(t, "applied", c->applied);
	number(t, "errors", c->errors);
	number(t, "tampered", c->tampered);
	tree_close(t);
}

static void add_bird(struct tree *t, const struct status_bird *bird)
{
	size_t up = 0;

	for (size_t i = 0; i < bird->n_sessions; i++)
		up += bird->sessions[i].up;
	tree_open(t, "bird", '{');
	tree_bool(t, "connected", bird->connected);
	tree_some_text(t, "version", bird->version);
	if (bird->protocol)
		tree_text(t, "protocol", bird->protocol);
	tree_text(t, "configuration", bird->configuration);
	tree_some_text(t, "when", bird->when);
	tree_some_text(t, "error", bird->error);
	number(t, "sessions", bird->n_sessions);
	number(t, "established", up);
	tree_close(t);
}

static void add_overlay(struct tree *t, const struct status_overlay *v)
{
	tree_open(t, "overlay", '{');
	number(t, "vni", v->vni);
	number(t, "port", v->port);
	number(t, "mtu", v->mtu);
	tree_open(t, "addresses", '[');
	for (size_t i = 0; i < v->n_addresses; i++)
		tree_address(t, NULL, &v->addresses[i]);
	tree_close(t);
	number(t, "remotes", v->remotes);
	number(t, "unreachable", v->unreachable);
	for (int i = 0; i < KERNEL_WAYS; i++)
		number(t, kernel_way_name(i), v->blocks[i]);
	tree_close(t);
}

static struct tree session(const struct status_session *s)
{
	struct tree t = tree_new();

	tree_text(&t, "name", s->name);
	tree_text(&t, "peer", s->peer);
	tree_some_text(&t, "record", s->record);
	number(&t, "asn", s->asn);
	tree_text(&t, "state", s->state);
	tree_text(&t, "since", s->since);
	number(&t, "imported", s->imported);
	number(&t, "exported", s->exported);
	tree_some_text(&t, "error", s->error);
	return t;
}

/* At most max bytes of it, whole characters. */
static void cut_text(struct tree *t, const char *name, const char *value, size_t max)
{
	size_t n = strlen(value);

	if (n > max)
		for (n = max; n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80;)
			n--;
	tree_printf(t, name, "%.*s%s", (int)n, value, value[n] ? "..." : "");
}

static struct tree trouble(const struct health_entry *e, size_t max)
{
	struct tree t = tree_new();

	tree_text(&t, "part", e->part);
	cut_text(&t, "reason", e->reason, max ? REASON_MAX : SIZE_MAX);
	tree_text(&t, "level", log_level_name(e->level));
	tree_text(&t, "since", e->since);
	return t;
}

static void add_pool(struct tree *t, const struct status_pool *p)
{
	number(t, "blocks", p->blocks);
	number(t, "used", p->used);
	number(t, "free", p->free);
}

/* --- the whole ------------------------------------------------------------------------------ */

/* From *next on, as long as they fit into the share; *next is the first that did not. */
static void add_troubles(struct builder *b, const struct status *s, struct json_object *list,
			 size_t share, size_t *next)
{
	for (; *next < s->n_health; (*next)++) {
		struct tree t = trouble(&s->health[*next], b->max);

		if (!add(b, &t, list, NULL, share))
			return;
	}
}

static size_t add_pools(struct builder *b, const struct status *s, struct json_object *pools)
{
	size_t left_out = 0;

	for (size_t i = 0; i < s->n_pools; i++) {
		struct tree t = tree_new();

		add_pool(&t, &s->pools[i]);
		left_out += !add(b, &t, pools, s->pools[i].name, b->max);
	}
	return left_out;
}

/* Those that are up, or those that are not; how many did not fit. */
static size_t add_sessions(struct builder *b, const struct status *s, struct json_object *list,
			   bool up)
{
	size_t left_out = 0;

	for (size_t i = 0; i < s->bird.n_sessions; i++)
		if (s->bird.sessions[i].up == up) {
			struct tree t = session(&s->bird.sessions[i]);

			left_out += !add(b, &t, list, NULL, b->max);
		}
	return left_out;
}

static void add_omitted(struct tree *t, size_t health, size_t pools, size_t sessions)
{
	if (!health && !pools && !sessions)
		return;
	tree_open(t, "omitted", '{');
	if (health)
		number(t, "health", health);
	if (pools)
		number(t, "pools", pools);
	if (sessions)
		number(t, "sessions", sessions);
	tree_close(t);
}

/* The sum of all pools, whatever of them has room. */
static void add_totals(struct tree *t, const struct status *s)
{
	struct status_pool sum = { 0 };

	for (size_t i = 0; i < s->n_pools; i++) {
		sum.blocks += s->pools[i].blocks;
		sum.used += s->pools[i].used;
		if (__builtin_add_overflow(sum.free, s->pools[i].free, &sum.free))
			sum.free = UINT64_MAX;
	}
	tree_open(t, "total", '{');
	add_pool(t, &sum);
	tree_close(t);
}

static void add_head(struct builder *b, const struct status *s)
{
	struct tree *t = &b->root;

	if (s->node)
		tree_text(t, "node", s->node);
	tree_text(t, "version", s->version);
	tree_text(t, "started", s->started);
	tree_some_text(t, "address", s->address_reason);
	add_etcd(t, &s->etcd);
	add_kernel(t, &s->kernel);
	if (s->firewall.wanted)
		add_firewall(t, &s->firewall);
	if (s->statics.selected)
		add_statics(t, &s->statics);
	if (s->bird.managed)
		add_bird(t, &s->bird);
	if (s->overlay.wanted)
		add_overlay(t, &s->overlay);
	number(t, "attachments", s->attachments);
	if (s->drained)
		tree_bool(t, "drained", true);
	add_totals(t, s);
	if (s->ready)
		readiness_names(s->ready, t);
	/* The reasons may be long; most of them stand in health as well. */
	if (s->ready && !b->max)
		readiness_inputs(s->ready, t);
	b->used = printed(t->object) + RESERVE;
}

int status_json(const struct status *s, size_t max, struct json_object **ret)
{
	struct builder b = { .root = tree_new(), .max = max };
	struct json_object *health = json_object_new_array(), *pools = json_object_new_object(),
			   *sessions = json_object_new_array();
	size_t next = 0, pools_left_out, sessions_left_out;

	b.root.failed |= !health || !pools || !sessions;
	add_head(&b, s);
	add_troubles(&b, s, health, max / 2, &next);
	sessions_left_out = add_sessions(&b, s, sessions, false);
	pools_left_out = add_pools(&b, s, pools);
	add_troubles(&b, s, health, max, &next);
	sessions_left_out += add_sessions(&b, s, sessions, true);

	if (s->n_health)
		tree_share(&b.root, "health", health);
	else
		tree_text(&b.root, "health", "ok");
	tree_share(&b.root, "pools", pools);
	if (s->bird.managed)
		tree_share(&b.root, "sessions", sessions);
	json_object_put(health);
	json_object_put(pools);
	json_object_put(sessions);
	add_omitted(&b.root, s->n_health - next, pools_left_out, sessions_left_out);
	return tree_end(&b.root, ret);
}

int status_text(const struct status *s, size_t max, char **ret)
{
	AUTO(json_put) struct json_object *root = NULL;
	int r = status_json(s, max, &root);

	return r < 0 ? r : json_print(root, ret);
}
