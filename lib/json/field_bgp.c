/* SPDX-License-Identifier: Apache-2.0 */
/* The types of fields.h that only BGP's records have: a flag that may be unset, a neighbour. */
#include <errno.h>
#include <string.h>

#include "lib/json/fields.h"

/* --- a flag that may be left to another record ---------------------------------------------- */

static int maybe_read(const struct field *f, struct json_at in, void *at)
{
	bool yes;

	if (json_read_bool(in, &yes) <= 0)
		return -EINVAL;
	*(enum maybe *)at = yes ? MAYBE_YES : MAYBE_NO;
	return 0;
}

static int maybe_write(const struct field *f, const void *at, const void *usual,
		       struct json_object **ret)
{
	*ret = json_object_new_boolean(*(const enum maybe *)at == MAYBE_YES);
	return *ret ? 0 : -ENOMEM;
}

static bool maybe_equal(const struct field *f, const void *a, const void *b)
{
	return *(const enum maybe *)a == *(const enum maybe *)b;
}

const struct field_type field_maybe = {
	.read = maybe_read,
	.write = maybe_write,
	.equal = maybe_equal,
};

/* --- neighbour: "192.0.2.1", "fe80::1%eth0" ------------------------------------------------- */

static int zone_read(struct json_at in, const char *zone, struct neighbour *n)
{
	struct err why;

	if (n->address.family != AF_INET6 || !address_is_link_local(&n->address))
		return json_refuse(in, "has an interface, which only fe80::/10 addresses need");
	if (interface_check(zone, &why) < 0)
		return json_wrong(in, "%s", why.text);
	snprintf(n->zone, sizeof(n->zone), "%s", zone);
	return 0;
}

static int neighbour_read(const struct field *f, struct json_at in, void *at)
{
	struct neighbour n = { 0 };
	char address[ADDRESS_TEXT];
	const char *text, *zone;
	size_t len;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r < 0 ? r : -EINVAL;
	zone = strchr(text, '%');
	len = zone ? (size_t)(zone - text) : strlen(text);
	if (len >= sizeof(address))
		return json_refuse(in, "is not an address");
	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	if (address_parse(address, &n.address) < 0)
		return json_refuse(in, "is not an address");
	r = zone ? zone_read(in, zone + 1, &n) : 0;
	if (r < 0)
		return r;
	if (!zone && n.address.family == AF_INET6 && address_is_link_local(&n.address))
		return json_refuse(in, "needs its interface, as in \"fe80::1%%eth0\"");
	*(struct neighbour *)at = n;
	return 0;
}

static int neighbour_write(const struct field *f, const void *at, const void *usual,
			   struct json_object **ret)
{
	const struct neighbour *n = at;
	char address[ADDRESS_TEXT] = "", text[ADDRESS_TEXT + IF_NAME_TEXT];

	if (n->address.family)
		address_print(&n->address, address);
	snprintf(text, sizeof(text), "%s%s%s", address, n->zone[0] ? "%" : "", n->zone);
	*ret = json_object_new_string(text);
	return *ret ? 0 : -ENOMEM;
}

static bool neighbour_equal(const struct field *f, const void *a, const void *b)
{
	const struct neighbour *x = a, *y = b;

	return x->address.family == y->address.family && strcmp(x->zone, y->zone) == 0 &&
	       (!x->address.family || address_compare(&x->address, &y->address) == 0);
}

const struct field_type field_neighbour = {
	.blank_is_absent = true,
	.read = neighbour_read,
	.write = neighbour_write,
	.equal = neighbour_equal,
};
