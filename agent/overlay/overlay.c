/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/overlay/overlay.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/kernel_view.h"
#include "agent/overlay/overlay_pools.h"
#include "lib/base/files.h"
#include "lib/base/pass.h"
#include "lib/json/tree.h"
#include "lib/model/vtep.h"

#define FILE_NAME "overlay"
#define FILE_MAX  (1024UL * 1024UL)
/* A node that joins has its block a moment before its tunnel: that is no trouble yet. */
#define GRACE_MS 10000
/* So many are named, the rest is counted. */
#define TOLD 10

struct overlay {
	struct overlay_options o;
	struct identity self;
	struct registration *registration;
	struct record_want *base[3];        /* config, pool/, extent/ */
	struct record_want *nodes, *blocks; /* while a pool has an encapsulation; or NULL */
	struct pass *pass;
	struct timer grace;
	int dir;
	struct overlay_pools pools;
	struct overlay_plan plan; /* its texts lie in the records: good while not stale */
	bool stale;               /* something has changed since the plan was made */
	bool known;               /* once: config and pools have been read */
};

/* --- the file ------------------------------------------------------------------------------- */

static void load(struct overlay *o)
{
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	size_t len;
	int r = file_read(o->dir, FILE_NAME, FILE_MAX, &text, &len);

	if (r == 0)
		r = overlay_pools_decode(text, len, &o->pools, &err);
	if (r < 0 && r != -ENOENT)
		log_warning("overlay", "%s/" FILE_NAME " is not used: %s", o->o.run_dir,
			    err.text[0] ? err.text : strerror(-r));
}

/* Without it a restart would forget pools whose records are gone by then. */
static void save(const struct overlay *o)
{
	AUTO(free) char *text = NULL;
	int r = overlay_pools_encode(&o->pools, &text);

	r = r ?: file_publish(o->dir, FILE_NAME, 0600, text, strlen(text));
	if (r < 0)
		log_warning("overlay", "%s/" FILE_NAME " cannot be written: %s", o->o.run_dir,
			    strerror(-r));
}

/* --- what it is made from ------------------------------------------------------------------- */

static void tell_unrouted(const struct overlay *o)
{
	for (size_t i = 0; i < records_count(o->o.records, KEY_POOL); i++) {
		const struct pool *p = records_at(o->o.records, KEY_POOL, i)->value;
		char part[HEALTH_PART];

		if (!p || p->routed || p->encapsulation == ENCAPSULATION_NONE)
			continue;
		snprintf(part, sizeof(part), "overlay-pool/%s", p->name);
		health_set(o->o.health, part, LOG_LEVEL_WARNING,
			   "pool %s has an encapsulation but is not routed, so it is not in the "
			   "overlay: `roostctl pool edit %s routed=true`, or encapsulation=none",
			   p->name, p->name);
	}
	health_sweep(o->o.health, "overlay-pool/");
}

static int learn_pools(struct overlay *o)
{
	struct overlay_pools former = o->pools;
	int r;

	former.v = calloc(former.n ?: 1, sizeof(*former.v));
	if (!former.v)
		return -ENOMEM;
	if (former.n)
		memcpy(former.v, o->pools.v, former.n * sizeof(*former.v));
	r = overlay_pools_learn(&o->pools, o->o.records);
	if (r == 0 && !overlay_pools_equal(&former, &o->pools))
		save(o);
	overlay_pools_done(&former);
	tell_unrouted(o);
	return r;
}

static void on_record(const struct record_event *e, void *arg)
{
	if (e->changed)
		overlay_mark(arg);
}

/* If the key of a block that we use was deleted, it is claimed again at once. */
static void on_block(const struct record_event *e, void *arg)
{
	const struct block_place *place = e->entry ? e->entry->value : NULL;
	struct overlay *o = arg;

	if (e->news == RECORD_GONE && place && strcmp(place->node, o->self.name) == 0)
		ipam_look_at_blocks(o->o.ipam);
	on_record(e, arg);
}

/* While there is a pool of the overlay, and not longer: every claim of a block is news for all. */
static int want_records(struct overlay *o)
{
	int r;

	if (o->pools.n && !o->blocks) {
		r = records_want(o->o.records, KEYS_NODE, on_record, o, &o->nodes);
		r = r ?: records_want(o->o.records, KEYS_BLOCK, on_block, o, &o->blocks);
		if (r == 0)
			log_info("overlay", "a pool has an encapsulation: this node has a tunnel");
		return r;
	}
	if (!o->pools.n && o->blocks) {
		records_unwant(TAKE(o->nodes));
		records_unwant(TAKE(o->blocks));
		log_info("overlay", "no pool has an encapsulation any more");
	}
	return 0;
}

static void want_addresses(struct overlay *o)
{
	bool wanted[OVERLAY_FAMILIES] = { 0 };

	for (size_t i = 0; i < o->pools.n; i++)
		wanted[o->pools.v[i].family == AF_INET6] = true;
	ipam_want_tunnel(o->o.ipam, wanted);
}

/* --- what follows --------------------------------------------------------------------------- */

static const struct config_vxlan *config_of(const struct overlay *o)
{
	static const struct config_vxlan usual = { .vni = 4096,
						   .port = 4789,
						   .checksum_offload = true };
	const struct cluster_config *c = records_find(o->o.records, KEY_CONFIG, "");

	return c ? &c->vxlan : &usual;
}

static void gather_self(struct overlay *o, struct overlay_input *in)
{
	in->self = o->self.name;
	in->address[OVERLAY_IPV4] = o->self.ipv4.address;
	in->address[OVERLAY_IPV6] = o->self.ipv6.address;
	in->config = config_of(o);
	for (int i = 0; i < OVERLAY_FAMILIES; i++) {
		in->tunnel[i] = ipam_tunnel(o->o.ipam, i).address;
		if (in->address[i].family)
			in->uplink_mtu[i] = kernel_uplink_mtu(o->o.kernel, &in->address[i]);
	}
}

static bool all_listed(const struct overlay *o)
{
	return records_listed(o->nodes) && records_listed(o->blocks);
}

static int make_plan(struct overlay *o)
{
	struct overlay_input in = { .pools = o->pools.v, .n_pools = o->pools.n };
	AUTO(free) const void **nodes = NULL, **blocks = NULL;
	struct overlay_plan plan;
	int r = 0;

	/* None while they are being listed for the first time: each page would be a plan of its
	 * own. */
	if (all_listed(o))
		r = records_list(o->o.records, KEY_NODE, &nodes, &in.n_nodes)
			    ?: records_list(o->o.records, KEY_BLOCK, &blocks, &in.n_blocks);
	if (r < 0)
		return r;
	gather_self(o, &in);
	in.nodes = (const struct node *const *)nodes;
	in.blocks = (const struct block_place *const *)blocks;
	r = desired_overlay(&in, &plan);
	if (r < 0)
		return r;
	overlay_plan_done(&o->plan);
	o->plan = plan;
	o->stale = false;
	return 0;
}

/* Once the addresses are there or known not to come: each write is news for every node. */
static void tell_vtep(struct overlay *o)
{
	struct node_vtep vtep = { 0 };
	struct ipam_tunnel t[OVERLAY_FAMILIES];

	for (int i = 0; i < OVERLAY_FAMILIES; i++) {
		t[i] = ipam_tunnel(o->o.ipam, i);
		if (t[i].state == IPAM_TUNNEL_PENDING)
			return;
	}
	if (o->pools.n)
		vtep = (struct node_vtep){ vtep_mac(o->self.name), t[OVERLAY_IPV4].address,
					   t[OVERLAY_IPV6].address };
	if (o->registration && register_set_vtep(o->registration, &vtep) < 0)
		log_error("overlay", "out of memory: the node's record lacks its tunnel");
}

/* Makes the plan again; 0 or -errno. */
static int refresh(struct overlay *o)
{
	int r = 0;

	if (!o->self.name[0] || !ipam_inputs_known(o->o.ipam))
		return 0;
	o->known = true;
	r = learn_pools(o);
	r = r ?: want_records(o);
	if (r == 0)
		want_addresses(o);
	return r ?: make_plan(o);
}

/* --- trouble -------------------------------------------------------------------------------- */

static void tell_troubled(struct overlay *o)
{
	size_t n = o->plan.n_troubled;

	for (size_t i = 0; i < n && i < TOLD; i++) {
		const struct overlay_troubled *t = &o->plan.troubled[i];
		char part[HEALTH_PART];

		snprintf(part, sizeof(part), "overlay/%s", t->node);
		health_set(o->o.health, part, LOG_LEVEL_WARNING,
			   "node %s %s; its pods cannot be reached from here", t->node,
			   overlay_trouble_text(t->trouble));
	}
	if (n > TOLD)
		health_set(o->o.health, "overlay/others", LOG_LEVEL_WARNING,
			   "%zu more nodes cannot be reached: `roostctl overlay` lists them",
			   n - TOLD);
	health_sweep(o->o.health, "overlay/");
}

static void on_grace(void *arg)
{
	struct overlay *o = arg;

	if (o->stale)
		refresh(o);
	tell_troubled(o);
	if (o->plan.n_troubled)
		timer_set(o->o.timers, &o->grace, GRACE_MS, GRACE_MS / 4);
}

static void see_to_trouble(struct overlay *o)
{
	if (!o->plan.n_troubled)
		tell_troubled(o);
	else if (!o->grace.set)
		timer_set(o->o.timers, &o->grace, GRACE_MS, GRACE_MS / 4);
}

/* --- the pass ------------------------------------------------------------------------------- */

static int work(void *arg)
{
	struct overlay *o = arg;
	int r = refresh(o);

	if (r < 0) {
		log_error("overlay", "%s; it is tried again", strerror(-r));
		return r;
	}
	if (!o->known)
		return 0;
	tell_vtep(o);
	see_to_trouble(o);
	o->o.changed(o->o.arg);
	return 0;
}

/* --- from outside --------------------------------------------------------------------------- */

void overlay_set_self(struct overlay *o, const struct identity *self,
		      struct registration *registration)
{
	o->self = *self;
	o->registration = registration;
	overlay_mark(o);
}

void overlay_mark(struct overlay *o)
{
	o->stale = true;
	pass_mark(o->pass);
}

bool overlay_pool_is_silent(const struct overlay *o, const char *pool)
{
	for (size_t i = 0; i < o->pools.n; i++)
		if (strcmp(o->pools.v[i].name, pool) == 0)
			return !o->pools.v[i].announce;
	return false;
}

bool overlay_in_sync(const struct overlay *o)
{
	return o->known && !o->stale && (!o->blocks || all_listed(o));
}

static void *copy_of(const void *v, size_t n, size_t size)
{
	void *copy = calloc(n ?: 1, size);

	if (copy && n)
		memcpy(copy, v, n * size);
	return copy;
}

static uint32_t tunnel_mtu(const struct overlay *o, const struct kernel_tunnel *t)
{
	return overlay_mtu(config_of(o), kernel_uplink_mtu(o->o.kernel, &t->local),
			   t->local.family);
}

int overlay_desire(struct overlay *o, struct kernel_wants *ret)
{
	const struct overlay_plan *p = &o->plan;

	ret->tunnels = copy_of(p->tunnels, p->n_tunnels, sizeof(*p->tunnels));
	ret->remotes = copy_of(p->remotes, p->n_remotes, sizeof(*p->remotes));
	ret->remote_blocks = copy_of(p->blocks, p->n_blocks, sizeof(*p->blocks));
	if (!ret->tunnels || !ret->remotes || !ret->remote_blocks)
		return -ENOMEM;
	ret->n_tunnels = p->n_tunnels;
	ret->n_remotes = p->n_remotes;
	ret->n_remote_blocks = p->n_blocks;
	/* The kernel's own news: followed without a plan. */
	for (size_t i = 0; i < p->n_tunnels; i++)
		ret->tunnels[i].mtu = tunnel_mtu(o, &p->tunnels[i]);
	return 0;
}

int overlay_nodes(const struct overlay *o, struct prefixes *ret)
{
	AUTO(free) const void **nodes = NULL;
	size_t n = 0;
	int r;

	if (!o->nodes || !all_listed(o))
		return 0;
	r = records_list(o->o.records, KEY_NODE, &nodes, &n);
	ret->v = r < 0 ? NULL : calloc(2 * n + 1, sizeof(*ret->v));
	if (!ret->v)
		return r ?: -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct node *node = nodes[i];

		if (node->ipv4.address.family)
			ret->v[ret->n++] = prefix_of(&node->ipv4.address, 32);
		if (node->ipv6.address.family)
			ret->v[ret->n++] = prefix_of(&node->ipv6.address, 128);
	}
	return 1;
}

uint16_t overlay_port(const struct overlay *o)
{
	return (uint16_t)config_of(o)->port;
}

uint32_t overlay_pod_mtu(const struct overlay *o)
{
	uint32_t least = 0;

	for (size_t i = 0; i < o->plan.n_tunnels; i++) {
		uint32_t mtu = tunnel_mtu(o, &o->plan.tunnels[i]);

		if (!least || mtu < least)
			least = mtu;
	}
	return least;
}

/* --- what is shown --------------------------------------------------------------------------- */

/* Names lie in the records: only a plan that was made since they last changed can be shown. */
static void make_fresh(struct overlay *o)
{
	if (o->stale && refresh(o) < 0)
		overlay_plan_done(&o->plan);
}

static void count_ways(const struct overlay *o, const struct kernel *kernel,
		       uint64_t ret[KERNEL_WAYS])
{
	memset(ret, 0, KERNEL_WAYS * sizeof(*ret));
	for (size_t i = 0; i < o->plan.n_blocks; i++)
		ret[kernel_way(kernel, &o->plan.blocks[i].block)]++;
}

void overlay_readiness(const struct overlay *o, struct readiness *ret)
{
	if (o->nodes)
		readiness_add(ret, "overlay", false,
			      overlay_in_sync(o) ? ""
						 : "others' nodes and blocks are still being read");
}

void overlay_status(struct overlay *o, const struct kernel *kernel, struct status_overlay *ret)
{
	const struct overlay_plan *p = &o->plan;

	make_fresh(o);
	*ret = (struct status_overlay){
		.wanted = p->n_tunnels,
		.remotes = p->n_remotes,
		.unreachable = p->n_troubled,
	};
	if (!p->n_tunnels)
		return;
	ret->vni = p->tunnels[0].vni;
	ret->port = p->tunnels[0].port;
	ret->mtu = overlay_pod_mtu(o);
	ret->n_addresses = p->tunnels[0].n_addresses;
	memcpy(ret->addresses, p->tunnels[0].addresses, sizeof(ret->addresses));
	count_ways(o, kernel, ret->blocks);
}

void overlay_metrics(struct overlay *o, const struct kernel *kernel, struct metrics *m)
{
	uint64_t ways[KERNEL_WAYS];

	make_fresh(o);
	count_ways(o, kernel, ways);
	metrics_family(m, "roost_overlay_remotes", METRIC_GAUGE,
		       "Other nodes that are reached through the overlay.");
	metrics_count(m, NULL, o->plan.n_remotes);
	metrics_family(m, "roost_overlay_unreachable", METRIC_GAUGE,
		       "Other nodes with blocks of the overlay that cannot be reached.");
	metrics_count(m, NULL, o->plan.n_troubled);
	metrics_family(m, "roost_overlay_blocks", METRIC_GAUGE,
		       "Other nodes' blocks, by how the kernel reaches them.");
	for (int i = 0; i < KERNEL_WAYS; i++)
		metrics_count(m, LABELS({ "way", kernel_way_name(i) }), ways[i]);
}

/* --- the list ------------------------------------------------------------------------------- */

static void add_mac(struct tree *t, const struct mac *mac)
{
	const uint8_t *b = mac->bytes;

	tree_printf(t, "mac", "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
}

static void add_addresses(struct tree *t, const char *name, const struct address *v, size_t n)
{
	tree_open(t, name, '[');
	for (size_t i = 0; i < n; i++)
		tree_address(t, NULL, &v[i]);
	tree_close(t);
}

static void add_tunnels(const struct overlay *o, struct tree *t)
{
	tree_open(t, "tunnels", '[');
	for (size_t i = 0; i < o->plan.n_tunnels; i++) {
		const struct kernel_tunnel *k = &o->plan.tunnels[i];

		tree_open(t, NULL, '{');
		tree_text(t, "device", k->local.family == AF_INET ? TUNNEL_DEVICE : TUNNEL_DEVICE6);
		tree_address(t, "local", &k->local);
		add_mac(t, &k->mac);
		add_addresses(t, "addresses", k->addresses, k->n_addresses);
		tree_number(t, "vni", k->vni);
		tree_number(t, "port", k->port);
		tree_number(t, "mtu", tunnel_mtu(o, k));
		tree_close(t);
	}
	tree_close(t);
}

/* Blocks lie in an order of their own: each goes to its remote's list. */
static void add_remotes(const struct overlay *o, const struct kernel *kernel, struct tree *t)
{
	struct json_object *remotes;

	tree_open(t, "remotes", '[');
	remotes = t->object;
	for (size_t i = 0; i < o->plan.n_remotes; i++) {
		const struct kernel_remote *r = &o->plan.remotes[i];

		tree_open(t, NULL, '{');
		tree_text(t, "node", o->plan.names[i]);
		tree_address(t, "underlay", &r->underlay);
		add_mac(t, &r->mac);
		add_addresses(t, "vtep", r->vtep, 2);
		tree_open(t, "blocks", '[');
		tree_close(t);
		tree_close(t);
	}
	tree_close(t);
	for (size_t i = 0; !t->failed && i < o->plan.n_blocks; i++) {
		const struct kernel_remote_block *b = &o->plan.blocks[i];
		struct json_object *remote = json_object_array_get_idx(remotes, b->remote);
		struct tree one = tree_new();

		tree_prefix(&one, "block", &b->block);
		tree_text(&one, "way", kernel_way_name(kernel_way(kernel, &b->block)));
		t->failed = tree_end_in(&one, json_object_object_get(remote, "blocks")) < 0;
	}
}

static void add_unreachable(const struct overlay *o, struct tree *t)
{
	tree_open(t, "unreachable", '[');
	for (size_t i = 0; i < o->plan.n_troubled; i++) {
		tree_open(t, NULL, '{');
		tree_text(t, "node", o->plan.troubled[i].node);
		tree_text(t, "why", overlay_trouble_text(o->plan.troubled[i].trouble));
		tree_close(t);
	}
	tree_close(t);
}

void overlay_show(struct overlay *o, const struct kernel *kernel, struct serve_request *request)
{
	AUTO(json_put) struct json_object *root = NULL;
	struct tree t = tree_new();

	make_fresh(o);
	add_tunnels(o, &t);
	add_remotes(o, kernel, &t);
	add_unreachable(o, &t);
	if (tree_end(&t, &root) < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else
		serve_reply_json(request, 200, root);
}

/* --- life ----------------------------------------------------------------------------------- */

int overlay_new(const struct overlay_options *options, struct overlay **ret, struct err *err)
{
	AUTO(overlay_free) struct overlay *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->o = *options;
	o->dir = -1;
	o->stale = true;
	o->grace = (struct timer){ .fn = on_grace, .arg = o };
	r = pass_new(options->event, work, o, &o->pass);
	if (r < 0)
		return r;
	o->dir = dir_open(options->run_dir);
	if (o->dir < 0)
		return err_set(err, o->dir, "%s: %s", options->run_dir, strerror(-o->dir));
	load(o);
	r = records_want(o->o.records, "config", on_record, o, &o->base[0]);
	r = r ?: records_want(o->o.records, KEYS_POOL, on_record, o, &o->base[1]);
	r = r ?: records_want(o->o.records, KEYS_EXTENT, on_record, o, &o->base[2]);
	if (r < 0)
		return r;
	pass_open(o->pass, true);
	*ret = TAKE(o);
	return 0;
}

void overlay_free(struct overlay *o)
{
	if (!o)
		return;
	timer_clear(o->o.timers, &o->grace);
	for (size_t i = 0; i < ARRAY_SIZE(o->base); i++)
		records_unwant(o->base[i]);
	records_unwant(o->nodes);
	records_unwant(o->blocks);
	pass_free(o->pass);
	overlay_plan_done(&o->plan);
	overlay_pools_done(&o->pools);
	if (o->dir >= 0)
		close(o->dir);
	free(o);
}
