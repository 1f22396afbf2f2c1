/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of the overlay: status, metrics, and the whole list for `roostctl overlay`. */
#include <string.h>

#include "agent/kernel/kernel_view.h"
#include "agent/overlay/overlay_parts.h"
#include "lib/model/vtep.h"

/* Names lie in the records: only a plan that was made since they last changed can be shown. */
static void make_fresh(struct overlay *o)
{
	if (o->stale && overlay_refresh(o) < 0)
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

static void add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

static void add_mac(struct json_object *o, const struct mac *mac)
{
	const uint8_t *b = mac->bytes;
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
		 b[5]);
	add_text(o, "mac", text);
}

static void add_addresses(struct json_object *o, const char *name, const struct address *v,
			  size_t n)
{
	struct json_object *list = json_object_new_array();
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < n; i++)
		if (v[i].family)
			json_object_array_add(list,
					      json_object_new_string(address_print(&v[i], text)));
	json_object_object_add(o, name, list);
}

static void add_tunnels(const struct overlay *o, struct json_object *root)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < o->plan.n_tunnels; i++) {
		const struct kernel_tunnel *t = &o->plan.tunnels[i];
		struct json_object *one = json_object_new_object();
		char text[ADDRESS_TEXT];

		add_text(one, "device",
			 t->local.family == AF_INET ? TUNNEL_DEVICE : TUNNEL_DEVICE6);
		add_text(one, "local", address_print(&t->local, text));
		add_mac(one, &t->mac);
		add_addresses(one, "addresses", t->addresses, t->n_addresses);
		json_object_object_add(one, "vni", json_object_new_int64(t->vni));
		json_object_object_add(one, "port", json_object_new_int64(t->port));
		json_object_object_add(one, "mtu", json_object_new_int64(overlay_tunnel_mtu(o, t)));
		json_object_array_add(list, one);
	}
	json_object_object_add(root, "tunnels", list);
}

static struct json_object *remote_object(const struct overlay *o, size_t i)
{
	const struct kernel_remote *r = &o->plan.remotes[i];
	struct json_object *one = json_object_new_object();
	char text[ADDRESS_TEXT];

	add_text(one, "node", o->plan.names[i]);
	add_text(one, "underlay", address_print(&r->underlay, text));
	add_mac(one, &r->mac);
	add_addresses(one, "vtep", r->vtep, 2);
	json_object_object_add(one, "blocks", json_object_new_array());
	return one;
}

static void add_remotes(const struct overlay *o, const struct kernel *kernel,
			struct json_object *root)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < o->plan.n_remotes; i++)
		json_object_array_add(list, remote_object(o, i));
	for (size_t i = 0; i < o->plan.n_blocks; i++) {
		const struct kernel_remote_block *b = &o->plan.blocks[i];
		struct json_object *remote = json_object_array_get_idx(list, b->remote);
		struct json_object *one = json_object_new_object();
		char text[PREFIX_TEXT];

		add_text(one, "block", prefix_print(&b->block, text));
		add_text(one, "way", kernel_way_name(kernel_way(kernel, &b->block)));
		json_object_array_add(json_object_object_get(remote, "blocks"), one);
	}
	json_object_object_add(root, "remotes", list);
}

static void add_unreachable(const struct overlay *o, struct json_object *root)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < o->plan.n_troubled; i++) {
		struct json_object *one = json_object_new_object();

		add_text(one, "node", o->plan.troubled[i].node);
		add_text(one, "why", overlay_trouble_text(o->plan.troubled[i].trouble));
		json_object_array_add(list, one);
	}
	json_object_object_add(root, "unreachable", list);
}

void overlay_show(struct overlay *o, const struct kernel *kernel, struct serve_request *request)
{
	AUTO(json_put) struct json_object *root = json_object_new_object();

	make_fresh(o);
	add_tunnels(o, root);
	add_remotes(o, kernel, root);
	add_unreachable(o, root);
	serve_reply_json(request, 200, root);
}
