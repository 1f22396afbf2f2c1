/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of this node's end of the overlay: one for each family that is wanted, from the
 * first pool with an encapsulation that serves this node. It is an attachment like a pod's, with a
 * file and a key in etcd, but reserved: no boot frees it, no garbage collection and no DEL.
 */
#include <errno.h>
#include <string.h>

#include "agent/addresses/ipam_state.h"

#define NETWORK   "roost"
#define CONTAINER "tunnel"

static const char *const interfaces[] = { "ipv4", "ipv6" };
static const sa_family_t families[] = { AF_INET, AF_INET6 };

static struct attachment_key key_of(int family)
{
	return (struct attachment_key){ NETWORK, CONTAINER, interfaces[family] };
}

/* --- what is there -------------------------------------------------------------------------- */

static const struct own_block *block_of(const struct ipam *m, const struct held_address *h)
{
	return blocks_with(allocator_blocks(m->allocator), h->network, &h->address);
}

bool ipam_pool_encapsulates(const struct ipam *m, const char *name)
{
	const struct pool_view *v = pool_views_find(allocator_pools(m->allocator), name);

	return v && v->pool && v->pool->routed && v->pool->encapsulation != ENCAPSULATION_NONE;
}

/* In a block of ours, and of a pool that has not been taken out of the overlay. */
static bool is_good(const struct ipam *m, const struct attachment *a)
{
	const struct own_block *b = a->addresses.n ? block_of(m, &a->addresses.v[0]) : NULL;

	if (!b || b->state == BLOCK_LOST)
		return false;
	return !pool_views_find(allocator_pools(m->allocator), b->pool) ||
	       ipam_pool_encapsulates(m, b->pool);
}

struct ipam_tunnel ipam_tunnel(const struct ipam *m, int family)
{
	const struct attachment_key key = key_of(family);
	const struct attachment *a = allocator_find(m->allocator, &key);
	struct ipam_tunnel t = { .state = IPAM_TUNNEL_NONE };

	if (!m->tunnels.wanted[family])
		return t;
	if (a && !attachment_is_mark(a) && a->addresses.n) {
		t.state = IPAM_TUNNEL_HELD;
		t.address = a->addresses.v[0].address;
	} else if (m->tunnels.refused[family].text[0]) {
		t.state = IPAM_TUNNEL_REFUSED;
		t.why = m->tunnels.refused[family];
	} else {
		t.state = IPAM_TUNNEL_PENDING;
	}
	return t;
}

void ipam_want_tunnel(struct ipam *m, const bool wanted[2])
{
	if (m->tunnels.told && memcmp(m->tunnels.wanted, wanted, sizeof(m->tunnels.wanted)) == 0)
		return;
	m->tunnels.told = true;
	memcpy(m->tunnels.wanted, wanted, sizeof(m->tunnels.wanted));
	pass_mark(m->pass);
}

bool ipam_inputs_known(const struct ipam *m)
{
	return m->local || ipam_all_listed(m);
}

/* --- what is done --------------------------------------------------------------------------- */

static const struct pool_view *choose(const struct ipam *m, int family)
{
	const struct pool_views *views = allocator_pools(m->allocator);

	for (size_t i = 0; i < views->n; i++)
		if (views->v[i].pool && views->v[i].cidr.address.family == families[family] &&
		    ipam_pool_encapsulates(m, views->v[i].name) && pool_view_serves(&views->v[i]))
			return &views->v[i];
	return NULL;
}

static void refuse(struct ipam *m, int family, const char *why)
{
	char part[HEALTH_PART];

	snprintf(part, sizeof(part), "tunnel-address/%s", interfaces[family]);
	health_set(
		m->o.health, part, LOG_LEVEL_WARNING,
		"the tunnel has no %s address: %s; pods here and elsewhere reach each other, but "
		"this node itself sends to pods of other nodes from another address of its own",
		family ? "IPv6" : "IPv4", why);
	if (strcmp(m->tunnels.refused[family].text, why) == 0)
		return;
	err_set(&m->tunnels.refused[family], 0, "%s", why);
	m->o.tunnel_changed(m->o.arg);
}

static void well(struct ipam *m, int family)
{
	char part[HEALTH_PART];

	snprintf(part, sizeof(part), "tunnel-address/%s", interfaces[family]);
	health_clear(m->o.health, part);
	m->tunnels.refused[family].text[0] = '\0';
}

static void held(struct ipam *m, int family, const struct assign_result *result)
{
	int r = ipam_keep(m, result);

	if (r < 0) {
		refuse(m, family, strerror(-r));
		return;
	}
	well(m, family);
	m->o.tunnel_changed(m->o.arg);
	m->o.changed(m->o.arg);
}

static void assign(struct ipam *m, int family)
{
	AUTO_DONE(assign_result_done) struct assign_result result = { 0 };
	const struct pool_view *v = choose(m, family);
	const char *pools[] = { v ? v->name : "" };
	const struct assign_request request = {
		.network = NETWORK,
		.container = CONTAINER,
		.interface = interfaces[family],
		.netns = "",
		.namespace = "",
		.pod = "",
		.uid = "",
		.pools = { pools, 1 },
		.reserved = true,
	};
	const struct assign_options options = { .may_claim = ipam_can_claim(m, NULL) };

	if (!v) {
		refuse(m, family, "no pool with an encapsulation serves this node");
		return;
	}
	if (!ipam_ready(m, NULL))
		return;
	if (allocator_assign(m->allocator, &request, &options, ipam_now(), &result) < 0)
		return;
	if (result.verdict == ASSIGN_DONE)
		held(m, family, &result);
	else if (result.verdict == ASSIGN_REFUSED && options.may_claim)
		refuse(m, family, result.why.text);
	for (size_t i = 0; result.verdict == ASSIGN_NEED_BLOCK && i < result.n_needs; i++)
		ipam_claim(m, &result.needs[i]);
}

static void let_go(struct ipam *m, int family)
{
	const struct attachment_key key = key_of(family);
	struct err err = { "" };

	if (ipam_free_addresses(m, &key, NULL, &err) < 0)
		log_error("ipam", "%s", err.text);
	m->o.tunnel_changed(m->o.arg);
}

static void work_on(struct ipam *m, int family)
{
	const struct attachment_key key = key_of(family);
	const struct attachment *a = allocator_find(m->allocator, &key);
	/* A node that was removed gives back all it has, once its last pod is gone. */
	bool wanted = m->tunnels.wanted[family] &&
		      !(m->authority.removed && ipam_attachments(m) == 0);

	if (a && (!wanted || !is_good(m, a))) {
		let_go(m, family);
		a = NULL;
	}
	if (!wanted)
		well(m, family);
	else if (!a || attachment_is_mark(a))
		assign(m, family);
}

void ipam_tunnel_work(struct ipam *m)
{
	if (!m->tunnels.told || !m->known)
		return;
	for (int i = 0; i < 2; i++)
		work_on(m, i);
}
