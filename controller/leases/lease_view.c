/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_view.h"

#include <errno.h>
#include <string.h>

#include "controller/leases/lease_api.h"
#include "lib/model/lease_holder.h"

/* --- networks ------------------------------------------------------------------------------- */

struct lease_network *lease_view_network(const struct lease_view *v, const char *name)
{
	for (size_t i = 0; i < v->networks.n; i++)
		if (strcmp(v->networks.v[i]->name, name) == 0)
			return v->networks.v[i];
	return NULL;
}

static struct lease_network *network(struct lease_view *v, const char *name)
{
	struct lease_network *n = lease_view_network(v, name);

	if (n)
		return n;
	if (lease_network_new(name, v->mirror.revision, v->done, &n) < 0 ||
	    array_append(&v->networks, n) < 0) {
		lease_network_free(n);
		v->failed = true;
		return NULL;
	}
	return n;
}

int lease_view_new(void (*done)(void *answer), struct lease_view **ret)
{
	AUTO(lease_view_free) struct lease_view *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->done = done;
	v->anew = true;
	if (!network(v, ""))
		return -ENOMEM;
	*ret = TAKE(v);
	return 0;
}

void lease_view_free(struct lease_view *v)
{
	if (!v)
		return;
	pool_records_done(&v->pools);
	for (size_t i = 0; i < v->networks.n; i++)
		lease_network_free(v->networks.v[i]);
	array_done(&v->networks);
	mirror_done(&v->mirror);
	free(v);
}

/* --- pools and settings --------------------------------------------------------------------- */

static void read_config(struct lease_view *v)
{
	AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
	const struct mirrored *e = mirror_find(&v->mirror, "config");
	const char *text = e ? e->kv.value : "{}";

	/* One that cannot be read leaves the last good one, as agents do it. */
	if (cluster_config_decode("config", text, strlen(text), &config, NULL) == 0)
		v->vxlan = config.vxlan;
}

static int read_pools(struct lease_view *v)
{
	int r = 0;

	MIRROR_EACH(&v->mirror, e, KEYS_POOL)
		r = r ?: pool_records_add(&v->pools, KV_ARGS(&e->kv), e->kv.create_revision);
	MIRROR_EACH(&v->mirror, e, KEYS_EXTENT)
		r = r ?: pool_records_add(&v->pools, KV_ARGS(&e->kv), e->kv.create_revision);
	return r ?: pool_records_view(&v->pools);
}

static bool is_overlay(const struct pool_view *p)
{
	return p && p->pool && p->pool->encapsulation != ENCAPSULATION_NONE;
}

/* The first that can give; else the first that there is, for those who have something of it. */
static const struct pool_view *choose(const struct lease_view *v, const char *name)
{
	const struct pool_view *found = NULL;

	for (size_t i = 0; i < v->pools.views.n; i++) {
		const struct pool_view *p = &v->pools.views.v[i];

		if (!is_overlay(p) || strcmp(p->network, name) != 0 ||
		    p->cidr.address.family != AF_INET || !p->selected)
			continue;
		if (!found || pool_view_serves(p) > pool_view_serves(found) ||
		    (pool_view_serves(p) == pool_view_serves(found) &&
		     pool_order(p->pool, found->pool) < 0))
			found = p;
	}
	return found;
}

static void tell_network(struct lease_view *v, const char *name, bool removed)
{
	struct lease_event e = { .removed = removed };

	if (asprintf(&e.text, "{\"type\":\"%s\",\"network\":\"%s\"}", removed ? "removed" : "added",
		     name) < 0 ||
	    lease_network_tell(v->networks.v[0], &e) < 0)
		v->failed = true;
}

static void refresh_pools(struct lease_view *v)
{
	pool_records_done(&v->pools);
	for (size_t i = 0; i < v->networks.n; i++)
		v->networks.v[i]->had_pool = v->networks.v[i]->pool != NULL;
	if (read_pools(v) < 0) {
		v->failed = true;
		return;
	}
	for (size_t i = 0; i < v->pools.views.n; i++)
		if (is_overlay(&v->pools.views.v[i]) && choose(v, v->pools.views.v[i].network))
			network(v, v->pools.views.v[i].network);
	for (size_t i = 1; i < v->networks.n; i++) {
		struct lease_network *n = v->networks.v[i];

		n->pool = choose(v, n->name);
		if (n->had_pool != (n->pool != NULL))
			tell_network(v, n->name, n->had_pool);
	}
}

/* --- blocks --------------------------------------------------------------------------------- */

static int decode_node(const struct lease_view *v, const char *name, struct node *ret)
{
	char key[KEY_TEXT];
	const struct mirrored *e;

	if (key_node(key, name) < 0 || !(e = mirror_find(&v->mirror, key)))
		return -ENOENT;
	return node_decode(key, e->kv.value, e->kv.value_len, ret, NULL);
}

/* Without a text: no lease, or none that could be told. */
static int render(const struct lease_view *v, const struct mirrored *e, struct shown *ret)
{
	AUTO_DONE(block_done) struct block block = { 0 };
	AUTO_DONE(node_done) struct node node = { 0 };
	bool known;
	int r = block_decode(KV_ARGS(&e->kv), &block, NULL);

	if (r < 0 || block.block.address.family != AF_INET || block.lease.revoked)
		return r == -ENOMEM ? r : 0;
	if (!block.lease.public_ip.family &&
	    !is_overlay(pool_views_find(&v->pools.views, block.pool)))
		return 0;
	known = !block.lease.public_ip.family && decode_node(v, block.node, &node) == 0;
	r = lease_render(&block, known ? &node : NULL, &v->vxlan, &ret->text, &ret->attrs);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	ret->created = e->kv.create_revision;
	ret->holder = strdup(block.node);
	return ret->holder ? 0 : -ENOMEM;
}

static void evaluate(struct lease_view *v, const char *key, const struct mirrored *e)
{
	struct shown lease = { 0 };
	struct lease_network *n;
	struct key parsed;

	if (key_parse(key, &parsed) < 0)
		return;
	lease.block = parsed.block;
	n = lease_view_network(v, parsed.network);
	if (e && render(v, e, &lease) < 0)
		v->failed = true;
	else if (lease.text)
		n = network(v, parsed.network);
	if (!n || v->failed)
		shown_done(&lease);
	else if (lease_network_show(n, &lease) < 0)
		v->failed = true;
}

static void evaluate_of(struct lease_view *v, const char *node)
{
	const struct mirror *m = &v->mirror;

	MIRROR_EACH(m, e, KEYS_BLOCK)
		if (!node || (e->note && strcmp(e->note, node) == 0))
			evaluate(v, e->kv.key, e);
}

static void read_recovery(struct lease_view *v)
{
	AUTO_DONE(recovery_done) struct recovery record = { 0 };
	const struct mirrored *e = mirror_find(&v->mirror, "recovery");
	int r = e ? recovery_decode("recovery", e->kv.value, e->kv.value_len, &record, NULL) : 0;

	v->number = record.number;
	v->recovering = e && (r < 0 || !record.done);
	snprintf(v->recovery, sizeof(v->recovery), "%s", e && r == 0 ? record.id : "");
	/* Those who wait are answered otherwise. */
	v->changed = true;
}

static void evaluate_all(struct lease_view *v)
{
	read_config(v);
	read_recovery(v);
	refresh_pools(v);
	evaluate_of(v, NULL);
}

/* Of a listing only the blocks that are there are walked over: those that are gone were told. */
static void on_key(struct lease_view *v, const char *key)
{
	struct key parsed;

	if (key_parse(key, &parsed) < 0)
		return;
	switch (parsed.kind) {
	case KEY_BLOCK:
		evaluate(v, key, mirror_find(&v->mirror, key));
		break;
	case KEY_NODE:
		/* All about a holder of leases stands in its blocks. */
		if (!lease_holder_is(parsed.node))
			evaluate_of(v, parsed.node);
		break;
	case KEY_POOL:
	case KEY_EXTENT:
	case KEY_CONFIG:
		evaluate_all(v);
		break;
	case KEY_RECOVERY:
		read_recovery(v);
		break;
	default:
		break;
	}
}

/* --- from the watch ------------------------------------------------------------------------- */

static bool is_of_interest(const char *key)
{
	struct key parsed;

	if (key_parse(key, &parsed) < 0)
		return false;
	if (parsed.kind == KEY_HOST_BLOCK)
		return lease_holder_is(parsed.node);
	return parsed.kind == KEY_BLOCK || parsed.kind == KEY_NODE || parsed.kind == KEY_POOL ||
	       parsed.kind == KEY_EXTENT || parsed.kind == KEY_CONFIG ||
	       parsed.kind == KEY_RECOVERY;
}

/* Before and after a change of a key. */
static void count_lease(struct lease_view *v, const char *key, size_t one)
{
	const struct mirrored *e = mirror_find(&v->mirror, key);

	if (e && strncmp(key, KEYS_HOST, strlen(KEYS_HOST)) == 0)
		v->n_indexes += one;
	else if (e && e->note && strncmp(key, KEYS_BLOCK, strlen(KEYS_BLOCK)) == 0 &&
		 lease_holder_is(e->note))
		v->n_leases += one;
}

bool lease_view_lost(const struct lease_view *v)
{
	return v->n_indexes > v->n_leases;
}

static void close_changes(struct lease_view *v, int64_t revision)
{
	for (size_t i = 0; i < v->networks.n; i++)
		switch (lease_network_close(v->networks.v[i], revision)) {
		case 0:
			break;
		case 1:
			v->changed = true;
			break;
		default:
			v->failed = true;
		}
}

/* All of an earlier revision has been told when one of a later comes. */
static void advance(struct lease_view *v, int64_t revision)
{
	if (!v->in_sync || revision <= v->open_revision)
		return;
	close_changes(v, v->open_revision);
	v->open_revision = revision;
	if (revision > v->mirror.revision)
		v->mirror.revision = revision;
}

void lease_view_put(struct lease_view *v, const char *key, const struct store_kv *kv)
{
	advance(v, kv->mod_revision);
	if (!is_of_interest(key))
		return;
	count_lease(v, key, (size_t)-1);
	if (mirror_put(&v->mirror, key, kv) < 0)
		v->failed = true;
	count_lease(v, key, 1);
	if (v->in_sync)
		on_key(v, key);
}

void lease_view_deleted(struct lease_view *v, const char *key, int64_t revision)
{
	advance(v, revision);
	if (!is_of_interest(key))
		return;
	count_lease(v, key, (size_t)-1);
	mirror_delete(&v->mirror, key);
	/* In a listing too: nobody would miss it at its end. */
	if (v->in_sync || strncmp(key, KEYS_BLOCK, strlen(KEYS_BLOCK)) == 0)
		on_key(v, key);
}

void lease_view_listing(struct lease_view *v)
{
	if (v->in_sync)
		close_changes(v, v->open_revision);
	v->in_sync = false;
}

void lease_view_doubt(struct lease_view *v)
{
	v->anew = v->went_back = true;
	if (v->number > v->before)
		v->before = v->number;
}

bool lease_view_recovering(const struct lease_view *v)
{
	/* Until one is opened: the one that is there, the restore brought along. */
	return (v->went_back && v->number <= v->before) || v->recovering;
}

const char *lease_view_recovery(const struct lease_view *v)
{
	return v->recovering && !(v->went_back && v->number <= v->before) ? v->recovery : "";
}

void lease_view_in_sync(struct lease_view *v, int64_t revision)
{
	evaluate_all(v);
	if (v->anew && v->went_back)
		v->began = revision;
	if (v->anew || revision < v->mirror.revision)
		for (size_t i = 0; i < v->networks.n; i++)
			lease_network_forget(v->networks.v[i], revision);
	v->anew = false;
	v->mirror.revision = v->open_revision = revision;
	close_changes(v, revision);
	v->in_sync = v->changed = true;
}

bool lease_view_settle(struct lease_view *v)
{
	bool changed;

	if (v->in_sync)
		close_changes(v, v->open_revision);
	changed = v->changed;
	v->changed = false;
	return changed;
}

/* --- what there is -------------------------------------------------------------------------- */

bool lease_view_ready(const struct lease_view *v)
{
	return v->in_sync && !v->failed;
}

const struct pool_view *lease_view_pool(const struct lease_view *v, const char *name)
{
	const struct lease_network *n = lease_view_network(v, name);

	return n ? n->pool : NULL;
}

static void print_snapshot(const struct lease_view *v, const struct lease_network *n,
			   const struct prefix *one, FILE *out)
{
	const char *comma = "";

	fputs("{\"events\":[],\"snapshot\":[", out);
	if (one) {
		fputs(lease_network_find(n, one)->text, out);
	} else if (!n->name[0]) {
		for (size_t i = 1; i < v->networks.n; i++) {
			if (!v->networks.v[i]->pool)
				continue;
			fprintf(out, "%s\"%s\"", comma, v->networks.v[i]->name);
			comma = ",";
		}
	} else {
		for (size_t i = 0; i < n->shown.n; i++)
			fprintf(out, "%s%s", i ? "," : "", n->shown.v[i].text);
	}
	fprintf(out, "],\"cursor\":\"%lld\"}", (long long)v->mirror.revision);
}

static int render_removed(const struct lease_view *v, const struct prefix *one, char **ret)
{
	AUTO(free) char *event = NULL;

	if (lease_removed_render(one, &event) < 0 ||
	    asprintf(ret, "{\"events\":[%s],\"snapshot\":[],\"cursor\":\"%lld\"}", event,
		     (long long)v->mirror.revision) < 0)
		return -ENOMEM;
	return 0;
}

int lease_view_snapshot(const struct lease_view *v, const struct lease_network *n,
			const struct prefix *one, char **ret)
{
	AUTO(free) char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (one && !lease_network_find(n, one))
		return render_removed(v, one, ret);
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	print_snapshot(v, n, one, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	*ret = TAKE(text);
	return 0;
}

int lease_view_since(const struct lease_view *v, const struct lease_network *n,
		     const struct prefix *one, int64_t cursor, char **ret)
{
	const struct shown *s = one ? lease_network_find(n, one) : NULL;

	if (s && (s->created > cursor || cursor < v->began))
		return render_removed(v, one, ret);
	return lease_view_snapshot(v, n, one, ret);
}

int lease_view_reservations(const struct lease_view *v, const char *name, char **ret)
{
	const struct mirror *m = &v->mirror;
	struct json_out out = { 0 };
	char beginning[KEY_TEXT];
	int r = keys_of_blocks(beginning, name);

	if (r < 0)
		return r;
	json_out_open(&out, NULL, '[');
	MIRROR_EACH(m, e, beginning) {
		AUTO_DONE(block_done) struct block block = { 0 };

		if (block_decode(KV_ARGS(&e->kv), &block, NULL) < 0 ||
		    !block.lease.public_ip.family || block.lease.expires[0])
			continue;
		json_out_open(&out, NULL, '{');
		json_out_prefix(&out, "Subnet", &block.block);
		json_out_address(&out, "PublicIP", &block.lease.public_ip);
		json_out_close(&out, '}');
	}
	json_out_close(&out, ']');
	return json_out_take(&out, ret);
}
