/* SPDX-License-Identifier: Apache-2.0 */
/* One offer of a session: to an address that a record gives, or to a node. */
#include <errno.h>
#include <string.h>

#include "agent/bird/desired_bird_parts.h"

const struct address *bird_address_of(const struct node *node, sa_family_t family)
{
	return family == AF_INET ? &node->ipv4.address : &node->ipv6.address;
}

const struct prefix *bird_own(const struct bird_making *m, sa_family_t family)
{
	return family == AF_INET ? &m->in->ipv4 : &m->in->ipv6;
}

static bool is_own(const struct bird_making *m, const struct address *a)
{
	const struct prefix *own = bird_own(m, a->family);

	return own->address.family && address_compare(&own->address, a) == 0;
}

static bool on_link(const struct bird_making *m, const struct address *a)
{
	const struct prefix *own = bird_own(m, a->family);

	return own->address.family && prefix_contains(own, a);
}

static const struct bird_node *node_at(const struct bird_making *m, const struct address *a)
{
	for (size_t i = 0; i < m->in->n_nodes; i++) {
		const struct address *theirs = bird_address_of(m->in->nodes[i].node, a->family);

		if (theirs->family && address_compare(theirs, a) == 0)
			return &m->in->nodes[i];
	}
	return NULL;
}

/* --- one offer ------------------------------------------------------------------------------ */

/* Owns nothing before it is in the list. */
static struct bird_offer *add_offer(struct bird_offers *offers, const char *kind, const char *name)
{
	struct bird_offer *v = bird_grow(offers->v, offers->n, sizeof(*v)), *o;

	if (!v)
		return NULL;
	offers->v = v;
	o = &v[offers->n];
	memset(o, 0, sizeof(*o));
	if (asprintf(&o->session.record, "%s%s", kind, name) < 0)
		return NULL;
	offers->n++;
	return o;
}

void bird_offers_done(struct bird_offers *offers)
{
	for (size_t i = 0; i < offers->n; i++) {
		if (offers->v[i].taken)
			continue;
		free(offers->v[i].session.record);
		free(offers->v[i].session.description);
	}
	free(offers->v);
}

/* Same address, same side: this node reflects for neighbours that are not of its own cluster. */
static bool is_client(const struct bird_making *m, const struct address *cluster_id)
{
	return m->cluster_id.family &&
	       !(cluster_id->family && address_compare(cluster_id, &m->cluster_id) == 0);
}

/*
 * Direct where the neighbour is known to be on our own link: then BIRD takes next hops as they
 * are. What is off-link in the same AS needs multihop, as BIRD does by itself; a neighbour in
 * another AS is taken to be on some link, as BIRD does too, unless the record says how far.
 */
static uint32_t hops_to(const struct bird_making *m, const struct peer *p,
			const struct neighbour *n, bool ebgp)
{
	if (p && p->multihop)
		return p->multihop;
	if (n->zone[0] || on_link(m, &n->address) || (ebgp && p && p->address.address.family))
		return 0;
	return 64;
}

/* What follows from the neighbour, its AS and its cluster. */
static void settle(const struct bird_making *m, struct bird_offer *o,
		   const struct address *cluster_id)
{
	struct bird_session *s = &o->session;
	struct bird_options *opt = &s->options;
	const struct peer *p = o->peer;
	bool ebgp = s->asn != opt->local_asn;

	bird_protocol_name(&s->neighbour, s->name);
	opt->multihop = hops_to(m, p, &s->neighbour, ebgp);
	opt->rr_client = !ebgp && p && (p->reflector_client || is_client(m, cluster_id));
	if (opt->rr_client)
		memcpy(opt->cluster_id, m->cluster_id.bytes, sizeof(opt->cluster_id));
	/* Next hops that a reflector or a border router leaves as they are may be off our link. */
	opt->gateway_recursive = !ebgp && p && !opt->multihop && !s->neighbour.zone[0];
	if (p && p->next_hop_keep)
		opt->next_hop = BIRD_NEXT_HOP_KEEP;
	else if (p && !p->next_hop_self)
		opt->next_hop = BIRD_NEXT_HOP_PLAIN;
	else
		opt->next_hop = BIRD_NEXT_HOP_SELF;
	opt->extended_next_hop = opt->ipv4 && s->neighbour.address.family == AF_INET6;
}

/* What a record says in vain is told, and does no harm. */
static int tell_of_vanity(struct bird_making *m, struct bird_offer *o)
{
	struct bird_options *opt = &o->session.options;
	const struct peer *p = o->peer;
	int r = 0;

	if (opt->keepalive_time && opt->keepalive_time >= opt->hold_time) {
		r = bird_problem(m, BIRD_NOTICE, "peer/", p->name,
				 "field \"keepaliveTime\": %u is not less than the hold time %u; a "
				 "third of that is used",
				 opt->keepalive_time, opt->hold_time);
		opt->keepalive_time = 0;
	}
	if (r == 0 && p->reflector_client && !opt->rr_client)
		r = bird_problem(
			m, BIRD_NOTICE, "peer/", p->name,
			"field \"reflectorClient\": has no effect on a neighbour in another AS");
	return r;
}

/* Password, filters, times: what may make a peer's offer unfit. 0 or -ENOMEM. */
static int fit(struct bird_making *m, struct bird_offer *o)
{
	const struct peer *p = o->peer;
	int r = bird_filters(m, p, o->session.asn != o->session.options.local_asn,
			     &o->session.options);

	if (r < 0 || !p)
		return r < 0 ? r : 0;
	o->unfit = r == 0;
	r = bird_secret(m, "peer/", p->name, "passwordFile", p->password_file,
			&o->session.password);
	if (r < 0)
		return r;
	o->unfit |= r == 0;
	if (p->description && p->description[0]) {
		o->session.description = strdup(p->description);
		if (!o->session.description)
			return -ENOMEM;
	}
	return tell_of_vanity(m, o);
}

/* --- to an address, to a node --------------------------------------------------------------- */

static bool wants(const struct peer *p, enum family family)
{
	for (size_t i = 0; i < p->families.n; i++)
		if (p->families.v[i] == family)
			return true;
	return false;
}

/* A session carries its own family; IPv4 goes over IPv6 where there is no other way. */
static void channels_to(const struct bird_making *m, const struct peer *p, struct bird_options *opt)
{
	bool four = p->address.address.family == AF_INET;

	if (p->families.n) {
		opt->ipv4 = wants(p, FAMILY_IPV4);
		opt->ipv6 = wants(p, FAMILY_IPV6);
		return;
	}
	opt->ipv4 = four || p->address.zone[0] || !m->in->ipv4.address.family;
	opt->ipv6 = !four;
}

int bird_offer_address(struct bird_making *m, struct bird_offers *offers, const struct peer *p)
{
	const struct address *neighbour = &p->address.address, *none = &(struct address){ 0 };
	const struct bird_node *known;
	struct bird_offer *o;

	if (is_own(m, neighbour))
		return 0;
	o = add_offer(offers, "peer/", p->name);
	if (!o)
		return -ENOMEM;
	o->peer = p;
	o->session.options = bird_options(m, p);
	o->session.neighbour = p->address;
	o->session.asn = p->asn;
	o->session.port = p->port ?: 179;
	o->session.local_port = m->in->config->bgp.listen_port;
	o->session.passive = p->passive;
	channels_to(m, p, &o->session.options);
	known = node_at(m, neighbour);
	settle(m, o, known && known->spec ? &known->spec->route_reflector_cluster_id : none);
	if (p->source_address.family)
		o->session.local = p->source_address;
	else if (!p->address.zone[0] && (o->session.options.multihop || on_link(m, neighbour)))
		o->session.local = bird_own(m, neighbour->family)->address;
	return fit(m, o);
}

/* One session with a node, over one family. p is NULL for the mesh. */
static int offer_node(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
		      const struct bird_other *other, sa_family_t over, bool ipv4, bool passive)
{
	const struct node *node = other->node->node;
	struct bird_offer *o = p ? add_offer(offers, "peer/", p->name)
				 : add_offer(offers, "node/", node->name);

	if (!o)
		return -ENOMEM;
	o->peer = p;
	o->session.options = bird_options(m, p);
	o->session.neighbour.address = *bird_address_of(node, over);
	o->session.local = bird_own(m, over)->address;
	o->session.asn = other->asn;
	o->session.port = p && p->port ? p->port : m->in->config->bgp.listen_port;
	o->session.local_port = o->session.port;
	o->session.passive = passive;
	o->session.options.ipv4 = ipv4;
	o->session.options.ipv6 = over == AF_INET6 &&
				  (!p || !p->families.n || wants(p, FAMILY_IPV6));
	settle(m, o, &other->cluster_id);
	return fit(m, o);
}

/* Can there be a session over that family? Tells what a person should know. */
static int reachable(struct bird_making *m, const struct node *node, sa_family_t family)
{
	const struct address *a = bird_address_of(node, family);

	if (!a->family || !bird_own(m, family)->address.family)
		return 0;
	if (is_own(m, a))
		return bird_problem(m, BIRD_PROBLEM, "node/", node->name,
				    "field \"%s\": is this node's own address; no session with it",
				    family == AF_INET ? "ipv4" : "ipv6");
	if (address_is_no_neighbour(a) || address_is_link_local(a))
		return bird_problem(m, BIRD_PROBLEM, "node/", node->name,
				    "field \"%s\": is no address for a session; left out",
				    family == AF_INET ? "ipv4" : "ipv6");
	return 1;
}

/* The sessions with one node: one per family that both have. */
int bird_offer_pair(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
		    const struct bird_other *other, bool passive)
{
	bool any = !p || !p->families.n;
	bool ipv4 = any || wants(p, FAMILY_IPV4), ipv6 = any || wants(p, FAMILY_IPV6);
	int four = reachable(m, other->node->node, AF_INET);
	int six = four < 0 ? four : reachable(m, other->node->node, AF_INET6);
	int r = six < 0 ? six : 0;

	if (r == 0 && four && ipv4)
		r = offer_node(m, offers, p, other, AF_INET, true, passive);
	if (r == 0 && six && (ipv6 || (ipv4 && !four)))
		r = offer_node(m, offers, p, other, AF_INET6, ipv4 && !four, passive);
	return r;
}
