/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the allocator is configured from: pools, extents, labels and config, a view of the agent's
 * records. They are taken together whenever one has changed, and written to a file, so that a
 * restart without etcd finds them.
 */
#include "agent/addresses/ipam_state.h"

#include <errno.h>
#include <string.h>

#include "ipam/allocator/ranges.h"
#include "lib/base/clock.h"
#include "lib/json/tree.h"

/* --- the view ------------------------------------------------------------------------------- */

/*
 * What the allocator goes by: a pool or an extent that has vanished serves nothing new, but config
 * and labels that vanished with etcd's data stay in force.
 */
static bool counts(enum key_kind kind, const struct record_entry *e)
{
	return e->state == RECORD_STANDS ||
	       (e->state == RECORD_LOST && (kind == KEY_CONFIG || kind == KEY_SPEC));
}

static const struct record_entry *entry_of(const struct ipam *m, enum key_kind kind,
					   const char *name)
{
	const struct record_entry *e = records_entry(m->o.records, kind, name);

	return e && counts(kind, e) ? e : NULL;
}

static void inputs_free(struct inputs *in)
{
	for (size_t i = 0; i < in->n_pools; i++) {
		free(in->names[i]);
		record_drop(in->views[i].pool);
	}
	for (size_t i = 0; i < in->n_extents; i++)
		record_drop(in->extents[i]);
	record_drop(in->spec);
	free(in->names);
	free(in->views);
	free(in->invalid);
	free(in->extents);
	free(in->labels);
	*in = (struct inputs){ 0 };
}

/* Nobody knows how a pool is cut whose extent cannot be read. */
static const char *why_invalid(const struct ipam *m, const struct record_entry *e)
{
	const struct pool *pool = e->value;
	char name[2 * NAME_TEXT];
	const struct record_entry *extent;

	if (!pool)
		return e->wrong;
	snprintf(name, sizeof(name), "%s/%s", pool->network, pool->name);
	extent = entry_of(m, KEY_EXTENT, name);
	return extent && !extent->value ? extent->wrong : NULL;
}

static int take_pools(const struct ipam *m, struct inputs *in)
{
	size_t n = records_count(m->o.records, KEY_POOL);

	in->views = calloc(n ?: 1, sizeof(*in->views));
	in->invalid = calloc(n ?: 1, sizeof(*in->invalid));
	in->names = calloc(n ?: 1, sizeof(char *));
	if (!in->views || !in->invalid || !in->names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct record_entry *e = records_at(m->o.records, KEY_POOL, i);
		struct err *invalid = &in->invalid[in->n_pools];
		const char *why;
		char *name;

		if (!counts(KEY_POOL, e))
			continue;
		name = strdup(e->name);
		if (!name)
			return -ENOMEM;
		why = why_invalid(m, e);
		if (why)
			err_set(invalid, 0, "%s", why);
		in->names[in->n_pools] = name;
		in->views[in->n_pools++] = (struct pool_input){
			.name = name,
			.created = e->created,
			.pool = why ? NULL : record_keep(e->value),
			.invalid = why ? invalid->text : NULL,
		};
	}
	return 0;
}

static int take_extents(const struct ipam *m, struct inputs *in)
{
	size_t n = records_count(m->o.records, KEY_EXTENT);

	in->extents = calloc(n ?: 1, sizeof(struct extent *));
	if (!in->extents)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct record_entry *e = records_at(m->o.records, KEY_EXTENT, i);

		if (counts(KEY_EXTENT, e) && e->value)
			in->extents[in->n_extents++] = record_keep(e->value);
	}
	return 0;
}

static int take_labels(const struct ipam *m, struct inputs *in)
{
	const struct record_entry *e = entry_of(m, KEY_SPEC, m->o.node);
	const struct label_map *labels;

	if (!e || !e->value)
		return 0;
	in->spec = record_keep(e->value);
	labels = &in->spec->labels;
	in->labels = calloc(labels->n ?: 1, sizeof(*in->labels));
	if (!in->labels)
		return -ENOMEM;
	for (size_t i = 0; i < labels->n; i++)
		in->labels[i] = (struct label){ labels->v[i].key, labels->v[i].value };
	in->n_labels = labels->n;
	return 0;
}

static void take_config(const struct ipam *m, struct inputs *in)
{
	const struct record_entry *e = entry_of(m, KEY_CONFIG, "");
	const struct cluster_config *config = e ? e->value : NULL;

	in->reclaim_after = REGISTER_PROMISE_S;
	in->config_wrong = e && !config;
	if (!config)
		return;
	in->reclaim_after = config->reclaim_after;
	in->export_table = config->export_table;
	in->has_log_level = log_level_parse(config->log_level, &in->log_level) == 0;
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

/* What is wrong with a pool beside its record, which agent/records reports by the same name. */
static void tell_pools(struct ipam *m)
{
	const struct pool_views *views = allocator_pools(m->allocator);

	for (size_t i = 0; i < views->n; i++) {
		const struct pool_view *v = &views->v[i];
		const struct record_entry *e = entry_of(m, KEY_POOL, v->name);
		char part[HEALTH_PART];

		snprintf(part, sizeof(part), KEYS_POOL "%s", v->name);
		if (e && e->wrong)
			continue;
		if (v->wrong.text[0])
			health_set(m->o.health, part, LOG_LEVEL_ERROR, "%s", v->wrong.text);
		else if (tell_family(m, v, part))
			continue;
		else if (v->note.text[0])
			health_set(m->o.health, part, LOG_LEVEL_WARNING, "%s", v->note.text);
		else
			health_clear(m->o.health, part);
	}
}

int ipam_configure(struct ipam *m)
{
	struct inputs fresh = { 0 };
	struct pools_input in;
	int r;

	if (!m->stale)
		return 0;
	take_config(m, &fresh);
	r = take_pools(m, &fresh);
	r = r ?: take_extents(m, &fresh);
	r = r ?: take_labels(m, &fresh);
	in = (struct pools_input){
		.pools = fresh.views,
		.n_pools = fresh.n_pools,
		.extents = fresh.extents,
		.n_extents = fresh.n_extents,
		.node = m->o.node,
		.labels = { fresh.labels, fresh.n_labels },
	};
	if (fresh.spec)
		in.pod_cidrs = fresh.spec->pod_cidrs;
	r = r ?: allocator_configure(m->allocator, &in);
	if (r < 0) {
		inputs_free(&fresh);
		return r;
	}
	inputs_free(&m->inputs);
	m->inputs = fresh;
	m->stale = false;
	ipam_learn_routed(m);
	tell_pools(m);
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
	char name[2 * NAME_TEXT];
	const struct record_entry *e;

	snprintf(name, sizeof(name), "%s/%s", network, pool);
	e = entry_of(m, KEY_EXTENT, name);
	*ret_created = e ? e->created : 0;
	return e ? e->value : NULL;
}

/* --- events --------------------------------------------------------------------------------- */

static void followed(struct ipam *m, const struct record_event *e, enum input which)
{
	int64_t seen = records_seen(m->wants[which]);

	if (e->news == RECORD_PUT && seen > m->newest)
		m->newest = seen;
	pass_mark(m->pass);
}

static void on_host(const struct record_event *e, void *arg)
{
	struct ipam *m = arg;

	followed(m, e, INPUT_HOST);
	if (e->news == RECORD_PUT) {
		ipam_host_put(m, e->parsed, e->kv);
	} else if (e->news == RECORD_GONE) {
		ipam_host_deleted(m, e->parsed, e->key, e->revision);
	} else if (e->news == RECORD_LISTED) {
		behind_in_sync(m->behind, true);
		m->host_listed = true;
		for (size_t i = 0; i < m->owned.n; i++)
			m->owned.v[i]->verify = true;
	}
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

static void on_recovery(const struct record_event *e, void *arg)
{
	struct ipam *m = arg;

	followed(m, e, INPUT_RECOVERY);
	if (e->news == RECORD_PUT)
		ipam_recovery_put(m, e->kv);
	else if (e->news == RECORD_GONE)
		ipam_recovery_deleted(m);
	else if (e->news == RECORD_LISTED)
		compare_saved(m, e->revision);
}

static void on_node(const struct record_event *e, void *arg)
{
	struct ipam *m = arg;

	followed(m, e, INPUT_NODES);
	if (e->news == RECORD_PUT)
		ipam_node_put(m, e->parsed->node, e->entry);
	else if (e->news == RECORD_GONE)
		ipam_node_deleted(m, e->parsed->node);
}

/* Config, pools, extents, labels. */
static void configured(struct ipam *m, const struct record_event *e, enum input which)
{
	followed(m, e, which);
	if (e->news == RECORD_PUT || e->news == RECORD_GONE)
		m->stale = m->unsaved = true;
}

static void on_config(const struct record_event *e, void *arg)
{
	configured(arg, e, INPUT_CONFIG);
}

static void on_pool(const struct record_event *e, void *arg)
{
	configured(arg, e, INPUT_POOLS);
}

static void on_extent(const struct record_event *e, void *arg)
{
	configured(arg, e, INPUT_EXTENTS);
}

static void on_spec(const struct record_event *e, void *arg)
{
	configured(arg, e, INPUT_SPEC);
}

int ipam_inputs_start(struct ipam *m)
{
	char host[KEY_TEXT], spec[KEY_TEXT];
	const struct {
		enum input which;
		const char *keys;
		record_fn *fn;
	} wanted[] = {
		/* The recovery first: what follows is judged by it. */
		{ INPUT_RECOVERY, "recovery", on_recovery },
		{ INPUT_NODES, KEYS_NODE, on_node },
		{ INPUT_CONFIG, "config", on_config },
		{ INPUT_POOLS, KEYS_POOL, on_pool },
		{ INPUT_EXTENTS, KEYS_EXTENT, on_extent },
		{ INPUT_SPEC, spec, on_spec },
		{ INPUT_HOST, host, on_host },
	};
	int r = keys_of_host(host, m->o.node);

	r = r ?: key_spec(spec, m->o.node);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(wanted); i++)
		r = records_want(m->o.records, wanted[i].keys, wanted[i].fn, m,
				 &m->wants[wanted[i].which]);
	return r;
}

void ipam_inputs_done(struct ipam *m)
{
	for (size_t i = 0; i < INPUTS; i++)
		records_unwant(m->wants[i]);
}

void ipam_inputs_free(struct ipam *m)
{
	inputs_free(&m->inputs);
}

/* --- the file ------------------------------------------------------------------------------- */

int ipam_records_save(struct ipam *m)
{
	static const enum key_kind kinds[] = { KEY_CONFIG, KEY_EXTENT, KEY_POOL, KEY_SPEC };
	AUTO(free) char *text = NULL;
	struct store_stats stats = { 0 };
	struct tree t = tree_new();
	int r;

	store_stats(m->o.store, &stats);
	tree_open(&t, "records", '{');
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < records_count(m->o.records, kinds[k]); i++) {
			const struct record_entry *e = records_at(m->o.records, kinds[k], i);
			char key[KEY_TEXT];

			records_key(kinds[k], e->name, key);
			if (e->text && counts(kinds[k], e))
				tree_text(&t, key, e->text);
		}
	tree_close(&t);
	/* What was proven, and when: a restart must not begin to count again. */
	tree_text(&t, "boot", m->o.boot);
	tree_number(&t, "proved", m->authority.proved);
	tree_number(&t, "promise", m->authority.promise);
	tree_number(&t, "revision", stats.revision);
	tree_number(&t, "cluster", (int64_t)stats.cluster_id);
	tree_number(&t, "recovery", ipam_recovery_number(m));
	r = tree_end_text(&t, &text);
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
		r = records_put(m->o.records, key, json_object_get_string(value),
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
