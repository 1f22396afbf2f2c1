/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's route on selected nodes, and how each of them reports it. */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

#include "lib/model/record.h"

static const char *const on_tamper[] = { "restore", "report", NULL };

static const struct field gateway = { ELEMENT(address) };

#define TABLE_LOCAL 255

static const struct field fields[] = {
	{ FIELD(static_route, subnet, "subnet", prefix), .required = true },
	{ LIST(static_route, gateways, "gateways", &gateway) },
	{ ONLY(static_route, gateways, "gateway", &gateway) },
	{ FIELD(static_route, table, "table", number), .min = 1, .max = INT32_MAX },
	{ FIELD(static_route, metric, "metric", number), .max = UINT32_MAX },
	{ FIELD(static_route, node_selector, "nodeSelector", selector) },
	{ FIELD(static_route, on_tamper, "onTamper", choice), .choices = on_tamper },
	{ FIELD(static_route, deleting, "deleting", time) },
};

/* --- rules ---------------------------------------------------------------------------------- */

/*
 * No node may have these from us, whatever it is configured to protect: packets to itself, to the
 * link and to groups would go astray.
 */
static int never_routed(const struct prefix *subnet, struct err *err)
{
	static const struct {
		const char *prefix, *what;
	} kept[] = {
		{ "127.0.0.0/8", "loopback" },      { "::1/128", "loopback" },
		{ "169.254.0.0/16", "link-local" }, { "fe80::/10", "link-local" },
		{ "224.0.0.0/4", "multicast" },     { "ff00::/8", "multicast" },
	};
	char text[PREFIX_TEXT];
	struct prefix p;

	if (subnet->length == 0)
		return err_set(err, -EINVAL,
			       "field \"subnet\": %s is the default route, which is the node's own",
			       prefix_print(subnet, text));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (prefix_parse(kept[i].prefix, &p) == 0 && prefix_overlaps(subnet, &p))
			return err_set(err, -EINVAL,
				       "field \"subnet\": %s overlaps %s (%s), where no static "
				       "route may be",
				       prefix_print(subnet, text), kept[i].prefix, kept[i].what);
	return 0;
}

static bool is_broadcast(const struct address *a)
{
	static const uint8_t all[4] = { 255, 255, 255, 255 };

	return a->family == AF_INET && memcmp(a->bytes, all, sizeof(all)) == 0;
}

static const char *wrong_gateway(const struct address *a, const struct prefix *subnet)
{
	if (a->family != subnet->address.family)
		return "is not of the family of \"subnet\"";
	if (address_is_no_neighbour(a) || address_is_loopback(a) || is_broadcast(a))
		return "is not the address of a router";
	/* Which link it is on nobody could tell. A detected gateway may well be one. */
	if (a->family == AF_INET6 && address_is_link_local(a))
		return "is link-local: give a global address of the router, or no gateway, so that "
		       "it is detected";
	return NULL;
}

static int gateways_check(const struct static_route *route, struct err *err)
{
	const struct addresses *g = &route->gateways;
	char text[ADDRESS_TEXT];

	if (g->n > STATIC_ROUTE_GATEWAYS_MAX)
		return err_set(err, -EINVAL, "field \"gateways\": %zu are more than %d", g->n,
			       STATIC_ROUTE_GATEWAYS_MAX);
	for (size_t i = 0; i < g->n; i++) {
		const char *wrong = wrong_gateway(&g->v[i], &route->subnet);

		address_print(&g->v[i], text);
		if (wrong)
			return err_set(err, -EINVAL, "field \"gateways[%zu]\": %s %s", i, text,
				       wrong);
		for (size_t j = 0; j < i; j++)
			if (address_compare(&g->v[i], &g->v[j]) == 0)
				return err_set(err, -EINVAL,
					       "field \"gateways[%zu]\": %s is there twice", i,
					       text);
	}
	return 0;
}

static int check(const void *record, struct err *err)
{
	const struct static_route *route = record;
	int r = never_routed(&route->subnet, err);

	if (r == 0)
		r = gateways_check(route, err);
	if (r < 0)
		return r;
	if (route->table == TABLE_LOCAL)
		return err_set(err, -EINVAL,
			       "field \"table\": 255 is the kernel's own table (local)");
	return 0;
}

static const struct record_part parts[] = { RECORD_PART(static_route, name, text, name) };

const struct record static_route_record = {
	.kind = KEY_STATIC_ROUTE,
	.size = sizeof(struct static_route),
	.parts = parts,
	.n_parts = ARRAY_SIZE(parts),
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
	.check = check,
};

RECORD_DEFINE(static_route, static_route_record)

/* --- the head of one that is wrong elsewhere ------------------------------------------------ */

static const struct field head_fields[] = {
	{ FIELD(static_route_head, node_selector, "nodeSelector", selector) },
	{ FIELD(static_route_head, deleting, "deleting", time) },
};

static const struct record_part head_parts[] = { RECORD_PART(static_route_head, name, text, name) };

#define HEAD(first, count)                                                                         \
	{                                                                                          \
		.kind = KEY_STATIC_ROUTE, .size = sizeof(struct static_route_head),                \
		.parts = head_parts, .n_parts = ARRAY_SIZE(head_parts),                            \
		.fields = head_fields + (first), .n_fields = (count)                               \
	}

/* Both, then each alone. */
static const struct record heads[] = { HEAD(0, 2), HEAD(0, 1), HEAD(1, 1) };

int static_route_head_decode(const char *key, const char *json, size_t len,
			     struct static_route_head *ret, struct err *err)
{
	struct err why = { "" };
	int r = -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		/* The first sentence is the one that tells most. */
		int tried = record_decode(&heads[i], key, json, len, ret, i ? NULL : &why);

		if (tried == 0) {
			ret->selector_known = heads[i].fields == head_fields;
			return 0;
		}
		r = i ? r : tried;
	}
	return err_set(err, r, "%s", why.text);
}

void static_route_head_done(struct static_route_head *head)
{
	record_done(&heads[0], head);
}

/* --- status --------------------------------------------------------------------------------- */

static const struct field tampered_fields[] = {
	{ FIELD(static_route_tampered, count, "count", number), .max = UINT32_MAX },
	{ FIELD(static_route_tampered, last, "last", time) },
};

static const struct field status_fields[] = {
	{ FIELD(static_route_status, subnet, "subnet", prefix) },
	{ LIST(static_route_status, gateways, "gateways", &gateway) },
	{ FIELD(static_route_status, table, "table", number), .max = UINT32_MAX },
	{ FIELD(static_route_status, since, "since", time) },
	{ FIELD(static_route_status, revision, "revision", revision) },
	{ FIELD(static_route_status, error, "error", text), .check = sentence_check },
	{ OBJECT(static_route_status, tampered, "tampered", tampered_fields) },
};

static const struct record_part status_parts[] = {
	RECORD_PART(static_route_status, name, text, name),
	RECORD_PART(static_route_status, node, text, node),
};

const struct record static_route_status_record = {
	.kind = KEY_STATUS_STATIC_ROUTE,
	.size = sizeof(struct static_route_status),
	.parts = status_parts,
	.n_parts = ARRAY_SIZE(status_parts),
	.fields = status_fields,
	.n_fields = ARRAY_SIZE(status_fields),
};

RECORD_DEFINE(static_route_status, static_route_status_record)
