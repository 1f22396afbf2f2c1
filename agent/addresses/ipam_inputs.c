/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the allocator is configured from: pools, extents, labels, config. The
 * raw records are kept as they came, decoded together whenever one has changed,
 * and written to a file, so that a restart without etcd finds them.
 */
#include "agent/addresses/ipam_parts.h"

#include <errno.h>
#include <string.h>

#include "ipam/allocator/ranges.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"

/* --- raw records ---------------------------------------------------------------------------- */

static size_t raw_place(const struct ipam *m, const char *key)
{
	size_t low = 0, high = m->n_raws;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(m->raws[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct raw *raw_find(const struct ipam *m, const char *key)
{
	size_t i = raw_place(m, key);

	return i < m->n_raws && strcmp(m->raws[i].key, key) == 0 ? &m->raws[i] : NULL;
}

static int raw_insert(struct ipam *m, const char *key, struct raw **ret)
{
	size_t i = raw_place(m, key);
	char *copy = strdup(key);

	if (!copy)
		return -ENOMEM;
	if (m->n_raws == m->raws_room) {
		size_t room = m->raws_room ? m->raws_room * 2 : 32;
		struct raw *grown = reallocarray(m->raws, room, sizeof(*grown));

		if (!grown) {
			free(copy);
			return -ENOMEM;
		}
		m->raws = grown;
		m->raws_room = room;
	}
	memmove(&m->raws[i + 1], &m->raws[i], (m->n_raws - i) * sizeof(*m->raws));
	m->n_raws++;
	m->raws[i] = (struct raw){ .key = copy };
	*ret = &m->raws[i];
	return 0;
}

static void raw_changed(struct ipam *m)
{
	m->stale = m->unsaved = true;
	if (m->pass)
		pass_mark(m->pass);
}

int ipam_raw_set(struct ipam *m, const char *key, const char *value, size_t len, int64_t created)
{
	struct raw *raw = raw_find(m, key);
	char *copy = strndup(value, len);
	int r = copy ? 0 : -ENOMEM;

	/* A value with a NUL is no JSON; cut there it is none either. */
	if (r == 0 && !raw)
		r = raw_insert(m, key, &raw);
	if (r < 0) {
		free(copy);
		return r;
	}
	if (raw->value && strcmp(raw->value, copy) == 0 && raw->created == created) {
		free(copy);
		return 0;
	}
	free(raw->value);
	raw->value = copy;
	raw->created = created;
	m->o.record(raw->key, raw->value, strlen(raw->value), m->o.arg);
	raw_changed(m);
	return 0;
}

/* 0, or why a record of these kinds is not valid. */
static int raw_check(const char *key, const char *value, size_t len, struct err *err)
{
	AUTO_DONE(pool_done) struct pool pool = { 0 };
	AUTO_DONE(extent_done) struct extent extent = { 0 };
	AUTO_DONE(node_spec_done) struct node_spec spec = { 0 };
	AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
	struct key parsed;

	if (key_parse(key, &parsed) < 0)
		return 0;
	switch (parsed.kind) {
	case KEY_POOL:
		return pool_decode(key, value, len, &pool, err);
	case KEY_EXTENT:
		return extent_decode(key, value, len, &extent, err);
	case KEY_SPEC:
		return node_spec_decode(key, value, len, &spec, err);
	case KEY_CONFIG:
		return cluster_config_decode(key, value, len, &config, err);
	default:
		return 0;
	}
}

/* From the watch: a damaged record does not take the place of a good one. */
static int raw_put(struct ipam *m, const char *key, const struct store_kv *kv)
{
	struct raw *raw = raw_find(m, key);
	struct err err = { "" };
	int r = raw_check(key, kv->value, kv->value_len, &err);
	char *wrong = r == -EINVAL || r == -E2BIG ? strdup(err.text) : NULL;

	if (r < 0 && !wrong)
		return -ENOMEM;
	if (wrong && raw && raw_check(key, raw->value, strlen(raw->value), NULL) == 0) {
		raw->created = kv->create_revision;
		raw_changed(m);
		free(raw->wrong);
		raw->wrong = wrong;
		return 0;
	}
	free(wrong);
	if (raw && raw->wrong) {
		free(TAKE(raw->wrong));
		raw_changed(m);
	}
	return ipam_raw_set(m, key, kv->value, kv->value_len, kv->create_revision);
}

void ipam_raw_drop(struct ipam *m, const char *key)
{
	struct raw *raw = raw_find(m, key);

	if (!raw)
		return;
	m->o.record(key, NULL, 0, m->o.arg);
	free(raw->key);
	free(raw->value);
	free(raw->wrong);
	m->n_raws--;
	memmove(raw, raw + 1, (size_t)(&m->raws[m->n_raws] - raw) * sizeof(*raw));
	raw_changed(m);
}

/* --- decoding ------------------------------------------------------------------------------- */

static void inputs_free(struct inputs *in)
{
	for (size_t i = 0; i < in->n_valid; i++)
		pool_done(&in->pools[i]);
	for (size_t i = 0; i < in->n_extents; i++)
		extent_done(&in->extents[i]);
	if (in->has_spec)
		node_spec_done(&in->spec);
	for (size_t i = 0; i < in->n_pools; i++)
		free(in->names[i]);
	free(in->names);
	free(in->pools);
	free(in->views);
	free(in->invalid);
	free(in->extents);
	free(in->extent_list);
	free(in->labels);
	*in = (struct inputs){ 0 };
}

/* Of a pool whose extent cannot be read nobody knows how it is cut. */
static int check_extent(const struct ipam *m, const struct pool *pool, struct err *err)
{
	char key[KEY_TEXT];
	int r = key_extent(key, pool->network, pool->name);
	const struct raw *raw = r < 0 ? NULL : raw_find(m, key);

	return raw ? raw_check(key, raw->value, strlen(raw->value), err) : r;
}

static int decode_pool(struct ipam *m, struct inputs *in, const struct raw *raw)
{
	struct err *err = &in->invalid[in->n_pools];
	struct pool *pool = &in->pools[in->n_valid];
	char *name = strdup(raw->key + strlen(KEYS_POOL));
	struct pool_input *view = &in->views[in->n_pools];
	int r;

	if (!name)
		return -ENOMEM;
	in->names[in->n_pools++] = name;
	*view = (struct pool_input){ .name = name, .created = raw->created };
	r = pool_decode(raw->key, raw->value, strlen(raw->value), pool, err);
	if (r == 0) {
		r = check_extent(m, pool, err);
		if (r < 0)
			pool_done(pool);
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		view->invalid = err->text;
		return 0;
	}
	view->pool = pool;
	in->n_valid++;
	return 0;
}

static int decode_extent(struct ipam *m, struct inputs *in, const struct raw *raw)
{
	struct err err = { "" };
	struct extent *extent = &in->extents[in->n_extents];
	int r = extent_decode(raw->key, raw->value, strlen(raw->value), extent, &err);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		/* Whoever damaged it: the pool must not be cut anew as if there were none. */
		health_set(m->o.health, raw->key, LOG_LEVEL_ERROR, "%s", err.text);
		return 0;
	}
	in->extent_list[in->n_extents++] = extent;
	return 0;
}

static int decode_spec(struct ipam *m, struct inputs *in, const struct raw *raw)
{
	struct err err = { "" };
	int r = node_spec_decode(raw->key, raw->value, strlen(raw->value), &in->spec, &err);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		health_set(m->o.health, raw->key, LOG_LEVEL_WARNING, "%s", err.text);
		return 0;
	}
	in->has_spec = true;
	in->labels = calloc(in->spec.labels.n ?: 1, sizeof(*in->labels));
	if (!in->labels)
		return -ENOMEM;
	for (size_t i = 0; i < in->spec.labels.n; i++)
		in->labels[i] = (struct label){ in->spec.labels.v[i].key,
						in->spec.labels.v[i].value };
	in->n_labels = in->spec.labels.n;
	return 0;
}

static int decode_config(struct ipam *m, struct inputs *in, const struct raw *raw)
{
	AUTO_DONE(cluster_config_done) struct cluster_config config = { 0 };
	struct err err = { "" };
	int r = cluster_config_decode(raw->key, raw->value, strlen(raw->value), &config, &err);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		health_set(m->o.health, "config", LOG_LEVEL_ERROR, "%s", err.text);
		in->config_wrong = true;
		return 0;
	}
	in->reclaim_after = config.reclaim_after;
	in->export_table = config.export_table;
	in->has_log_level = log_level_parse(config.log_level, &in->log_level) == 0;
	return 0;
}

static int decode_raw(struct ipam *m, struct inputs *in, const struct raw *raw)
{
	struct key key;

	if (key_parse(raw->key, &key) < 0)
		return 0;
	switch (key.kind) {
	case KEY_POOL:
		return decode_pool(m, in, raw);
	case KEY_EXTENT:
		return decode_extent(m, in, raw);
	case KEY_SPEC:
		return decode_spec(m, in, raw);
	case KEY_CONFIG:
		return decode_config(m, in, raw);
	default:
		return 0;
	}
}

static int inputs_decode(struct ipam *m, struct inputs *in)
{
	size_t n = m->n_raws ?: 1;
	int r = 0;

	in->reclaim_after = 3600;
	in->pools = calloc(n, sizeof(*in->pools));
	in->views = calloc(n, sizeof(*in->views));
	in->invalid = calloc(n, sizeof(*in->invalid));
	in->names = calloc(n, sizeof(char *));
	in->extents = calloc(n, sizeof(*in->extents));
	in->extent_list = calloc(n, sizeof(struct extent *));
	if (!in->pools || !in->views || !in->invalid || !in->names || !in->extents ||
	    !in->extent_list)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < m->n_raws; i++)
		r = decode_raw(m, in, &m->raws[i]);
	return r;
}

/* Pods get addresses of it that other nodes cannot reach: they have no next hop of that family. */
static bool tell_family(struct ipam *m, const struct pool_view *v, const char *part)
{
	const bool six = v->cidr.address.family == AF_INET6;
	const char *family = six ? "IPv6" : "IPv4";

	if (!v->pool || !pool_view_serves(v) || strcmp(v->network, "default") != 0 ||
	    strcmp(v->pool->origin, RANGE_ORIGIN) == 0)
		return false;
	if (!m->self_known || (six ? m->self_ipv6 : m->self_ipv4))
		return false;
	/* A tunnel carries both families, whichever its ends have. */
	if (!v->pool->routed || v->pool->encapsulation != ENCAPSULATION_NONE)
		return false;
	health_set(
		m->o.health, part, LOG_LEVEL_WARNING,
		"its addresses are %s, but this node has no %s address: other nodes cannot reach "
		"its pods by %s; give the node's interface one and reboot, start the agent with "
		"--address IPV4,IPV6, or exclude this node by the pool's nodeSelector",
		family, family, family);
	return true;
}

void ipam_set_self(struct ipam *m, bool ipv4, bool ipv6)
{
	m->self_known = true;
	m->self_ipv4 = ipv4;
	m->self_ipv6 = ipv6;
	m->stale = true;
	pass_mark(m->pass);
}

/* What is wrong with which record, told once when it changes. */
static void tell_wrong(struct ipam *m)
{
	const struct pool_views *views = allocator_pools(m->allocator);
	char spec[KEY_TEXT];

	for (size_t i = 0; i < m->n_raws; i++)
		if (m->raws[i].wrong)
			health_set(m->o.health, m->raws[i].key, LOG_LEVEL_ERROR,
				   "%s; what it was before stays in force", m->raws[i].wrong);
	for (size_t i = 0; i < views->n; i++) {
		const struct pool_view *v = &views->v[i];
		char part[HEALTH_PART];
		const struct raw *raw;

		snprintf(part, sizeof(part), "pool/%s", v->name);
		raw = raw_find(m, part);
		if (raw && raw->wrong)
			continue;
		if (v->wrong.text[0])
			health_set(m->o.health, part, LOG_LEVEL_ERROR, "%s", v->wrong.text);
		else if (!tell_family(m, v, part) && v->note.text[0])
			health_set(m->o.health, part, LOG_LEVEL_WARNING, "%s", v->note.text);
	}
	health_sweep(m->o.health, KEYS_POOL);
	health_sweep(m->o.health, KEYS_EXTENT);
	/* Those of others are routing's to tell. */
	if (key_spec(spec, m->o.node) == 0)
		health_sweep(m->o.health, spec);
	health_sweep(m->o.health, "config");
}

int ipam_configure(struct ipam *m)
{
	struct inputs fresh = { 0 };
	struct pools_input in;
	int r;

	if (!m->stale)
		return 0;
	r = inputs_decode(m, &fresh);
	in = (struct pools_input){
		.pools = fresh.views,
		.n_pools = fresh.n_pools,
		.extents = fresh.extent_list,
		.n_extents = fresh.n_extents,
		.node = m->o.node,
		.labels = { fresh.labels, fresh.n_labels },
		.pod_cidrs = fresh.spec.pod_cidrs,
	};
	r = r ?: allocator_configure(m->allocator, &in);
	if (r < 0) {
		inputs_free(&fresh);
		return r;
	}
	inputs_free(&m->inputs);
	m->inputs = fresh;
	m->stale = false;
	ipam_learn_routed(m);
	tell_wrong(m);
	m->o.changed(m->o.arg);
	m->o.routes_changed(true, m->o.arg);
	return 0;
}

enum log_level ipam_log_level(const struct ipam *m, enum log_level own)
{
	return m->inputs.has_log_level ? m->inputs.log_level : own;
}

const struct extent *ipam_extent(const struct ipam *m, const char *network, const char *pool,
				 int64_t *ret_created)
{
	char key[KEY_TEXT];
	const struct raw *raw;

	*ret_created = 0;
	if (key_extent(key, network, pool) < 0)
		return NULL;
	raw = raw_find(m, key);
	if (raw)
		*ret_created = raw->created;
	for (size_t i = 0; raw && i < m->inputs.n_extents; i++)
		if (strcmp(m->inputs.extents[i].network, network) == 0 &&
		    strcmp(m->inputs.extents[i].pool, pool) == 0)
			return &m->inputs.extents[i];
	return NULL;
}

/* --- watching ------------------------------------------------------------------------------- */

static void on_put(const struct store_kv *kv, void *arg)
{
	struct input_watch *w = arg;
	struct ipam *m = w->ipam;
	const char *relative = kv->key + strlen(m->o.prefix);
	struct key key;

	if (kv->mod_revision > w->seen)
		w->seen = kv->mod_revision;
	if (w->seen > m->newest)
		m->newest = w->seen;
	if (key_parse(relative, &key) < 0) {
		log_debug("ipam", "key %s is none of ours and left alone", kv->key);
		return;
	}
	if (w->which == INPUT_HOST)
		ipam_host_put(m, &key, kv);
	else if (w->which == INPUT_RECOVERY)
		ipam_recovery_put(m, kv);
	else if (w->which == INPUT_NODES)
		ipam_node_put(m, relative, kv);
	else if (raw_put(m, relative, kv) < 0)
		log_error("ipam", "out of memory at %s", relative);
}

static void on_deleted(const char *full, int64_t revision, void *arg)
{
	struct input_watch *w = arg;
	struct ipam *m = w->ipam;
	const char *relative = full + strlen(m->o.prefix);
	struct key key;

	if (revision > w->seen)
		w->seen = revision;
	if (key_parse(relative, &key) < 0)
		return;
	if (w->which == INPUT_HOST)
		ipam_host_deleted(m, &key, full, revision);
	else if (w->which == INPUT_RECOVERY)
		ipam_recovery_deleted(m);
	else if (w->which == INPUT_NODES)
		ipam_node_deleted(m, relative);
	else if (w->which == INPUT_CONFIG && !w->in_sync)
		log_warning("ipam",
			    "config vanished with etcd's data and stays in force until it is "
			    "written again");
	else
		ipam_raw_drop(m, relative);
}

/* Records of the file that etcd does not have any more. */
static void drop_unlisted(struct ipam *m, enum input which)
{
	static const char *const starts[INPUTS] = {
		[INPUT_POOLS] = KEYS_POOL,
		[INPUT_EXTENTS] = KEYS_EXTENT,
		[INPUT_SPEC] = KEYS_SPEC,
		[INPUT_CONFIG] = "config",
	};

	for (size_t i = m->n_raws; starts[which] && i > 0; i--)
		if (m->raws[i - 1].created < 0 &&
		    strncmp(m->raws[i - 1].key, starts[which], strlen(starts[which])) == 0)
			ipam_raw_drop(m, m->raws[i - 1].key);
}

/* Did etcd go back while no agent ran here? Asked once: later the store notices it. */
static void compare_saved(struct ipam *m, int64_t revision)
{
	struct store_stats now = { 0 };

	store_stats(m->o.store, &now);
	if (m->saved_cluster && now.cluster_id &&
	    (m->saved_revision > revision || m->saved_cluster != now.cluster_id)) {
		log_error("ipam",
			  "etcd went back, or is another one, since the last agent ran here: "
			  "revision %lld, then %lld",
			  (long long)revision, (long long)m->saved_revision);
		m->recovery.noticed = m->recovery.unsettled = true;
		m->recovery.knew = m->saved_revision;
	}
	m->saved_revision = 0;
	m->saved_cluster = 0;
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct input_watch *w = arg;
	struct ipam *m = w->ipam;

	w->seen = revision;
	w->in_sync = true;
	if (w->which == INPUT_RECOVERY)
		compare_saved(m, revision);
	drop_unlisted(m, w->which);
	if (w->which == INPUT_HOST) {
		behind_in_sync(m->behind, true);
		m->host_listed = true;
		for (size_t i = 0; i < m->n_owned; i++)
			m->owned[i]->verify = true;
	}
	pass_mark(m->pass);
}

static int watch_one(struct ipam *m, enum input which, const char *relative, bool prefix)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	struct input_watch *w = &m->watches[which];
	char key[KEY_FULL_TEXT];
	AUTO(free) char *end = NULL;
	int r = key_full(m->o.prefix, relative, key);

	*w = (struct input_watch){ .ipam = m, .which = which };
	if (r < 0)
		return r;
	if (prefix) {
		end = store_prefix_end(key);
		if (!end)
			return -ENOMEM;
	}
	return store_watch(m->o.store, key, end, &handlers, w, &w->watch);
}

int ipam_inputs_start(struct ipam *m)
{
	char host[KEY_TEXT], spec[KEY_TEXT];
	int r = keys_of_host(host, m->o.node);

	r = r ?: key_spec(spec, m->o.node);
	r = r ?: watch_one(m, INPUT_RECOVERY, "recovery", false);
	r = r ?: watch_one(m, INPUT_NODES, KEYS_NODE, true);
	r = r ?: watch_one(m, INPUT_CONFIG, "config", false);
	r = r ?: watch_one(m, INPUT_POOLS, KEYS_POOL, true);
	r = r ?: watch_one(m, INPUT_EXTENTS, KEYS_EXTENT, true);
	r = r ?: watch_one(m, INPUT_SPEC, spec, false);
	return r ?: watch_one(m, INPUT_HOST, host, true);
}

void ipam_inputs_done(struct ipam *m)
{
	for (size_t i = 0; i < INPUTS; i++)
		store_unwatch(m->watches[i].watch);
}

void ipam_inputs_free(struct ipam *m)
{
	for (size_t i = 0; i < m->n_raws; i++) {
		free(m->raws[i].key);
		free(m->raws[i].value);
		free(m->raws[i].wrong);
	}
	free(m->raws);
	inputs_free(&m->inputs);
}

/* --- the file ------------------------------------------------------------------------------- */

int ipam_records_save(struct ipam *m)
{
	AUTO(json_put) struct json_object *o = json_object_new_object();
	struct json_object *records = json_object_new_object();
	AUTO(free) char *text = NULL;
	struct store_stats stats = { 0 };
	int r;

	store_stats(m->o.store, &stats);
	if (!o || !records || json_object_object_add(o, "records", records) < 0) {
		json_object_put(records);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->n_raws; i++)
		if (json_object_object_add(records, m->raws[i].key,
					   json_object_new_string(m->raws[i].value)) < 0)
			return -ENOMEM;
	/* What was proven, and when: a restart must not begin to count again. */
	if (json_object_object_add(o, "boot", json_object_new_string(m->o.boot)) < 0 ||
	    json_object_object_add(o, "proved", json_object_new_int64(m->authority.proved)) < 0 ||
	    json_object_object_add(o, "promise", json_object_new_int64(m->authority.promise)) < 0 ||
	    json_object_object_add(o, "revision", json_object_new_int64(stats.revision)) < 0 ||
	    json_object_object_add(o, "cluster", json_object_new_int64((int64_t)stats.cluster_id)) <
		    0 ||
	    json_object_object_add(o, "recovery", json_object_new_int64(ipam_recovery_number(m))) <
		    0)
		return -ENOMEM;
	r = json_print(o, &text);
	r = r ?: local_copy_put_records(m->copy, text);
	if (r == 0)
		m->unsaved = false;
	return r;
}

static int load_parsed(struct ipam *m, struct json_object *o, struct err *err)
{
	struct json_at root = json_root(o, err), records = json_need(&root, "records");
	int64_t proved = 0, promise = 0, cluster = 0, recovery = 0;
	const char *boot = "";
	int r = json_read_text(json_need(&root, "boot"), 256, &boot);

	if (r > 0)
		r = json_read_integer(json_need(&root, "proved"), 0, INT64_MAX, &proved);
	if (r > 0)
		r = json_read_integer(json_need(&root, "promise"), 0, INT32_MAX, &promise);
	if (r > 0)
		r = json_read_integer(json_need(&root, "revision"), 0, INT64_MAX,
				      &m->saved_revision);
	if (r > 0)
		r = json_read_integer(json_need(&root, "cluster"), INT64_MIN, INT64_MAX, &cluster);
	if (r > 0)
		r = json_read_integer(json_need(&root, "recovery"), 0, INT32_MAX, &recovery);
	if (r > 0)
		r = json_read_object(records);
	if (r < 0)
		return r;
	if (strcmp(boot, m->o.boot) != 0)
		return -ENOENT;
	m->authority.proved = proved;
	m->authority.promise = (uint32_t)promise;
	m->saved_cluster = (uint64_t)cluster;
	m->recovery.before = (uint32_t)recovery;
	json_object_object_foreach(records.value, key, value) {
		/* Negative: from the file, to be confirmed by etcd's own list. */
		r = ipam_raw_set(m, key, json_object_get_string(value),
				 (size_t)json_object_get_string_len(value), -1);
		if (r < 0)
			return r;
	}
	return 0;
}

/* 0: loaded, and of this boot; -ENOENT: there are none. */
int ipam_records_load(struct ipam *m)
{
	AUTO(json_put) struct json_object *o = NULL;
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len;
	int r = local_copy_get_records(m->copy, &text, &len);

	if (r < 0)
		return r;
	r = json_parse(text, len, &o, &err);
	r = r ?: load_parsed(m, o, &err);
	if (r == -EINVAL || r == -E2BIG) {
		log_warning("ipam", "%s/records is damaged and ignored: %s", m->o.run_dir,
			    err.text);
		return -ENOENT;
	}
	m->unsaved = false;
	return r;
}
