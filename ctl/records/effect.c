/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/effect.h"

#include <errno.h>
#include <string.h>

#include "agent/bird/bird_tree.h"
#include "agent/bird/desired_bird.h"
#include "lib/json/json.h"
#include "lib/model/lease_holder.h"

/* Two plans of BIRD for each node, and each has a session for each other node. */
#define SESSIONS_MAX 500000

/* --- the records of one state, decoded ------------------------------------------------------ */

/* Records of one kind: those that are valid. */
struct set {
	char *v;
	size_t n, size;
	const struct record *type;
};

static void set_done(struct set *set)
{
	for (size_t i = 0; i < set->n; i++)
		record_done(set->type, set->v + i * set->size);
	free(set->v);
}

static int set_take(struct set *set, enum key_kind kind, const struct ctl_kvs *kvs,
		    const struct change *changes, size_t n)
{
	struct change_walk walk = { kvs, changes, n, 0, 0, kind };
	const char *key, *value;

	set->type = record_of(kind);
	set->size = set->type->size;
	set->v = calloc(kvs->n + n + 1, set->size);
	if (!set->v)
		return -ENOMEM;
	while ((key = change_next(&walk, &value))) {
		int r = record_decode(set->type, key, value, strlen(value),
				      set->v + set->n * set->size, NULL);

		if (r == -ENOMEM)
			return r;
		set->n += r == 0;
	}
	return 0;
}

#define SET_EACH(set, type, x)                                                                     \
	for (const struct type *x = (const struct type *)(const void *)(set)->v;                   \
	     x < (const struct type *)(const void *)(set)->v + (set)->n; x++)

/* As it is, or as it will be. */
struct state {
	struct set config, pools, extents, peers, filters, nodes, specs, routes;
	struct cluster_config defaults;
	struct bird_input in; /* what all nodes share */
	struct bird_node *bird_nodes;
	struct bird_extent *bird_extents;
	const struct peer **peer_list;
	const struct filter **filter_list;
	struct bird_password *passwords;
};

static void state_done(struct state *s)
{
	free(s->bird_nodes);
	free(s->bird_extents);
	free(s->peer_list);
	free(s->filter_list);
	free(s->passwords);
	set_done(&s->config);
	set_done(&s->pools);
	set_done(&s->extents);
	set_done(&s->peers);
	set_done(&s->filters);
	set_done(&s->nodes);
	set_done(&s->specs);
	set_done(&s->routes);
	cluster_config_done(&s->defaults);
}

static const struct pool *find_pool(const struct state *s, const char *name)
{
	SET_EACH(&s->pools, pool, p)
	if (strcmp(p->name, name) == 0)
		return p;
	return NULL;
}

static const struct node_spec *find_spec(const struct state *s, const char *node)
{
	SET_EACH(&s->specs, node_spec, p)
	if (strcmp(p->node, node) == 0)
		return p;
	return NULL;
}

static const struct peer *find_peer(const struct state *s, const char *name)
{
	SET_EACH(&s->peers, peer, p)
	if (strcmp(p->name, name) == 0)
		return p;
	return NULL;
}

static const struct static_route *find_route(const struct state *s, const char *name)
{
	SET_EACH(&s->routes, static_route, p)
	if (strcmp(p->name, name) == 0)
		return p;
	return NULL;
}

/* Its sessions with others end, as soon as the controller has freed it. */
static bool is_leaving(const struct change *changes, size_t n, const char *node)
{
	for (size_t i = 0; i < n; i++)
		if (changes[i].kind && changes[i].kind->key == KEY_REMOVED && changes[i].value &&
		    strcmp(changes[i].key + strlen(KEYS_REMOVED), node) == 0)
			return true;
	return false;
}

/* No file is read: another path counts as another password. */
static void add_password(struct state *s, const char *path)
{
	size_t len = strlen(path);

	/* The end of a path tells more, and BIRD's passwords are short. */
	if (len)
		s->passwords[s->in.n_passwords++] = (struct bird_password){
			.path = path,
			.text = len > 60 ? path + len - 60 : path,
		};
}

static int fill_passwords(struct state *s)
{
	s->passwords = calloc(s->peers.n + 2, sizeof(*s->passwords));
	if (!s->passwords)
		return -ENOMEM;
	SET_EACH(&s->peers, peer, p)
	add_password(s, p->password_file);
	add_password(s, s->in.config->ospf.password_file);
	add_password(s, s->in.config->rip.password_file);
	s->in.passwords = s->passwords;
	return 0;
}

static int fill_input(struct state *s, const struct change *changes, size_t n)
{
	size_t i = 0;

	s->bird_nodes = calloc(s->nodes.n + 1, sizeof(*s->bird_nodes));
	s->bird_extents = calloc(s->extents.n + 1, sizeof(*s->bird_extents));
	s->peer_list = calloc(s->peers.n + 1, sizeof(*s->peer_list));
	s->filter_list = calloc(s->filters.n + 1, sizeof(*s->filter_list));
	if (!s->bird_nodes || !s->bird_extents || !s->peer_list || !s->filter_list ||
	    cluster_config_decode("config", "{}", 2, &s->defaults, NULL) < 0)
		return -ENOMEM;
	s->in.config = s->config.n ? (const struct cluster_config *)(const void *)s->config.v
				   : &s->defaults;
	SET_EACH(&s->nodes, node, p)
	if (!is_leaving(changes, n, p->name))
		s->bird_nodes[i++] = (struct bird_node){ p, find_spec(s, p->name) };
	s->in.nodes = s->bird_nodes;
	s->in.n_nodes = i;
	i = 0;
	SET_EACH(&s->extents, extent, p)
	s->bird_extents[i++] = (struct bird_extent){ .extent = p, .pool = find_pool(s, p->pool) };
	s->in.extents = s->bird_extents;
	s->in.n_extents = i;
	i = 0;
	SET_EACH(&s->peers, peer, p)
	s->peer_list[i++] = p;
	s->in.peers = s->peer_list;
	s->in.n_peers = i;
	i = 0;
	SET_EACH(&s->filters, filter, p)
	s->filter_list[i++] = p;
	s->in.filters = s->filter_list;
	s->in.n_filters = i;
	return fill_passwords(s);
}

static int state_make(struct state *s, const struct cluster *c, const struct change *changes,
		      size_t n)
{
	const struct world *w = c->world;
	int r = set_take(&s->config, KEY_CONFIG, &c->config, changes, n);

	r = r ?: set_take(&s->pools, KEY_POOL, &w->pools, changes, n);
	r = r ?: set_take(&s->extents, KEY_EXTENT, &w->extents, changes, n);
	r = r ?: set_take(&s->peers, KEY_PEER, &w->peers, changes, n);
	r = r ?: set_take(&s->filters, KEY_FILTER, &w->filters, changes, n);
	r = r ?: set_take(&s->nodes, KEY_NODE, &c->nodes, changes, n);
	r = r ?: set_take(&s->specs, KEY_SPEC, &c->specs, changes, n);
	r = r ?: set_take(&s->routes, KEY_STATIC_ROUTE, &c->routes, changes, n);
	return r ?: fill_input(s, changes, n);
}

/* --- effects, gathered ---------------------------------------------------------------------- */

struct gather {
	const struct change *changes;
	size_t n;
	const struct cluster *cluster;
	struct state before, after;
	struct effects effects;
	const char *node; /* that is looked at */
	struct labels labels_before, labels_after;
	bool failed;
};

static void gather_done(struct gather *g)
{
	state_done(&g->before);
	state_done(&g->after);
	effects_done(&g->effects);
}

static struct effect *add(struct gather *g, enum effect_kind kind, const char *what)
{
	struct effect *e = NULL;
	size_t i;

	for (i = 0; i < g->effects.all.n; i++) {
		e = &g->effects.all.v[i];
		if (e->kind > kind || (e->kind == kind && strcmp(e->what, what) == 0))
			break;
	}
	if (i == g->effects.all.n || e->kind != kind) {
		e = array_insert(&g->effects.all, i);
		if (!e)
			goto failed;
		e->kind = kind;
		snprintf(e->what, sizeof(e->what), "%s", what);
	}
	e->count++;
	if (e->nodes.n == 0 || strcmp(e->nodes.v[e->nodes.n - 1], g->node) != 0) {
		if (array_make_room(&e->nodes.v, e->nodes.n, &e->room, sizeof(*e->nodes.v), 1) < 0)
			goto failed;
		e->nodes.v[e->nodes.n++] = g->node;
	}
	return e;
failed:
	g->failed = true;
	return NULL;
}

/* --- BGP ------------------------------------------------------------------------------------ */

/* "peer/tor" passes other routes than before, though its session stays. */
static bool filters_differ(const struct gather *g, const char *record)
{
	const struct peer *a, *b;

	if (strncmp(record, KEYS_PEER, strlen(KEYS_PEER)) != 0)
		return false;
	a = find_peer(&g->before, record + strlen(KEYS_PEER));
	b = find_peer(&g->after, record + strlen(KEYS_PEER));
	if (!a || !b)
		return false;
	if (strcmp(a->import_filter, b->import_filter) != 0 ||
	    strcmp(a->export_filter, b->export_filter) != 0)
		return true;
	for (size_t i = 0; i < g->n; i++) {
		const char *key = g->changes[i].key;

		if (strncmp(key, KEYS_FILTER, strlen(KEYS_FILTER)) == 0 &&
		    (strcmp(key + strlen(KEYS_FILTER), b->import_filter) == 0 ||
		     strcmp(key + strlen(KEYS_FILTER), b->export_filter) == 0))
			return true;
	}
	return false;
}

/* What the node's agent reports as in use in the pools of these blocks. */
static uint64_t used_on(const struct gather *g, const struct bird_input *in)
{
	AUTO(json_put) struct json_object *status = NULL;
	struct json_object *pools = NULL;
	const struct ctl_kv *kv;
	char key[KEY_TEXT];
	uint64_t used = 0;

	if (key_status_node(key, g->node) < 0)
		return 0;
	kv = ctl_find(&g->cluster->status, key);
	if (!kv || json_parse(kv->value, kv->value_len, &status, NULL) < 0 ||
	    !json_object_object_get_ex(status, "pools", &pools) ||
	    !json_object_is_type(pools, json_type_object))
		return 0;
	for (size_t i = 0; i < in->n_extents; i++) {
		const struct bird_extent *now = &g->before.bird_extents[i];
		struct json_object *pool, *n;
		bool silent = g->after.in.config->protocol == PROTOCOL_NONE;

		for (size_t j = 0; j < g->after.in.n_extents; j++)
			if (g->after.bird_extents[j].extent &&
			    strcmp(g->after.bird_extents[j].extent->pool, now->extent->pool) == 0)
				silent = silent ||
					 (bird_extent_announced(now) &&
					  !bird_extent_announced(&g->after.bird_extents[j]));
		if (silent && json_object_object_get_ex(pools, now->extent->pool, &pool) &&
		    json_object_object_get_ex(pool, "used", &n))
			used += (uint64_t)json_object_get_int64(n);
	}
	return used;
}

static void add_flaps(struct gather *g, const struct bird_plan *before,
		      const struct bird_plan *after)
{
	static const enum effect_kind kind_of[] = {
		[BIRD_RESTARTS] = EFFECT_RESTARTS,
		[BIRD_REMOVED] = EFFECT_ENDS,
		[BIRD_WITHDRAWS] = EFFECT_WITHDRAWS,
	};
	AUTO_DONE(bird_flaps_done) struct bird_flaps flaps = { 0 };
	struct effect *withdrawn = NULL;

	if (bird_flaps(before, after, &flaps) < 0) {
		g->failed = true;
		return;
	}
	for (size_t i = 0; i < flaps.n; i++) {
		const struct bird_flap *f = &flaps.v[i];
		struct effect *e = add(g, kind_of[f->kind], f->kind == BIRD_RESTARTS ? f->why : "");

		withdrawn = f->kind == BIRD_WITHDRAWS ? e : withdrawn;
	}
	/* Blocks that nobody is told of any more, because no protocol runs. */
	if (g->before.in.config->protocol != PROTOCOL_NONE &&
	    g->after.in.config->protocol == PROTOCOL_NONE)
		for (size_t i = 0; i < after->n_announced; i++)
			withdrawn = add(g, EFFECT_WITHDRAWS, "");
	if (withdrawn)
		withdrawn->addresses += used_on(g, &g->before.in);
}

static void add_filters(struct gather *g, const struct bird_plan *before,
			const struct bird_plan *after)
{
	for (size_t i = 0; i < after->n_sessions; i++)
		for (size_t j = 0; j < before->n_sessions; j++)
			if (strcmp(after->sessions[i].name, before->sessions[j].name) == 0 &&
			    filters_differ(g, after->sessions[i].record))
				add(g, EFFECT_FILTERS, "");
}

static struct bird_input input_of(const struct state *s, const struct node *node,
				  const struct prefixes *blocks)
{
	struct bird_input in = s->in;

	in.self = node->name;
	in.ipv4 = node->ipv4;
	in.ipv6 = node->ipv6;
	in.router_id = node->ipv4.address;
	if (!in.router_id.family)
		address_parse("0.0.0.1", &in.router_id);
	in.spec = find_spec(s, node->name);
	in.blocks = blocks->v;
	in.n_blocks = blocks->n;
	return in;
}

static int blocks_of(const struct gather *g, struct prefixes *ret)
{
	const struct ctl_kvs *kvs = &g->cluster->blocks;

	ret->v = calloc(kvs->n + 1, sizeof(*ret->v));
	for (size_t i = 0; ret->v && i < kvs->n; i++) {
		AUTO_DONE(block_done) struct block block = { 0 };

		if (block_decode(KV_ARGS(&kvs->v[i]), &block, NULL) == 0 &&
		    strcmp(block.node, g->node) == 0)
			ret->v[ret->n++] = block.block;
	}
	return ret->v ? 0 : -ENOMEM;
}

static void look_at_bird(struct gather *g, const struct node *node)
{
	AUTO_DONE(bird_plan_done) struct bird_plan before = { 0 };
	AUTO_DONE(bird_plan_done) struct bird_plan after = { 0 };
	struct prefixes blocks = { 0 };
	struct bird_input a, b;

	if (blocks_of(g, &blocks) < 0) {
		g->failed = true;
		return;
	}
	a = input_of(&g->before, node, &blocks);
	b = input_of(&g->after, node, &blocks);
	if (desired_bird(&a, &before) < 0 || desired_bird(&b, &after) < 0)
		g->failed = true;
	else {
		add_flaps(g, &before, &after);
		add_filters(g, &before, &after);
	}
	free(blocks.v);
}

/* --- OSPF, RIP, overlay --------------------------------------------------------------------- */

static bool igp_differs(const struct cluster_config *a, const struct cluster_config *b)
{
	const struct cluster_config x = { .protocol = a->protocol, .ospf = a->ospf, .rip = a->rip },
				    y = { .protocol = b->protocol, .ospf = b->ospf, .rip = b->rip };

	return !cluster_config_equal(&x, &y);
}

static bool is_tunnelled(const struct state *s)
{
	SET_EACH(&s->pools, pool, p)
	if (p->encapsulation != ENCAPSULATION_NONE)
		return true;
	return false;
}

static void look_at_config(struct gather *g)
{
	const struct cluster_config *a = g->before.in.config, *b = g->after.in.config;
	const struct config_vxlan *x = &a->vxlan, *y = &b->vxlan;

	if ((a->protocol == PROTOCOL_OSPF || a->protocol == PROTOCOL_RIP) && igp_differs(a, b))
		add(g, EFFECT_RESTARTS,
		    a->protocol == PROTOCOL_OSPF ? "the settings of OSPF change"
						 : "the settings of RIP change");
	if (is_tunnelled(&g->before) &&
	    (x->vni != y->vni || x->port != y->port || x->mtu_overhead != y->mtu_overhead ||
	     x->checksum_offload != y->checksum_offload))
		add(g, EFFECT_TUNNELS, "");
}

/* --- static routes -------------------------------------------------------------------------- */

static bool route_is_on(const struct static_route *route, const struct labels *labels,
			const char *node)
{
	return route && !route->deleting[0] &&
	       selector_selects(route->node_selector.parsed, labels, node);
}

static void look_at_routes(struct gather *g)
{
	SET_EACH(&g->before.routes, static_route, a)
	{
		const struct static_route *b = find_route(&g->after, a->name);

		if (!route_is_on(a, &g->labels_before, g->node))
			continue;
		if (!route_is_on(b, &g->labels_after, g->node) ||
		    prefix_compare(&a->subnet, &b->subnet) != 0 || a->table != b->table)
			add(g, EFFECT_ROUTES, a->name);
	}
}

/* --- new pods ------------------------------------------------------------------------------- */

static bool prefers(const struct pool *pool, const char *namespace)
{
	for (size_t i = 0; i < pool->namespaces.n; i++)
		if (strcmp(pool->namespaces.v[i], namespace) == 0)
			return true;
	return false;
}

/* The pool that is tried first; namespace "": that of a pod that no pool prefers. */
static const struct pool *first_pool(const struct state *s, const struct labels *labels,
				     const char *node, const char *namespace, sa_family_t family)
{
	const struct pool *best = NULL;

	for (int preferred = 1; preferred >= 0 && !best; preferred--)
		SET_EACH(&s->pools, pool, p)
		{
			if (p->disabled || p->cidr.address.family != family || p->origin[0] ||
			    strcmp(p->network, "default") != 0 ||
			    (preferred ? !prefers(p, namespace) : p->namespaces.n > 0) ||
			    !selector_selects(p->node_selector.parsed, labels, node))
				continue;
			if (!best || pool_order(p, best) < 0)
				best = p;
		}
	return best;
}

static void look_at_namespace(struct gather *g, const char *namespace)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct pool *a = first_pool(&g->before, &g->labels_before, g->node, namespace,
						  families[i]),
				  *b = first_pool(&g->after, &g->labels_after, g->node, namespace,
						  families[i]);
		char what[192];

		if (!a || (b && strcmp(a->name, b->name) == 0))
			continue;
		snprintf(what, sizeof(what), "%s%s%s%s%.63s instead of pool %.63s",
			 namespace[0] ? "in namespace " : "", namespace, namespace[0] ? " " : "",
			 b ? "use pool " : "use no pool", b ? b->name : "", a->name);
		add(g, EFFECT_PODS, what);
	}
}

static void look_at_pods(struct gather *g)
{
	const struct state *states[] = { &g->before, &g->after };

	look_at_namespace(g, "");
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; j < ARRAY_SIZE(states); j++) {
			const struct pool *p = g->changes[i].kind &&
							       g->changes[i].kind->key == KEY_POOL
						       ? find_pool(states[j],
								   g->changes[i].key +
									   strlen(KEYS_POOL))
						       : NULL;

			/* Both states name the same namespaces, mostly: each once. */
			for (size_t k = 0; p && k < p->namespaces.n; k++) {
				const struct pool *was = j ? find_pool(states[0], p->name) : NULL;

				if (!was || !prefers(was, p->namespaces.v[k]))
					look_at_namespace(g, p->namespaces.v[k]);
			}
		}
}

/* --- all ------------------------------------------------------------------------------------ */

static struct labels labels_of(const struct state *s, const char *node)
{
	const struct node_spec *spec = find_spec(s, node);

	return spec ? (struct labels){ spec->labels.v, spec->labels.n } : (struct labels){ 0 };
}

static void look_at(struct gather *g, const struct node *node)
{
	g->node = node->name;
	g->labels_before = labels_of(&g->before, node->name);
	g->labels_after = labels_of(&g->after, node->name);
	look_at_bird(g, node);
	look_at_config(g);
	look_at_routes(g);
	look_at_pods(g);
}

/* A pool that is new takes nothing from what runs: that is said, and not asked. */
static bool only_new_pools(const struct gather *g)
{
	for (size_t i = 0; i < g->effects.all.n; i++)
		if (g->effects.all.v[i].kind != EFFECT_PODS)
			return false;
	for (size_t i = 0; i < g->n; i++)
		if (g->changes[i].kind->key != KEY_POOL || g->changes[i].mod_revision)
			return false;
	return true;
}

/* Names that outlive the states. */
static int keep_names(struct gather *g)
{
	for (size_t i = 0; i < g->effects.all.n; i++)
		for (size_t j = 0; j < g->effects.all.v[i].nodes.n; j++) {
			const char **name = &g->effects.all.v[i].nodes.v[j];
			char key[KEY_TEXT];
			const struct ctl_kv *kv = key_node(key, *name) < 0
							  ? NULL
							  : ctl_find(&g->cluster->nodes, key);

			if (!kv)
				return -ENOMEM;
			*name = kv->key + strlen(KEYS_NODE);
		}
	return 0;
}

int effects_of(const struct change *changes, size_t n, const struct cluster *cluster,
	       struct effects *ret)
{
	AUTO_DONE(gather_done)
	struct gather g = { .changes = changes, .n = n, .cluster = cluster };
	size_t most;
	int r = state_make(&g.before, cluster, NULL, 0);

	r = r ?: state_make(&g.after, cluster, changes, n);
	if (r < 0)
		return r;
	g.effects.nodes = g.before.nodes.n;
	most = SESSIONS_MAX / (g.before.nodes.n + 1) + 1;
	SET_EACH(&g.before.nodes, node, node)
	{
		if (g.effects.looked == most)
			break;
		g.effects.looked++;
		if (!node_is_lease(node) && !is_leaving(changes, n, node->name))
			look_at(&g, node);
	}
	if (g.failed || keep_names(&g) < 0)
		return -ENOMEM;
	g.effects.asks = g.effects.all.n && !only_new_pools(&g);
	*ret = g.effects;
	g.effects = (struct effects){ 0 };
	return 0;
}

void effects_done(struct effects *effects)
{
	for (size_t i = 0; i < effects->all.n; i++)
		free(effects->all.v[i].nodes.v);
	array_done(&effects->all);
}

/* --- text ----------------------------------------------------------------------------------- */

static void print_nodes(FILE *out, const struct texts *nodes)
{
	enum { MOST = 5 };

	fprintf(out, "%zu %s (", nodes->n, nodes->n == 1 ? "node" : "nodes");
	for (size_t i = 0; i < nodes->n && i < MOST; i++)
		fprintf(out, "%s%s", i ? ", " : "", nodes->v[i]);
	fprintf(out, "%s)", nodes->n > MOST ? ", ..." : "");
}

static void print_effect(FILE *out, const struct effect *e, bool asks)
{
	const char *s = e->count == 1 ? "" : "s";

	switch (e->kind) {
	case EFFECT_ENDS:
		fprintf(out, "ends %zu session%s on ", e->count, s);
		break;
	case EFFECT_RESTARTS:
		fprintf(out, "restarts %zu session%s on ", e->count, s);
		break;
	case EFFECT_FILTERS:
		fprintf(out, "filters the routes of %zu session%s again on ", e->count, s);
		break;
	case EFFECT_WITHDRAWS:
		fprintf(out, "withdraws %zu block%s with %llu addresses in use from ", e->count, s,
			(unsigned long long)e->addresses);
		break;
	case EFFECT_ROUTES:
		fprintf(out, "removes static route %s from ", e->what);
		break;
	case EFFECT_TUNNELS:
		fprintf(out, "rebuilds the tunnel on ");
		break;
	case EFFECT_PODS:
		fprintf(out, "new pods %s on ", e->what);
		break;
	}
	print_nodes(out, &e->nodes);
	if (e->kind == EFFECT_RESTARTS)
		fprintf(out, ": %s", e->what);
	if (e->kind == EFFECT_PODS && !asks)
		fprintf(out, "; set priority to choose the order of pools");
	fputc('\n', out);
}

char *effects_text(const struct effects *effects)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (size_t i = 0; i < effects->all.n; i++)
		print_effect(out, &effects->all.v[i], effects->asks);
	if (effects->all.n && effects->looked < effects->nodes)
		fprintf(out, "only the first %zu of %zu nodes were compared\n", effects->looked,
			effects->nodes);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
