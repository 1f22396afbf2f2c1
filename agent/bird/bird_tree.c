/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/bird_tree.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/sort.h"
#include "lib/json/tree.h"

static void text_or_false(struct tree *t, const char *name, const char *text)
{
	if (text && text[0])
		tree_text(t, name, text);
	else
		tree_bool(t, name, false);
}

static void address_or_false(struct tree *t, const char *name, const struct address *a)
{
	if (a->family)
		tree_address(t, name, a);
	else
		tree_bool(t, name, false);
}

/* An object to be closed, or false. */
static bool open_if(struct tree *t, const char *name, bool there)
{
	if (there)
		tree_open(t, name, '{');
	else
		tree_bool(t, name, false);
	return there;
}

/* An object of one number, or false. */
static void number_if(struct tree *t, const char *name, bool there, const char *inner,
		      uint32_t number)
{
	if (open_if(t, name, there)) {
		tree_number(t, inner, number);
		tree_close(t);
	}
}

/* --- sessions ------------------------------------------------------------------------------- */

static void put_channel(struct tree *t, const struct bird_making *m, const struct bird_options *opt,
			bool four)
{
	tree_open(t, NULL, '{');
	tree_text(t, "channel", four ? "ipv4" : "ipv6");
	tree_text(t, "digit", four ? "4" : "6");
	tree_text(t, "import", m->filters.v[opt->import].name);
	tree_text(t, "export", m->filters.v[opt->export].name);
	tree_bool(t, "nextHopSelf", opt->next_hop == BIRD_NEXT_HOP_SELF);
	tree_bool(t, "nextHopSelfEbgp", opt->next_hop == BIRD_NEXT_HOP_SELF_EBGP);
	tree_bool(t, "nextHopKeep", opt->next_hop == BIRD_NEXT_HOP_KEEP);
	tree_bool(t, "gatewayRecursive", opt->gateway_recursive);
	tree_bool(t, "extendedNextHop", four && opt->extended_next_hop);
	tree_close(t);
}

static void put_session(struct tree *t, const struct bird_session *s)
{
	char address[ADDRESS_TEXT];

	address_print(&s->neighbour.address, address);
	tree_open(t, NULL, '{');
	tree_text(t, "name", s->name);
	if (s->neighbour.zone[0])
		tree_printf(t, "neighbour", "%s%%'%s'", address, s->neighbour.zone);
	else
		tree_text(t, "neighbour", address);
	tree_number(t, "asn", s->asn);
	number_if(t, "port", s->port != 179, "number", s->port);
	address_or_false(t, "local", &s->local);
	number_if(t, "localPort", s->local_port != 179, "number", s->local_port);
	tree_number(t, "localAsn", s->options.local_asn);
	tree_bool(t, "passive", s->passive);
	text_or_false(t, "password", s->password);
	text_or_false(t, "description", s->description);
	tree_close(t);
}

/* The first of those that agree in all options speaks for all of them. */
static void put_group(struct tree *t, const struct bird_making *m, size_t number, size_t first,
		      const size_t *groups)
{
	const struct bird_plan *plan = &m->plan;
	const struct bird_options *opt = &plan->sessions[first].options;
	struct address cluster_id = { .family = AF_INET };

	tree_open(t, NULL, '{');
	tree_printf(t, "group", "group%zu", number);
	number_if(t, "multihop", opt->multihop, "hops", opt->multihop);
	tree_number(t, "holdTime", opt->hold_time);
	number_if(t, "keepaliveTime", opt->keepalive_time, "seconds", opt->keepalive_time);
	tree_number(t, "connectRetryTime", opt->connect_retry_time);
	tree_bool(t, "gracefulRestart", opt->graceful_restart);
	tree_number(t, "gracefulRestartTime", opt->graceful_restart_time);
	tree_bool(t, "useBfd", opt->bfd);
	tree_bool(t, "ttlSecurity", opt->ttl_security);
	number_if(t, "allowLocalAs", opt->allow_local_as, "times", opt->allow_local_as);
	tree_bool(t, "reflectorClient", opt->rr_client);
	memcpy(cluster_id.bytes, opt->cluster_id, sizeof(opt->cluster_id));
	if (address_is_unspecified(&cluster_id))
		cluster_id.family = 0;
	address_or_false(t, "clusterId", &cluster_id);
	tree_open(t, "channels", '[');
	if (opt->ipv4)
		put_channel(t, m, opt, true);
	if (opt->ipv6)
		put_channel(t, m, opt, false);
	tree_close(t);
	tree_open(t, "sessions", '[');
	for (size_t i = first; i < plan->n_sessions; i++)
		if (groups[i] == first)
			put_session(t, &plan->sessions[i]);
	tree_close(t);
	tree_close(t);
}

/* Groups come in the order of their first session, so they follow from the records alone. */
static int put_groups(struct tree *t, const struct bird_making *m)
{
	const struct bird_session *v = m->plan.sessions;
	AUTO(free) size_t *groups = calloc(m->plan.n_sessions ?: 1, sizeof(*groups));
	AUTO(free) size_t *firsts = calloc(m->plan.n_sessions ?: 1, sizeof(*firsts));
	size_t n = 0;

	if (!groups || !firsts)
		return -ENOMEM;
	for (size_t i = 0; i < m->plan.n_sessions; i++) {
		size_t g = 0;

		while (g < n && memcmp(&v[firsts[g]].options, &v[i].options, sizeof(v->options)))
			g++;
		if (g == n)
			firsts[n++] = i;
		groups[i] = firsts[g];
	}
	tree_open(t, "groups", '[');
	for (size_t g = 0; g < n; g++)
		put_group(t, m, g + 1, firsts[g], groups);
	tree_close(t);
	return 0;
}

/* --- once for IPv4 and once for IPv6: blocks ------------------------------------------------ */

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = *(const struct extent *const *)a;
	const struct extent *y = *(const struct extent *const *)b;
	int r = prefix_compare(&x->cidr, &y->cidr);

	return r ?: (x->block_size > y->block_size) - (x->block_size < y->block_size);
}

static bool is_single(const struct extent *e)
{
	return e->block_size == address_bits(&e->cidr.address);
}

static void put_some_extents(struct tree *t, const char *name, const struct extent *const *v,
			     size_t n, bool singles)
{
	tree_open(t, name, '[');
	for (size_t i = 0; i < n; i++) {
		if (is_single(v[i]) != singles)
			continue;
		tree_open(t, NULL, '{');
		tree_prefix(t, "cidr", &v[i]->cidr);
		tree_number(t, "length", v[i]->block_size);
		tree_close(t);
	}
	tree_close(t);
}

/* blocks: extents whose blocks are seen as blackholes; singles: each address is a block. */
static int put_extents(struct tree *t, const struct bird_input *in, sa_family_t family)
{
	AUTO(free) const struct extent **v = calloc(in->n_extents ?: 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_extents; i++)
		if (in->extents[i].extent->cidr.address.family == family &&
		    bird_extent_announced(&in->extents[i]))
			v[n++] = in->extents[i].extent;
	/* Two networks may have the same one. */
	n = sort_unique(v, n, sizeof(*v), extent_order, extent_order);
	put_some_extents(t, "blocks", v, n, false);
	put_some_extents(t, "singles", v, n, true);
	return 0;
}

static void put_own(struct tree *t, const struct bird_plan *plan, sa_family_t family)
{
	tree_open(t, "own", '[');
	for (size_t i = 0; i < plan->n_announced; i++)
		if (plan->announced[i].address.family == family)
			tree_prefix(t, NULL, &plan->announced[i]);
	tree_close(t);
}

/* --- filters -------------------------------------------------------------------------------- */

static bool is_large(const char *community)
{
	const char *first = strchr(community, ':');

	return first && strchr(first + 1, ':');
}

/* "65000:1" as BIRD writes a pair: 65000,1 */
static void put_community(struct tree *t, const char *name, const char *text)
{
	char copy[40];

	snprintf(copy, sizeof(copy), "%s", text ?: "");
	for (char *p = copy; *p; p++)
		if (*p == ':')
			*p = ',';
	text_or_false(t, name, copy);
}

static void put_communities(struct tree *t, const struct texts *from)
{
	tree_open(t, "addCommunities", '[');
	for (size_t i = 0; i < from->n; i++)
		if (!is_large(from->v[i]))
			put_community(t, NULL, from->v[i]);
	tree_close(t);
	tree_open(t, "addLargeCommunities", '[');
	for (size_t i = 0; i < from->n; i++)
		if (is_large(from->v[i]))
			put_community(t, NULL, from->v[i]);
	tree_close(t);
}

static void put_rule(struct tree *t, const struct bird_filter *f, const struct filter_rule *r)
{
	static const char *const origins[] = { "", "ORIGIN_IGP", "ORIGIN_EGP",
					       "ORIGIN_INCOMPLETE" };
	const struct filter_match *match = &r->match;

	tree_open(t, NULL, '{');
	if (open_if(t, "cidr", match->cidr.address.family != 0)) {
		uint32_t ge, le;

		filter_lengths(match, &ge, &le);
		tree_prefix(t, "prefix", &match->cidr);
		tree_number(t, "ge", ge);
		tree_number(t, "le", le);
		tree_close(t);
	}
	put_community(t, "community", match->community);
	put_community(t, "largeCommunity", match->large_community);
	number_if(t, "asPathContains", match->as_path_contains, "asn", match->as_path_contains);
	text_or_false(t, "origin", origins[match->origin]);
	number_if(t, "localPref", r->set.local_pref != UNSET, "value", r->set.local_pref);
	number_if(t, "med", r->set.med != UNSET, "value", r->set.med);
	put_communities(t, &r->set.add_communities);
	/* Prepending repeats on import the neighbour's number, on export our own. */
	tree_open(t, "prepend", '[');
	for (uint32_t i = 0; f->prepend_asn && i < r->set.prepend; i++) {
		if (f->import)
			tree_text(t, NULL, "bgp_path.first");
		else
			tree_printf(t, NULL, "%u", f->prepend_asn);
	}
	tree_close(t);
	tree_bool(t, "accept", r->action == FILTER_ACCEPT);
	tree_bool(t, "reject", r->action == FILTER_REJECT);
	tree_close(t);
}

static int filter_order(const void *a, const void *b)
{
	return strcmp((*(const struct bird_filter *const *)a)->name,
		      (*(const struct bird_filter *const *)b)->name);
}

static int put_filters(struct tree *t, const struct bird_making *m, sa_family_t family)
{
	AUTO(free) const struct bird_filter **v = calloc(m->filters.n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < m->filters.n; i++)
		v[i] = &m->filters.v[i];
	qsort(v, m->filters.n, sizeof(*v), filter_order);
	tree_open(t, "filters", '[');
	for (size_t i = 0; i < m->filters.n; i++) {
		tree_open(t, NULL, '{');
		tree_text(t, "name", v[i]->name);
		tree_bool(t, "import", v[i]->import);
		tree_bool(t, "verifyOwner", v[i]->verify_owner);
		tree_open(t, "rules", '[');
		for (size_t k = 0; v[i]->record && k < v[i]->record->rules.n; k++) {
			const struct filter_rule *r = &v[i]->record->rules.v[k];

			if (!r->match.cidr.address.family || r->match.cidr.address.family == family)
				put_rule(t, v[i], r);
		}
		tree_close(t);
		tree_close(t);
	}
	tree_close(t);
	return 0;
}

struct ownership {
	struct address neighbour;
	struct prefix block;
};

static int ownership_order(const void *a, const void *b)
{
	const struct ownership *x = a, *y = b;
	int r = address_compare(&x->neighbour, &y->neighbour);

	return r ?: prefix_compare(&x->block, &y->block);
}

static int owned_order(const void *a, const void *b)
{
	const struct bird_owned *x = *(const struct bird_owned *const *)a,
				*y = *(const struct bird_owned *const *)b;
	int r = strcmp(x->node, y->node);

	return r ?: prefix_compare(&x->block, &y->block);
}

static int by_owner(const void *node, const void *owned)
{
	return strcmp(node, (*(const struct bird_owned *const *)owned)->node);
}

static size_t add_ownerships(struct ownership *v, const struct node *n, const struct prefix *block)
{
	size_t i = 0;

	if (n->ipv4.address.family)
		v[i++] = (struct ownership){ n->ipv4.address, *block };
	if (n->ipv6.address.family)
		v[i++] = (struct ownership){ n->ipv6.address, *block };
	return i;
}

/* Each node of each block, by either of its addresses, because IPv6 sessions carry IPv4 too. */
static int list_ownerships(const struct bird_input *in, sa_family_t family, struct ownership **ret,
			   size_t *ret_n)
{
	AUTO(free) const struct bird_owned **owned = calloc(in->n_owned ?: 1, sizeof(*owned));
	struct ownership *v = NULL;
	size_t n = 0, room = 0;

	if (!owned)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_owned; i++)
		owned[i] = &in->owned[i];
	qsort(owned, in->n_owned, sizeof(*owned), owned_order);
	for (size_t i = 0; i < in->n_nodes; i++) {
		const char *name = in->nodes[i].node->name;
		const struct bird_owned **at = bsearch(name, owned, in->n_owned, sizeof(*owned),
						       by_owner);

		while (at && at > owned && strcmp(at[-1]->node, name) == 0)
			at--;
		for (; at && at < owned + in->n_owned && strcmp((*at)->node, name) == 0; at++) {
			if ((*at)->block.address.family != family)
				continue;
			if (n + 2 > room) {
				size_t grown = room ? room * 2 : 64;
				struct ownership *w = reallocarray(v, grown, sizeof(*v));

				if (!w) {
					free(v);
					return -ENOMEM;
				}
				v = w;
				room = grown;
			}
			n += add_ownerships(v + n, in->nodes[i].node, &(*at)->block);
		}
	}
	if (n)
		n = sort_unique(v, n, sizeof(*v), ownership_order, ownership_order);
	*ret = v;
	*ret_n = n;
	return 0;
}

/* More than any preference. */
static uint32_t ownership_sum(const struct ownership *v, size_t n)
{
	char sum[HASH_TEXT] = "", address[ADDRESS_TEXT], block[PREFIX_TEXT];
	struct hash h = { 0 };

	for (size_t i = 0; i < n; i++) {
		h = HASH_TEXTS(sum, address_print(&v[i].neighbour, address),
			       prefix_print(&v[i].block, block));
		hash_print(h, sum);
	}
	return (uint32_t)h.low | 1U << 31;
}

/* Two records with one address share it: neither keeps the other's blocks out. */
static int put_owners(struct tree *t, const struct bird_making *m, sa_family_t family)
{
	AUTO(free) struct ownership *v = NULL;
	size_t n;
	int r = list_ownerships(m->in, family, &v, &n);

	if (r < 0)
		return r;
	tree_number(t, "ownersSum", ownership_sum(v, n));
	tree_open(t, "owners", '[');
	for (size_t i = 0; i < n;) {
		size_t first = i;

		tree_open(t, NULL, '{');
		tree_address(t, "neighbour", &v[i].neighbour);
		tree_open(t, "owned", '[');
		for (; i < n && address_compare(&v[i].neighbour, &v[first].neighbour) == 0; i++) {
			tree_open(t, NULL, '{');
			tree_prefix(t, "prefix", &v[i].block);
			tree_bool(t, "more",
				  i + 1 < n && address_compare(&v[i + 1].neighbour,
							       &v[first].neighbour) == 0);
			tree_close(t);
		}
		tree_close(t);
		tree_close(t);
	}
	tree_close(t);
	return 0;
}

static int put_family(struct tree *t, const struct bird_making *m, bool four)
{
	sa_family_t family = four ? AF_INET : AF_INET6;
	int r;

	tree_open(t, NULL, '{');
	tree_text(t, "digit", four ? "4" : "6");
	tree_text(t, "channel", four ? "ipv4" : "ipv6");
	tree_bool(t, "isIpv4", four);
	/* Keeps a set from being empty, which BIRD refuses; no route is ever this. */
	tree_text(t, "never",
		  four ? "255.255.255.255/32" : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
	r = put_extents(t, m->in, family);
	put_own(t, &m->plan, family);
	r = r ?: put_owners(t, m, family);
	r = r ?: put_filters(t, m, family);
	tree_close(t);
	return r;
}

/* --- the rest ------------------------------------------------------------------------------- */

static void put_bfd(struct tree *t, const struct bird_making *m)
{
	const struct config_bfd *c = &m->in->config->bfd;
	bool any = false;

	for (size_t i = 0; i < m->plan.n_sessions; i++)
		any |= m->plan.sessions[i].options.bfd;
	if (!open_if(t, "bfd", any))
		return;
	tree_number(t, "minRx", c->min_rx);
	tree_number(t, "minTx", c->min_tx);
	tree_number(t, "multiplier", c->multiplier);
	tree_close(t);
}

static void put_interfaces(struct tree *t, const struct texts *from)
{
	tree_open(t, "interfaces", '[');
	for (size_t i = 0; i < from->n; i++) {
		tree_open(t, NULL, '{');
		tree_text(t, "pattern", from->v[i]);
		tree_bool(t, "more", i + 1 < from->n);
		tree_close(t);
	}
	tree_close(t);
	tree_bool(t, "allInterfaces", from->n == 0);
}

static void put_ospf(struct tree *t, const struct bird_making *m)
{
	const struct config_ospf *c = &m->in->config->ospf;

	if (!open_if(t, "ospf", m->ospf))
		return;
	tree_bool(t, "ipv4", m->in->ipv4.address.family);
	tree_bool(t, "ipv6", m->in->ipv6.address.family);
	tree_address(t, "area", &c->area);
	put_interfaces(t, &c->interfaces);
	tree_number(t, "cost", c->cost);
	tree_number(t, "hello", c->hello);
	tree_number(t, "dead", c->dead);
	tree_text(t, "type", c->type == OSPF_PTP ? "ptp" : "broadcast");
	text_or_false(t, "password", m->ospf_password);
	tree_close(t);
}

static void put_rip(struct tree *t, const struct bird_making *m)
{
	const struct config_rip *c = &m->in->config->rip;

	if (!open_if(t, "rip", m->rip))
		return;
	tree_bool(t, "ipv4", m->in->ipv4.address.family);
	tree_bool(t, "ipv6", m->in->ipv6.address.family && !m->rip_password);
	put_interfaces(t, &c->interfaces);
	tree_number(t, "updateTime", c->update_time);
	tree_number(t, "timeoutTime", c->timeout_time);
	text_or_false(t, "password", m->rip_password);
	tree_close(t);
}

int bird_tree(struct bird_making *m)
{
	const struct bird_input *in = m->in;
	const struct config_bgp *bgp = &in->config->bgp;
	struct tree t = tree_new();
	int r, end;

	t.literal_names = true;
	tree_address(&t, "routerId", &in->router_id);
	tree_number(&t, "kernelProtocol", in->kernel_protocol);
	tree_number(&t, "ecmp", bgp->ecmp);
	tree_bool(&t, "announceStatic", in->config->announce == ANNOUNCE_STATIC);
	tree_bool(&t, "transit", m->transit);
	tree_bool(&t, "authenticationOption", in->version >= BIRD_AUTH_OPTION);
	if (open_if(&t, "ownCommunities", bgp->communities.n)) {
		put_communities(&t, &bgp->communities);
		tree_close(&t);
	}
	number_if(&t, "exportTable", in->config->export_table, "table", in->config->export_table);
	tree_open(&t, "families", '[');
	r = put_family(&t, m, true);
	r = r ?: put_family(&t, m, false);
	tree_close(&t);
	r = r ?: put_groups(&t, m);
	put_bfd(&t, m);
	put_ospf(&t, m);
	put_rip(&t, m);
	text_or_false(&t, "snippets", in->snippets);
	end = tree_end(&t, &m->plan.tree);
	return r ?: end;
}
