/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a BGP session with whom.
 *
 *   peers by address, peers by selector, mesh -> offers -> one per neighbour -> sessions
 *
 * Every way to a session makes an offer; sorted by neighbour, the best of each
 * stays: a peer record before the mesh, peer records by name. An offer that
 * cannot be kept (no password, no filter) still stands for its neighbour, so
 * that nothing weaker takes its place, and falls out at the end.
 */
#include <errno.h>
#include <string.h>

#include "agent/bird/desired_bird_parts.h"
#include "lib/model/lease_holder.h"

/* --- who is meant --------------------------------------------------------------------------- */

int bird_labels(const char *name, const struct node_spec *spec, struct labels *ret)
{
	static const char hostname[] = "kubernetes.io/hostname";
	size_t n = spec ? spec->labels.n : 0, kept = 0;
	struct label *v = calloc(n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	/* Whatever the record says, the implicit label is the node's name. */
	v[kept++] = (struct label){ hostname, name };
	for (size_t i = 0; i < n; i++)
		if (strcmp(spec->labels.v[i].key, hostname) != 0)
			v[kept++] = spec->labels.v[i];
	*ret = (struct labels){ v, kept };
	return 0;
}

bool bird_peer_has_node(const struct peer *p, const char *name, const struct labels *labels)
{
	if (!p->nodes.n)
		return selector_matches(p->node_selector.parsed, labels);
	for (size_t i = 0; i < p->nodes.n; i++)
		if (strcmp(p->nodes.v[i], name) == 0)
			return true;
	return false;
}

/* --- all of them ---------------------------------------------------------------------------- */

/* In a pair that a record names from both sides exactly one is passive: the lower address. */
static bool is_lower(const struct bird_making *m, const struct bird_other *other)
{
	sa_family_t family = m->in->ipv4.address.family && other->node->node->ipv4.address.family
				     ? AF_INET
				     : AF_INET6;

	return address_compare(&bird_own(m, family)->address,
			       bird_address_of(other->node->node, family)) < 0;
}

static int offer_selected(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
			  const struct labels *own, const struct bird_other *other)
{
	const char *name = other->node->node->name;
	bool here = bird_peer_has_node(p, m->in->self, own) &&
		    selector_matches(p->peer_selector.parsed, &other->labels);
	bool there = bird_peer_has_node(p, name, &other->labels) &&
		     selector_matches(p->peer_selector.parsed, own);
	bool passive = p->passive && here && (!there || is_lower(m, other));

	return here || there ? bird_offer_pair(m, offers, p, other, passive) : 0;
}

static bool is_by_selector(const struct peer *p)
{
	return !p->disabled && !p->address.address.family;
}

static int offer_one_node(struct bird_making *m, struct bird_offers *offers,
			  const struct labels *own, const struct bird_other *other)
{
	int r = 0;

	/* Neither end passive: after a restart the one that comes back connects at once. */
	if (m->in->config->mesh && !m->cluster_id.family && !other->cluster_id.family)
		r = bird_offer_pair(m, offers, NULL, other, false);
	for (size_t i = 0; r == 0 && i < m->in->n_peers; i++)
		if (is_by_selector(m->peers[i]))
			r = offer_selected(m, offers, m->peers[i], own, other);
	return r;
}

static int offer_nodes(struct bird_making *m, struct bird_offers *offers, const struct labels *own)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->in->n_nodes; i++) {
		const struct bird_node *node = &m->in->nodes[i];
		struct bird_other other = { .node = node, .asn = m->in->config->asn };

		/* Who holds a lease has no agent, and nobody there speaks BGP. */
		if (strcmp(node->node->name, m->in->self) == 0 || node_is_lease(node->node))
			continue;
		if (node->spec && node->spec->asn)
			other.asn = node->spec->asn;
		if (node->spec)
			other.cluster_id = node->spec->route_reflector_cluster_id;
		r = bird_labels(node->node->name, node->spec, &other.labels);
		if (r == 0)
			r = offer_one_node(m, offers, own, &other);
		free((void *)(uintptr_t)other.labels.v);
	}
	return r;
}

static int offer_addresses(struct bird_making *m, struct bird_offers *offers,
			   const struct labels *own)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->in->n_peers; i++) {
		const struct peer *p = m->peers[i];

		if (!p->disabled && p->address.address.family &&
		    bird_peer_has_node(p, m->in->self, own))
			r = bird_offer_address(m, offers, p);
	}
	return r;
}

/* --- one per neighbour ---------------------------------------------------------------------- */

static int neighbour_order(const struct neighbour *a, const struct neighbour *b)
{
	int r = address_compare(&a->address, &b->address);

	return r ?: strcmp(a->zone, b->zone);
}

static int offer_order(const void *a, const void *b)
{
	const struct bird_offer *x = a, *y = b;
	int r = neighbour_order(&x->session.neighbour, &y->session.neighbour);

	if (r)
		return r;
	if (!x->peer != !y->peer)
		return x->peer ? -1 : 1;
	return strcmp(x->session.record, y->session.record);
}

/* The mesh giving way to a record is what the record is for; two of a kind are a mistake. */
static int tell_twin(struct bird_making *m, const struct bird_offer *kept,
		     const struct bird_offer *twin)
{
	char address[ADDRESS_TEXT];

	if ((kept->peer && !twin->peer) || strcmp(kept->session.record, twin->session.record) == 0)
		return 0;
	return bird_problem(m, BIRD_PROBLEM, twin->session.record, "",
			    "has the neighbour of %s, %s; left out", kept->session.record,
			    address_print(&twin->session.neighbour.address, address));
}

/* Both at once are allowed, and the operator should know what to expect. */
static int tell_of_bfd(struct bird_making *m, const struct bird_offer *o)
{
	if (!o->session.options.bfd || !o->session.options.graceful_restart)
		return 0;
	return bird_problem(m, BIRD_NOTICE, o->peer ? "peer/" : "config",
			    o->peer ? o->peer->name : "",
			    "BFD is on beside graceful restart and wins: a dead link is seen at "
			    "once, and so is a restart of BIRD");
}

static int choose(struct bird_making *m, struct bird_offers *offers)
{
	struct bird_plan *plan = &m->plan;
	const struct bird_offer *kept = NULL;

	plan->sessions = calloc(offers->n ?: 1, sizeof(*plan->sessions));
	if (!plan->sessions)
		return -ENOMEM;
	if (offers->n)
		qsort(offers->v, offers->n, sizeof(*offers->v), offer_order);
	for (struct bird_offer *o = offers->v; o < offers->v + offers->n; o++) {
		if (kept && neighbour_order(&kept->session.neighbour, &o->session.neighbour) == 0) {
			if (tell_twin(m, kept, o) < 0)
				return -ENOMEM;
			continue;
		}
		kept = o;
		if (o->unfit)
			continue;
		m->transit |= o->session.options.rr_client;
		plan->sessions[plan->n_sessions++] = o->session;
		o->taken = true;
		if (tell_of_bfd(m, o) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A reflector is no router for its clients: routes from inside the AS keep their next hops. */
static void keep_reflected(struct bird_making *m)
{
	for (size_t i = 0; m->transit && i < m->plan.n_sessions; i++) {
		struct bird_session *s = &m->plan.sessions[i];

		if (s->asn == s->options.local_asn && s->options.next_hop == BIRD_NEXT_HOP_SELF)
			s->options.next_hop = BIRD_NEXT_HOP_SELF_EBGP;
	}
}

int bird_sessions(struct bird_making *m)
{
	struct bird_offers offers = { 0 };
	struct labels own = { 0 };
	int r = bird_labels(m->in->self, m->in->spec, &own);

	m->transit = m->cluster_id.family != 0;
	if (r == 0)
		r = offer_addresses(m, &offers, &own);
	if (r == 0)
		r = offer_nodes(m, &offers, &own);
	if (r == 0)
		r = choose(m, &offers);
	keep_reflected(m);
	free((void *)(uintptr_t)own.v);
	bird_offers_done(&offers);
	return r;
}
