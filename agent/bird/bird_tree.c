/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bird/bird_tree.h"

#include <errno.h>
#include <string.h>

#include "agent/bird/json_tree.h"

/* --- sessions ------------------------------------------------------------------------------- */

static void put_channel(struct json_tree *t, struct json_object *list, const struct bird_making *m,
			const struct bird_options *opt, bool four)
{
	struct json_object *o = json_tree_append_object(t, list);

	json_tree_text(t, o, "channel", four ? "ipv4" : "ipv6");
	json_tree_text(t, o, "digit", four ? "4" : "6");
	json_tree_text(t, o, "import", m->filters.v[opt->import].name);
	json_tree_text(t, o, "export", m->filters.v[opt->export].name);
	json_tree_flag(t, o, "nextHopSelf", opt->next_hop == BIRD_NEXT_HOP_SELF);
	json_tree_flag(t, o, "nextHopSelfEbgp", opt->next_hop == BIRD_NEXT_HOP_SELF_EBGP);
	json_tree_flag(t, o, "nextHopKeep", opt->next_hop == BIRD_NEXT_HOP_KEEP);
	json_tree_flag(t, o, "gatewayRecursive", opt->gateway_recursive);
	json_tree_flag(t, o, "extendedNextHop", four && opt->extended_next_hop);
}

static struct json_object *put_group(struct json_tree *t, struct json_object *groups, size_t number,
				     const struct bird_making *m, const struct bird_options *opt)
{
	struct json_object *o = json_tree_append_object(t, groups), *channels;
	struct address cluster_id = { .family = AF_INET };
	char name[32];

	snprintf(name, sizeof(name), "group%zu", number);
	json_tree_text(t, o, "group", name);
	json_tree_one(t, o, "multihop", opt->multihop, "hops", opt->multihop);
	json_tree_number(t, o, "holdTime", opt->hold_time);
	json_tree_one(t, o, "keepaliveTime", opt->keepalive_time, "seconds", opt->keepalive_time);
	json_tree_number(t, o, "connectRetryTime", opt->connect_retry_time);
	json_tree_flag(t, o, "gracefulRestart", opt->graceful_restart);
	json_tree_number(t, o, "gracefulRestartTime", opt->graceful_restart_time);
	json_tree_flag(t, o, "useBfd", opt->bfd);
	json_tree_flag(t, o, "ttlSecurity", opt->ttl_security);
	json_tree_one(t, o, "allowLocalAs", opt->allow_local_as, "times", opt->allow_local_as);
	json_tree_flag(t, o, "reflectorClient", opt->rr_client);
	memcpy(cluster_id.bytes, opt->cluster_id, sizeof(opt->cluster_id));
	if (!address_is_unspecified(&cluster_id))
		json_tree_address(t, o, "clusterId", &cluster_id);
	else
		json_tree_flag(t, o, "clusterId", false);
	channels = json_tree_list(t, o, "channels");
	if (opt->ipv4)
		put_channel(t, channels, m, opt, true);
	if (opt->ipv6)
		put_channel(t, channels, m, opt, false);
	return json_tree_list(t, o, "sessions");
}

static void put_session(struct json_tree *t, struct json_object *list, const struct bird_session *s)
{
	struct json_object *o = json_tree_append_object(t, list);
	char address[ADDRESS_TEXT], text[ADDRESS_TEXT + IF_NAME_TEXT + 4];

	json_tree_text(t, o, "name", s->name);
	if (s->neighbour.zone[0])
		snprintf(text, sizeof(text), "%s%%'%s'",
			 address_print(&s->neighbour.address, address), s->neighbour.zone);
	else
		address_print(&s->neighbour.address, text);
	json_tree_text(t, o, "neighbour", text);
	json_tree_number(t, o, "asn", s->asn);
	json_tree_one(t, o, "port", s->port != 179, "number", s->port);
	if (s->local.family)
		json_tree_address(t, o, "local", &s->local);
	else
		json_tree_flag(t, o, "local", false);
	json_tree_one(t, o, "localPort", s->local_port != 179, "number", s->local_port);
	json_tree_number(t, o, "localAsn", s->options.local_asn);
	json_tree_flag(t, o, "passive", s->passive);
	json_tree_text_or(t, o, "password", s->password);
	json_tree_text_or(t, o, "description", s->description);
}

/* Groups come in the order of their first session, so they follow from the records alone. */
static void put_groups(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct bird_plan *plan = &m->plan;
	struct json_object *groups = json_tree_list(t, root, "groups");
	const struct bird_options **options = calloc(plan->n_sessions ?: 1, sizeof(*options));
	struct json_object **lists = calloc(plan->n_sessions ?: 1, sizeof(struct json_object *));
	size_t n = 0;

	t->failed |= !options || !lists;
	for (size_t i = 0; i < plan->n_sessions && !t->failed; i++) {
		const struct bird_session *s = &plan->sessions[i];
		size_t g = 0;

		while (g < n && memcmp(options[g], &s->options, sizeof(s->options)) != 0)
			g++;
		if (g == n) {
			options[n] = &s->options;
			lists[n] = put_group(t, groups, n + 1, m, &s->options);
			n++;
		}
		put_session(t, lists[g], s);
	}
	free(options);
	free(lists);
}

/* --- once for IPv4 and once for IPv6: blocks ------------------------------------------------ */

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = *(const struct extent *const *)a;
	const struct extent *y = *(const struct extent *const *)b;
	int r = prefix_compare(&x->cidr, &y->cidr);

	return r ?: (x->block_size > y->block_size) - (x->block_size < y->block_size);
}

/* blocks: extents whose blocks are seen as blackholes; singles: each address is a block. */
static void put_extents(struct json_tree *t, const struct bird_input *in, sa_family_t family,
			struct json_object *object)
{
	struct json_object *blocks = json_tree_list(t, object, "blocks");
	struct json_object *singles = json_tree_list(t, object, "singles");
	const struct extent **v = calloc(in->n_extents ?: 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; v && i < in->n_extents; i++)
		if (in->extents[i].extent->cidr.address.family == family &&
		    bird_extent_announced(&in->extents[i]))
			v[n++] = in->extents[i].extent;
	if (n)
		qsort(v, n, sizeof(*v), extent_order);
	for (size_t i = 0; i < n && !t->failed; i++) {
		bool single = v[i]->block_size == address_bits(&v[i]->cidr.address);
		struct json_object *o;
		char text[PREFIX_TEXT];

		if (i && extent_order(&v[i - 1], &v[i]) == 0)
			continue; /* two networks */
		o = json_tree_append_object(t, single ? singles : blocks);
		json_tree_text(t, o, "cidr", prefix_print(&v[i]->cidr, text));
		json_tree_number(t, o, "length", v[i]->block_size);
	}
	t->failed |= !v;
	free(v);
}

static void put_own(struct json_tree *t, const struct bird_plan *plan, sa_family_t family,
		    struct json_object *object)
{
	struct json_object *list = json_tree_list(t, object, "own");

	for (size_t i = 0; i < plan->n_announced; i++) {
		char text[PREFIX_TEXT];

		if (plan->announced[i].address.family == family)
			json_tree_append(
				t, list,
				json_object_new_string(prefix_print(&plan->announced[i], text)));
	}
}

/* --- filters -------------------------------------------------------------------------------- */

static bool is_large(const char *community)
{
	const char *first = strchr(community, ':');

	return first && strchr(first + 1, ':');
}

/* "65000:1" as BIRD writes a pair: 65000,1 */
static struct json_object *community_value(const char *text)
{
	char copy[40];

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = copy; *p; p++)
		if (*p == ':')
			*p = ',';
	return json_object_new_string(copy);
}

static void put_community(struct json_tree *t, struct json_object *object, const char *key,
			  const char *text)
{
	if (text && text[0])
		json_tree_put(t, object, key, community_value(text));
	else
		json_tree_flag(t, object, key, false);
}

static void put_communities(struct json_tree *t, struct json_object *object,
			    const struct texts *from)
{
	struct json_object *plain = json_tree_list(t, object, "addCommunities");
	struct json_object *large = json_tree_list(t, object, "addLargeCommunities");

	for (size_t i = 0; i < from->n; i++)
		json_tree_append(t, is_large(from->v[i]) ? large : plain,
				 community_value(from->v[i]));
}

static void put_match(struct json_tree *t, struct json_object *rule,
		      const struct filter_match *match)
{
	static const char *const origins[] = { "", "ORIGIN_IGP", "ORIGIN_EGP",
					       "ORIGIN_INCOMPLETE" };
	struct json_object *cidr = json_tree_object(t, rule, "cidr",
						    match->cidr.address.family != 0);
	char text[PREFIX_TEXT];

	if (cidr) {
		uint32_t ge, le;

		filter_lengths(match, &ge, &le);
		json_tree_text(t, cidr, "prefix", prefix_print(&match->cidr, text));
		json_tree_number(t, cidr, "ge", ge);
		json_tree_number(t, cidr, "le", le);
	}
	put_community(t, rule, "community", match->community);
	put_community(t, rule, "largeCommunity", match->large_community);
	json_tree_one(t, rule, "asPathContains", match->as_path_contains, "asn",
		      match->as_path_contains);
	if (match->origin)
		json_tree_text(t, rule, "origin", origins[match->origin]);
	else
		json_tree_flag(t, rule, "origin", false);
}

/* Prepending on the way in repeats the neighbour's number, on the way out our own. */
static void put_prepend(struct json_tree *t, struct json_object *rule, const struct bird_filter *f,
			uint32_t times)
{
	struct json_object *list = json_tree_list(t, rule, "prepend");
	char asn[16];

	snprintf(asn, sizeof(asn), "%u", f->prepend_asn);
	for (uint32_t i = 0; f->prepend_asn && i < times; i++)
		json_tree_append(t, list,
				 json_object_new_string(f->import ? "bgp_path.first" : asn));
}

static void put_rule(struct json_tree *t, struct json_object *list, const struct bird_filter *f,
		     const struct filter_rule *r)
{
	struct json_object *rule = json_tree_append_object(t, list);

	put_match(t, rule, &r->match);
	json_tree_one(t, rule, "localPref", r->set.local_pref != UNSET, "value", r->set.local_pref);
	json_tree_one(t, rule, "med", r->set.med != UNSET, "value", r->set.med);
	put_communities(t, rule, &r->set.add_communities);
	put_prepend(t, rule, f, r->set.prepend);
	json_tree_flag(t, rule, "accept", r->action == FILTER_ACCEPT);
	json_tree_flag(t, rule, "reject", r->action == FILTER_REJECT);
}

static int filter_order(const void *a, const void *b)
{
	return strcmp((*(const struct bird_filter *const *)a)->name,
		      (*(const struct bird_filter *const *)b)->name);
}

static void put_filter(struct json_tree *t, struct json_object *list, const struct bird_filter *f,
		       sa_family_t family)
{
	struct json_object *o = json_tree_append_object(t, list), *rules;

	json_tree_text(t, o, "name", f->name);
	json_tree_flag(t, o, "import", f->import);
	rules = json_tree_list(t, o, "rules");
	for (size_t i = 0; f->record && i < f->record->rules.n; i++) {
		const struct filter_rule *r = &f->record->rules.v[i];

		if (!r->match.cidr.address.family || r->match.cidr.address.family == family)
			put_rule(t, rules, f, r);
	}
}

static void put_filters(struct json_tree *t, const struct bird_making *m, sa_family_t family,
			struct json_object *object)
{
	struct json_object *list = json_tree_list(t, object, "filters");
	const struct bird_filter **v = calloc(m->filters.n, sizeof(*v));

	if (!v) {
		t->failed = true;
		return;
	}
	for (size_t i = 0; i < m->filters.n; i++)
		v[i] = &m->filters.v[i];
	qsort(v, m->filters.n, sizeof(*v), filter_order);
	for (size_t i = 0; i < m->filters.n; i++)
		put_filter(t, list, v[i], family);
	free(v);
}

/* What there is once for IPv4 and once for IPv6. */
static void put_families(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6 };
	struct json_object *list = json_tree_list(t, root, "families");

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		bool four = families[i] == AF_INET;
		struct json_object *o = json_tree_append_object(t, list);

		json_tree_text(t, o, "digit", four ? "4" : "6");
		json_tree_text(t, o, "channel", four ? "ipv4" : "ipv6");
		json_tree_flag(t, o, "isIpv4", four);
		/* Keeps a set from being empty, which BIRD refuses; no route is ever this. */
		json_tree_text(t, o, "never",
			       four ? "255.255.255.255/32"
				    : "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128");
		put_extents(t, m->in, families[i], o);
		put_own(t, &m->plan, families[i], o);
		put_filters(t, m, families[i], o);
	}
}

/* --- the rest ------------------------------------------------------------------------------- */

static void put_bfd(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_bfd *c = &m->in->config->bfd;
	struct json_object *o;
	bool any = false;

	for (size_t i = 0; i < m->plan.n_sessions; i++)
		any |= m->plan.sessions[i].options.bfd;
	o = json_tree_object(t, root, "bfd", any);
	if (!o)
		return;
	json_tree_number(t, o, "minRx", c->min_rx);
	json_tree_number(t, o, "minTx", c->min_tx);
	json_tree_number(t, o, "multiplier", c->multiplier);
}

static void put_interfaces(struct json_tree *t, struct json_object *o, const struct texts *from)
{
	struct json_object *list = json_tree_list(t, o, "interfaces");

	for (size_t i = 0; i < from->n; i++) {
		struct json_object *interface = json_tree_append_object(t, list);

		json_tree_text(t, interface, "pattern", from->v[i]);
		json_tree_flag(t, interface, "more", i + 1 < from->n);
	}
	json_tree_flag(t, o, "allInterfaces", from->n == 0);
}

static void put_ospf(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_ospf *c = &m->in->config->ospf;
	struct json_object *o = json_tree_object(t, root, "ospf", m->ospf);

	if (!o)
		return;
	json_tree_flag(t, o, "ipv4", m->in->ipv4.address.family);
	json_tree_flag(t, o, "ipv6", m->in->ipv6.address.family);
	json_tree_address(t, o, "area", &c->area);
	put_interfaces(t, o, &c->interfaces);
	json_tree_number(t, o, "cost", c->cost);
	json_tree_number(t, o, "hello", c->hello);
	json_tree_number(t, o, "dead", c->dead);
	json_tree_text(t, o, "type", c->type == OSPF_PTP ? "ptp" : "broadcast");
	json_tree_text_or(t, o, "password", m->ospf_password);
}

static void put_rip(struct json_tree *t, const struct bird_making *m, struct json_object *root)
{
	const struct config_rip *c = &m->in->config->rip;
	struct json_object *o = json_tree_object(t, root, "rip", m->rip);

	if (!o)
		return;
	json_tree_flag(t, o, "ipv4", m->in->ipv4.address.family);
	json_tree_flag(t, o, "ipv6", m->in->ipv6.address.family && !m->rip_password);
	put_interfaces(t, o, &c->interfaces);
	json_tree_number(t, o, "updateTime", c->update_time);
	json_tree_number(t, o, "timeoutTime", c->timeout_time);
	json_tree_text_or(t, o, "password", m->rip_password);
}

int bird_tree(struct bird_making *m)
{
	AUTO(json_put) struct json_object *root = json_object_new_object();
	const struct bird_input *in = m->in;
	struct json_object *own;
	struct json_tree t = { 0 };

	if (!root)
		return -ENOMEM;
	json_tree_address(&t, root, "routerId", &in->router_id);
	json_tree_number(&t, root, "kernelProtocol", in->kernel_protocol);
	json_tree_number(&t, root, "ecmp", in->config->bgp.ecmp);
	json_tree_flag(&t, root, "announceStatic", in->config->announce == ANNOUNCE_STATIC);
	json_tree_flag(&t, root, "transit", m->transit);
	json_tree_flag(&t, root, "authenticationOption", in->version >= BIRD_AUTH_OPTION);
	own = json_tree_object(&t, root, "ownCommunities", in->config->bgp.communities.n);
	if (own)
		put_communities(&t, own, &in->config->bgp.communities);
	json_tree_one(&t, root, "exportTable", in->config->export_table, "table",
		      in->config->export_table);
	put_families(&t, m, root);
	put_groups(&t, m, root);
	put_bfd(&t, m, root);
	put_ospf(&t, m, root);
	put_rip(&t, m, root);
	json_tree_text_or(&t, root, "snippets", in->snippets);
	if (t.failed)
		return -ENOMEM;
	m->plan.tree = TAKE(root);
	return 0;
}
