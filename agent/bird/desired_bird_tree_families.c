/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the tree that there is once for IPv4 and once for IPv6: blocks and filters. */
#include <string.h>

#include "agent/bird/desired_bird_parts.h"

/* --- blocks --------------------------------------------------------------------------------- */

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

void bird_tree_communities(struct json_tree *t, struct json_object *object,
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
	bird_tree_communities(t, rule, &r->set.add_communities);
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
	const struct bird_filter **v = calloc(m->n_filters, sizeof(*v));

	if (!v) {
		t->failed = true;
		return;
	}
	for (size_t i = 0; i < m->n_filters; i++)
		v[i] = &m->filters[i];
	qsort(v, m->n_filters, sizeof(*v), filter_order);
	for (size_t i = 0; i < m->n_filters; i++)
		put_filter(t, list, v[i], family);
	free(v);
}

/* What there is once for IPv4 and once for IPv6. */
void bird_tree_families(struct json_tree *t, const struct bird_making *m, struct json_object *root)
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
