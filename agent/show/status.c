/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/status.h"
#include "agent/show/readiness.h"

#include <errno.h>
#include <string.h>

#define REASON_MAX 300 /* bytes of one trouble's sentence */

/* Room for the closing parts that are decided last: "omitted" and brackets. */
#define RESERVE 96

struct builder {
	struct json_object *root;
	size_t max, used; /* max 0: no limit */
	bool failed;
};

static void put(struct builder *b, struct json_object *to, const char *name,
		struct json_object *value)
{
	if (!value || json_object_object_add(to, name, value) < 0) {
		json_object_put(value);
		b->failed = true;
	}
}

static struct json_object *text(const char *value)
{
	return json_object_new_string(value ?: "");
}

static struct json_object *number(uint64_t value)
{
	return json_object_new_int64(value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static size_t printed(struct json_object *value)
{
	const char *json = json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	return json ? strlen(json) : 0;
}

/* Whether that many bytes more are within the part of the limit that is open to them. */
static bool fits(struct builder *b, size_t bytes, size_t share)
{
	if (b->max && b->used + bytes > share)
		return false;
	b->used += bytes;
	return true;
}

/* --- parts ---------------------------------------------------------------------------------- */

static struct json_object *etcd_object(struct builder *b, const struct status_etcd *etcd)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "connected", json_object_new_boolean(etcd->connected));
	if (etcd->endpoint && *etcd->endpoint)
		put(b, o, "endpoint", text(etcd->endpoint));
	if (etcd->error && *etcd->error)
		put(b, o, "error", text(etcd->error));
	if (etcd->server && *etcd->server)
		put(b, o, "server", text(etcd->server));
	return o;
}

static struct json_object *kernel_object(struct builder *b, const struct kernel_stats *k)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "links", number(k->links));
	put(b, o, "routes", number(k->routes));
	put(b, o, "repairs", number(k->repairs));
	put(b, o, "conflicts", number(k->conflicts));
	put(b, o, "failures", number(k->failures));
	return o;
}

/* As the kernel has it, and not as it was asked for. */
static struct json_object *firewall_object(struct builder *b, const struct firewall_stats *f)
{
	static const struct {
		enum firewall_part part;
		const char *name;
	} parts[] = { { FIREWALL_NAT, "natOutgoing" }, { FIREWALL_SOURCES, "ipv6SourceCheck" } };
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		put(b, o, parts[i].name,
		    text(!(f->wanted & parts[i].part) ? "off"
			 : f->held & parts[i].part    ? "set"
						      : "missing"));
	put(b, o, "repairs", number(f->repairs));
	return o;
}

static struct json_object *statics_object(struct builder *b, const struct static_counts *c)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "selected", number(c->selected));
	put(b, o, "applied", number(c->applied));
	put(b, o, "errors", number(c->errors));
	put(b, o, "tampered", number(c->tampered));
	return o;
}

static struct json_object *bird_object(struct builder *b, const struct status_bird *bird)
{
	struct json_object *o = json_object_new_object();
	size_t up = 0;

	if (!o)
		return NULL;
	for (size_t i = 0; i < bird->n_sessions; i++)
		up += bird->sessions[i].up;
	put(b, o, "connected", json_object_new_boolean(bird->connected));
	if (bird->version[0])
		put(b, o, "version", text(bird->version));
	if (bird->protocol)
		put(b, o, "protocol", text(bird->protocol));
	put(b, o, "configuration", text(bird->configuration));
	if (bird->when && bird->when[0])
		put(b, o, "when", text(bird->when));
	if (bird->error && bird->error[0])
		put(b, o, "error", text(bird->error));
	put(b, o, "sessions", number(bird->n_sessions));
	put(b, o, "established", number(up));
	return o;
}

static struct json_object *overlay_object(struct builder *b, const struct status_overlay *v)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	char address[ADDRESS_TEXT];

	if (!o)
		return NULL;
	put(b, o, "vni", number(v->vni));
	put(b, o, "port", number(v->port));
	put(b, o, "mtu", number(v->mtu));
	for (size_t i = 0; list && i < v->n_addresses; i++)
		json_object_array_add(list, text(address_print(&v->addresses[i], address)));
	put(b, o, "addresses", list);
	put(b, o, "remotes", number(v->remotes));
	put(b, o, "unreachable", number(v->unreachable));
	for (int i = 0; i < KERNEL_WAYS; i++)
		put(b, o, kernel_way_name(i), number(v->blocks[i]));
	return o;
}

static struct json_object *session_object(struct builder *b, const struct status_session *s)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "name", text(s->name));
	put(b, o, "peer", text(s->peer));
	put(b, o, "asn", number(s->asn));
	put(b, o, "state", text(s->state));
	put(b, o, "since", text(s->since));
	put(b, o, "imported", number(s->imported));
	put(b, o, "exported", number(s->exported));
	if (s->error && s->error[0])
		put(b, o, "error", text(s->error));
	return o;
}

/* At most max bytes of it, whole characters. */
static struct json_object *cut_text(const char *value, size_t max)
{
	size_t n = strlen(value);
	char copy[REASON_MAX + 4];

	if (n <= max)
		return text(value);
	for (n = max; n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80;)
		n--;
	memcpy(copy, value, n);
	memcpy(copy + n, "...", 4);
	return text(copy);
}

static struct json_object *trouble_object(struct builder *b, const struct health_entry *e)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "part", text(e->part));
	put(b, o, "reason", b->max ? cut_text(e->reason, REASON_MAX) : text(e->reason));
	put(b, o, "level", text(log_level_name(e->level)));
	put(b, o, "since", text(e->since));
	return o;
}

static struct json_object *pool_object(struct builder *b, const struct status_pool *p)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	put(b, o, "blocks", number(p->blocks));
	put(b, o, "used", number(p->used));
	put(b, o, "free", number(p->free));
	return o;
}

/* --- the whole ------------------------------------------------------------------------------ */

/* From *next on, as long as they fit into the share; *next is the first that did not. */
static void add_troubles(struct builder *b, const struct status *s, struct json_object *list,
			 size_t share, size_t *next)
{
	for (; *next < s->n_health; (*next)++) {
		struct json_object *o = trouble_object(b, &s->health[*next]);

		if (!o || !fits(b, printed(o) + 1, share) || json_object_array_add(list, o) < 0) {
			b->failed |= !o;
			json_object_put(o);
			return;
		}
	}
}

static size_t add_pools(struct builder *b, const struct status *s, struct json_object *pools,
			size_t share)
{
	size_t left_out = 0;

	for (size_t i = 0; i < s->n_pools; i++) {
		const struct status_pool *p = &s->pools[i];
		struct json_object *o = pool_object(b, p);

		if (!o || !fits(b, printed(o) + strlen(p->name) + 4, share)) {
			b->failed |= !o;
			json_object_put(o);
			left_out++;
			continue;
		}
		put(b, pools, p->name, o);
	}
	return left_out;
}

/* Those that are up, or those that are not; how many did not fit. */
static size_t add_sessions(struct builder *b, const struct status *s, struct json_object *list,
			   bool up)
{
	size_t left_out = 0;

	for (size_t i = 0; i < s->bird.n_sessions; i++) {
		struct json_object *o;

		if (s->bird.sessions[i].up != up)
			continue;
		o = session_object(b, &s->bird.sessions[i]);
		if (!o || !fits(b, printed(o) + 1, b->max) || json_object_array_add(list, o) < 0) {
			b->failed |= !o;
			json_object_put(o);
			left_out++;
		}
	}
	return left_out;
}

static void add_omitted(struct builder *b, size_t health, size_t pools, size_t sessions)
{
	struct json_object *o;

	if (!health && !pools && !sessions)
		return;
	o = json_object_new_object();
	if (o && health)
		put(b, o, "health", number(health));
	if (o && pools)
		put(b, o, "pools", number(pools));
	if (o && sessions)
		put(b, o, "sessions", number(sessions));
	put(b, b->root, "omitted", o);
}

/* The sum of all pools, whatever of them has room. */
static void add_totals(struct builder *b, const struct status *s)
{
	struct status_pool sum = { 0 };

	for (size_t i = 0; i < s->n_pools; i++) {
		sum.blocks += s->pools[i].blocks;
		sum.used += s->pools[i].used;
		if (__builtin_add_overflow(sum.free, s->pools[i].free, &sum.free))
			sum.free = UINT64_MAX;
	}
	put(b, b->root, "total", pool_object(b, &sum));
}

static void add_head(struct builder *b, const struct status *s)
{
	if (s->node)
		put(b, b->root, "node", text(s->node));
	put(b, b->root, "version", text(s->version));
	put(b, b->root, "started", text(s->started));
	if (s->address_reason && *s->address_reason)
		put(b, b->root, "address", text(s->address_reason));
	put(b, b->root, "etcd", etcd_object(b, &s->etcd));
	put(b, b->root, "kernel", kernel_object(b, &s->kernel));
	if (s->firewall.wanted)
		put(b, b->root, "firewall", firewall_object(b, &s->firewall));
	if (s->statics.selected)
		put(b, b->root, "staticRoutes", statics_object(b, &s->statics));
	if (s->bird.managed)
		put(b, b->root, "bird", bird_object(b, &s->bird));
	if (s->overlay.wanted)
		put(b, b->root, "overlay", overlay_object(b, &s->overlay));
	put(b, b->root, "attachments", number(s->attachments));
	if (s->drained)
		put(b, b->root, "drained", json_object_new_boolean(true));
	add_totals(b, s);
	if (s->ready)
		put(b, b->root, "notReady", readiness_names(s->ready));
	/* The reasons may be long; most of them stand in health as well. */
	if (s->ready && !b->max)
		put(b, b->root, "inputs", readiness_inputs(s->ready));
	b->used = printed(b->root) + RESERVE;
}

static int build(struct builder *b, const struct status *s)
{
	AUTO(json_put) struct json_object *health = json_object_new_array();
	AUTO(json_put) struct json_object *pools = json_object_new_object();
	AUTO(json_put) struct json_object *sessions = json_object_new_array();
	size_t next = 0, pools_left_out, sessions_left_out;

	if (!health || !pools || !sessions)
		return -ENOMEM;
	add_head(b, s);
	add_troubles(b, s, health, b->max / 2, &next);
	sessions_left_out = add_sessions(b, s, sessions, false);
	pools_left_out = add_pools(b, s, pools, b->max);
	add_troubles(b, s, health, b->max, &next);
	sessions_left_out += add_sessions(b, s, sessions, true);

	put(b, b->root, "health", s->n_health ? TAKE(health) : text("ok"));
	put(b, b->root, "pools", TAKE(pools));
	if (s->bird.managed)
		put(b, b->root, "sessions", TAKE(sessions));
	add_omitted(b, s->n_health - next, pools_left_out, sessions_left_out);
	return b->failed ? -ENOMEM : 0;
}

int status_json(const struct status *s, size_t max, struct json_object **ret)
{
	AUTO(json_put) struct json_object *root = json_object_new_object();
	struct builder b = { .root = root, .max = max };
	int r;

	if (!root)
		return -ENOMEM;
	r = build(&b, s);
	if (r == 0)
		*ret = TAKE(root);
	return r;
}

int status_text(const struct status *s, size_t max, char **ret)
{
	AUTO(json_put) struct json_object *root = NULL;
	int r = status_json(s, max, &root);

	return r < 0 ? r : json_print(root, ret);
}
