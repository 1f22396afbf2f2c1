/* SPDX-License-Identifier: Apache-2.0 */
/* The types of fields.h that hold addresses, prefixes, MAC addresses and labels. */
#include <errno.h>
#include <string.h>

#include "lib/json/fields.h"

static int text_value(const char *text, struct json_object **ret)
{
	*ret = json_object_new_string(text);
	return *ret ? 0 : -ENOMEM;
}

static int fits_family(const struct field *f, struct json_at in, const struct address *a)
{
	if (f->family && a->family != f->family)
		return json_refuse(in, "is not %s", f->family == AF_INET ? "IPv4" : "IPv6");
	return 0;
}

/* --- address -------------------------------------------------------------------------------- */

static int address_field_read(const struct field *f, struct json_at in, void *at)
{
	struct address a;
	int r = json_read_address(in, &a);

	if (r > 0)
		r = fits_family(f, in, &a);
	if (r < 0)
		return r;
	*(struct address *)at = a;
	return 0;
}

static int address_field_write(const struct field *f, const void *at, const void *usual,
			       struct json_object **ret)
{
	const struct address *a = at;
	char text[ADDRESS_TEXT] = "";

	return text_value(a->family ? address_print(a, text) : "", ret);
}

static bool address_field_equal(const struct field *f, const void *a, const void *b)
{
	const struct address *x = a, *y = b;

	return x->family == y->family && (!x->family || address_compare(x, y) == 0);
}

const struct field_type field_address = {
	.blank_is_absent = true,
	.read = address_field_read,
	.write = address_field_write,
	.equal = address_field_equal,
};

/* --- prefix, host prefix, range ------------------------------------------------------------- */

static int keep_prefix(const struct field *f, struct json_at in, int r, const struct prefix *p,
		       void *at)
{
	if (r > 0)
		r = fits_family(f, in, &p->address);
	if (r < 0)
		return r;
	*(struct prefix *)at = *p;
	return 0;
}

static int prefix_field_read(const struct field *f, struct json_at in, void *at)
{
	struct prefix p;
	int r = json_read_prefix(in, &p);

	return keep_prefix(f, in, r, &p, at);
}

static int host_prefix_read(const struct field *f, struct json_at in, void *at)
{
	struct prefix p;
	int r = json_read_host_prefix(in, &p);

	return keep_prefix(f, in, r, &p, at);
}

/* The text decides which of the two it means to be, so that the message fits. */
static int range_read(const struct field *f, struct json_at in, void *at)
{
	struct address a;
	struct prefix p;
	const char *text;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	if (strchr(text, '/'))
		return prefix_field_read(f, in, at);
	r = json_read_address(in, &a);
	if (r > 0)
		p = prefix_of(&a, (uint8_t)address_bits(&a));
	return keep_prefix(f, in, r, &p, at);
}

static int prefix_field_write(const struct field *f, const void *at, const void *usual,
			      struct json_object **ret)
{
	const struct prefix *p = at;
	char text[PREFIX_TEXT] = "";

	return text_value(p->address.family ? prefix_print(p, text) : "", ret);
}

static int range_write(const struct field *f, const void *at, const void *usual,
		       struct json_object **ret)
{
	const struct prefix *p = at;

	if (p->address.family && p->length == address_bits(&p->address))
		return address_field_write(f, &p->address, NULL, ret);
	return prefix_field_write(f, at, usual, ret);
}

static bool prefix_field_equal(const struct field *f, const void *a, const void *b)
{
	const struct prefix *x = a, *y = b;

	return x->address.family == y->address.family &&
	       (!x->address.family || prefix_compare(x, y) == 0);
}

const struct field_type field_prefix = {
	.blank_is_absent = true,
	.read = prefix_field_read,
	.write = prefix_field_write,
	.equal = prefix_field_equal,
};

const struct field_type field_host_prefix = {
	.blank_is_absent = true,
	.read = host_prefix_read,
	.write = prefix_field_write,
	.equal = prefix_field_equal,
};

const struct field_type field_range = {
	.blank_is_absent = true,
	.read = range_read,
	.write = range_write,
	.equal = prefix_field_equal,
};

/* --- MAC address ---------------------------------------------------------------------------- */

static int mac_read(const struct field *f, struct json_at in, void *at)
{
	const char *text;
	struct mac mac;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r <= 0)
		return r;
	/* Records have lower case: equal addresses are equal texts. */
	if (!mac_parse(text, &mac) || !mac_is_of_device(&mac) || text[strcspn(text, "ABCDEF")])
		return json_refuse(in, "is not the MAC address of a device, such as "
				       "\"02:00:0a:01:00:05\"");
	*(struct mac *)at = mac;
	return 0;
}

static int mac_write(const struct field *f, const void *at, const void *usual,
		     struct json_object **ret)
{
	char text[MAC_TEXT];

	return text_value(mac_print(at, text), ret);
}

static bool mac_equal(const struct field *f, const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct mac)) == 0;
}

const struct field_type field_mac = {
	.blank_is_absent = true,
	.read = mac_read,
	.write = mac_write,
	.equal = mac_equal,
};

/* --- labels --------------------------------------------------------------------------------- */

static void labels_done(const struct field *f, void *at)
{
	struct label_map *map = at;

	free(map->v);
	free(map->store);
	*map = (struct label_map){ 0 };
}

static int label_order(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/* The bytes that all keys and values need, or -EINVAL. */
static int labels_check(struct json_at in, size_t *ret)
{
	size_t need = 0;

	json_object_object_foreach(in.value, key, value) {
		struct json_at at = { .value = value, .up = &in, .name = key, .err = in.err };
		const char *text;
		int r = json_read_text(at, JSON_STRING_MAX, &text);

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (!label_key_valid(key))
			return json_wrong(at, "the name is not 1 to 317 of A-Z, a-z, 0-9, '.', "
					      "'/', '_', '-'");
		if (!label_value_valid(text))
			return json_refuse(at, "is not up to 63 of A-Z, a-z, 0-9, '.', '_', '-'");
		need += strlen(key) + strlen(text) + 2;
	}
	*ret = need;
	return 0;
}

static const char *store_text(char **store, const char *text)
{
	char *at = *store;

	*store = stpcpy(at, text) + 1;
	return at;
}

static int labels_read(const struct field *f, struct json_at in, void *at)
{
	struct label_map map = { 0 };
	size_t need = 0, n;
	char *store;
	int r = json_read_object(in);

	if (r > 0)
		r = labels_check(in, &need);
	if (r < 0)
		return r;
	n = (size_t)json_object_object_length(in.value);
	map.store = store = malloc(need ?: 1);
	map.v = calloc(n ?: 1, sizeof(*map.v));
	if (!map.store || !map.v) {
		labels_done(f, &map);
		return -ENOMEM;
	}
	json_object_object_foreach(in.value, key, value) {
		if (!value)
			continue;
		map.v[map.n].key = store_text(&store, key);
		map.v[map.n++].value = store_text(&store, json_object_get_string(value));
	}
	qsort(map.v, map.n, sizeof(*map.v), label_order);
	labels_done(f, at);
	*(struct label_map *)at = map;
	return 0;
}

static int labels_write(const struct field *f, const void *at, const void *usual,
			struct json_object **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	const struct label_map *map = at;

	if (!object)
		return -ENOMEM;
	for (size_t i = 0; i < map->n; i++) {
		struct json_object *value = json_object_new_string(map->v[i].value);

		if (!value || json_object_object_add(object, map->v[i].key, value) < 0) {
			json_object_put(value);
			return -ENOMEM;
		}
	}
	*ret = TAKE(object);
	return 0;
}

static bool labels_equal(const struct field *f, const void *a, const void *b)
{
	const struct label_map *x = a, *y = b;

	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->v[i].key, y->v[i].key) != 0 ||
		    strcmp(x->v[i].value, y->v[i].value) != 0)
			return false;
	return true;
}

const struct field_type field_labels = {
	.read = labels_read,
	.write = labels_write,
	.equal = labels_equal,
	.done = labels_done,
};
