/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

#include "lib/model/record.h"

static const char *const actions[] = { "accept", "reject", "continue", NULL };
static const char *const origins[] = { "any", "igp", "egp", "incomplete", NULL };

static const struct field community = { ELEMENT(text), .check = community_check };

static const struct field match_fields[] = {
	{ FIELD(filter_match, cidr, "cidr", prefix) },
	{ FIELD(filter_match, ge, "ge", number), .max = 128, .initial = UNSET },
	{ FIELD(filter_match, le, "le", number), .max = 128, .initial = UNSET },
	{ FIELD(filter_match, community, "community", text), .check = plain_community_check },
	{ FIELD(filter_match, large_community, "largeCommunity", text),
	  .check = large_community_check },
	{ FIELD(filter_match, as_path_contains, "asPathContains", number), .min = 1,
	  .max = UINT32_MAX },
	{ FIELD(filter_match, origin, "origin", choice), .choices = origins },
};

static const struct field set_fields[] = {
	{ FIELD(filter_set, local_pref, "localPref", number), .max = UNSET - 1, .initial = UNSET },
	{ FIELD(filter_set, med, "med", number), .max = UNSET - 1, .initial = UNSET },
	{ LIST(filter_set, add_communities, "addCommunities", &community) },
	{ FIELD(filter_set, prepend, "prepend", number), .max = 16 },
};

static const struct field rule_fields[] = {
	{ OBJECT(filter_rule, match, "match", match_fields) },
	{ FIELD(filter_rule, action, "action", choice), .choices = actions, .required = true },
	{ OBJECT(filter_rule, set, "set", set_fields) },
};
static const struct field rule = { ELEMENT_OBJECT(filter_rule, rule_fields) };

static const struct field fields[] = {
	{ LIST(filter, rules, "rules", &rule), .required = true },
};

void filter_lengths(const struct filter_match *m, uint32_t *ret_ge, uint32_t *ret_le)
{
	bool exact = m->ge == UNSET && m->le == UNSET;

	*ret_ge = m->ge == UNSET ? m->cidr.length : m->ge;
	*ret_le = m->le != UNSET ? m->le : exact ? m->cidr.length : address_bits(&m->cidr.address);
}

static int match_check(const struct filter_match *m, size_t i, struct err *err)
{
	uint32_t ge, le;

	if (!m->cidr.address.family) {
		if (m->ge == UNSET && m->le == UNSET)
			return 0;
		return err_set(err, -EINVAL, "field \"rules[%zu].match\": ge and le need a cidr",
			       i);
	}
	filter_lengths(m, &ge, &le);
	if (m->cidr.length <= ge && ge <= le && le <= address_bits(&m->cidr.address))
		return 0;
	return err_set(err, -EINVAL,
		       "field \"rules[%zu].match\": not %u (cidr) <= %u (ge) <= %u (le) <= %u", i,
		       m->cidr.length, ge, le, address_bits(&m->cidr.address));
}

static int check(const void *record, struct err *err)
{
	const struct filter *f = record;

	if (f->rules.n > FILTER_RULES_MAX)
		return err_set(err, -EINVAL, "field \"rules\": %zu are more than %u", f->rules.n,
			       FILTER_RULES_MAX);
	for (size_t i = 0; i < f->rules.n; i++) {
		int r = match_check(&f->rules.v[i].match, i, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static const struct record_part parts[] = { RECORD_PART(filter, name, text, name) };

const struct record filter_record = {
	.kind = KEY_FILTER,
	.size = sizeof(struct filter),
	.parts = parts,
	.n_parts = ARRAY_SIZE(parts),
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
	.check = check,
};

RECORD_DEFINE(filter, filter_record)

/* --- by name -------------------------------------------------------------------------------- */

int peer_filter(const struct peer *peer, bool import, const struct filter *const *filters, size_t n,
		const struct filter **ret, struct err *err)
{
	const char *name = import ? peer->import_filter : peer->export_filter;

	*ret = NULL;
	if (!name || !*name)
		return 0;
	for (size_t i = 0; i < n && !*ret; i++)
		if (strcmp(filters[i]->name, name) == 0)
			*ret = filters[i];
	if (*ret)
		return 0;
	return err_set(err, -ENOENT, "field \"%s\": there is no valid filter/%s",
		       import ? "importFilter" : "exportFilter", name);
}
