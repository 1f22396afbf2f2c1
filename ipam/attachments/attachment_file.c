/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/attachment_file.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ipam/attachments/request.h"
#include "lib/json/fields.h"

static const char *const states[] = { "assigned", "attached", "releasing", NULL };

const char *attachment_state_name(enum attachment_state state)
{
	return states[state];
}

/* --- numbers of 64 bits: inodes, nanoseconds ------------------------------------------------ */

static int wide_read(const struct field *f, struct json_at in, void *at)
{
	return json_read_uint64(in, at) < 0 ? -EINVAL : 0;
}

/* As digits in a string, like etcd's own: JSON's numbers are exact up to 2^53 only. */
static int wide_write(const struct field *f, const void *at, const void *usual,
		      struct json_object **ret)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)*(const uint64_t *)at);
	*ret = json_object_new_string(text);
	return *ret ? 0 : -ENOMEM;
}

static bool wide_equal(const struct field *f, const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

static const struct field_type field_wide = {
	.read = wide_read,
	.write = wide_write,
	.equal = wide_equal,
};
typedef uint64_t field_c_wide;

/* --- the table ------------------------------------------------------------------------------ */

static const struct field held_fields[] = {
	{ FIELD(held_address, address, "address", address), .required = true },
	{ FIELD(held_address, length, "length", number), .required = true, .max = 128 },
	{ FIELD(held_address, pool, "pool", text), .check = name_check },
	{ FIELD(held_address, network, "network", text), .check = network_check },
	{ FIELD(held_address, gateway, "gateway", address) },
};
static const struct field held = { ELEMENT_OBJECT(held_address, held_fields) };

static const struct field fields[] = {
	{ FIELD(attachment, network, "network", text), .required = true,
	  .check = cni_network_check },
	{ FIELD(attachment, container, "container", text), .required = true,
	  .check = container_id_check },
	{ FIELD(attachment, interface, "interface", text), .required = true,
	  .check = pod_interface_check },
	{ FIELD(attachment, namespace, "namespace", text), .check = word_check },
	{ FIELD(attachment, pod, "pod", text), .check = word_check },
	{ FIELD(attachment, uid, "uid", text), .check = id_check },
	{ FIELD(attachment, netns, "netns", text), .check = path_check },
	{ FIELD(attachment, netns_inode, "netnsInode", wide) },
	{ FIELD(attachment, link, "link", text), .check = interface_check },
	{ FIELD(attachment, mac, "mac", mac) },
	{ FIELD(attachment, route_localnet, "routeLocalnet", flag) },
	{ FIELD(attachment, reserved, "reserved", flag) },
	{ FIELD(attachment, ipam, "ipam", text), .check = word_check },
	{ FIELD(attachment, assigned, "assigned", wide), .required = true },
	{ FIELD(attachment, state, "state", choice), .required = true, .choices = states },
	{ LIST(attachment, addresses, "addresses", &held), .required = true },
};

void attachment_free(struct attachment *a)
{
	if (a)
		fields_done(fields, ARRAY_SIZE(fields), a);
	free(a);
}

/* texts at "at" of every text field in the table: pointers of from become copies in to. */
static int copy_texts(const struct field *table, size_t n, const void *from, void *to)
{
	for (const struct field *f = table; f < table + n; f++) {
		const char *text;

		if (f->type != &field_text)
			continue;
		text = *(const char *const *)((const char *)from + f->at);
		text = strdup(text ?: "");
		*(const char **)((char *)to + f->at) = text;
		if (!text)
			return -ENOMEM;
	}
	return 0;
}

/* Nothing in copy but what it owns, also half-way: attachment_free() releases it. */
static int copy_held(const struct attachment *a, struct attachment *copy)
{
	const size_t n = a->addresses.n;

	copy->addresses = (struct held_addresses){ calloc(n ?: 1, sizeof(*a->addresses.v)), 0 };
	if (!copy->addresses.v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct held_address *h = &copy->addresses.v[copy->addresses.n++];

		*h = a->addresses.v[i];
		h->pool = h->network = NULL;
		if (copy_texts(held_fields, ARRAY_SIZE(held_fields), &a->addresses.v[i], h) < 0)
			return -ENOMEM;
	}
	return 0;
}

struct attachment *attachment_copy(const struct attachment *a)
{
	AUTO(attachment_free) struct attachment *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->netns_inode = a->netns_inode;
	copy->mac = a->mac;
	copy->route_localnet = a->route_localnet;
	copy->reserved = a->reserved;
	copy->assigned = a->assigned;
	copy->state = a->state;
	copy->suspected_since = a->suspected_since;
	if (copy_texts(fields, ARRAY_SIZE(fields), a, copy) < 0 || copy_held(a, copy) < 0)
		return NULL;
	return TAKE(copy);
}

bool attachment_equal(const struct attachment *a, const struct attachment *b)
{
	return fields_equal(fields, ARRAY_SIZE(fields), a, b);
}

const char *attachment_file_name(const struct attachment_key *key, char *text)
{
	return hash_print(HASH_TEXTS(key->network, key->container, key->interface), text);
}

/* --- decode --------------------------------------------------------------------------------- */

static int check_held(const struct held_addresses *list, struct err *err)
{
	char text[ADDRESS_TEXT];

	if (list->n > REQUEST_LIST_MAX)
		return err_set(err, -EINVAL, "field \"addresses\": %zu are more than %d", list->n,
			       REQUEST_LIST_MAX);
	for (size_t i = 0; i < list->n; i++) {
		const struct held_address *h = &list->v[i];

		if (h->length > address_bits(&h->address))
			return err_set(err, -EINVAL,
				       "field \"addresses[%zu].length\": %u is more than %u", i,
				       h->length, address_bits(&h->address));
		for (size_t j = 0; j < i; j++)
			if (address_compare(&h->address, &list->v[j].address) == 0 &&
			    strcmp(h->network, list->v[j].network) == 0)
				return err_set(err, -EINVAL,
					       "field \"addresses[%zu]\": %s is there twice", i,
					       address_print(&h->address, text));
	}
	return 0;
}

/* Times are added to others. */
static int check_assigned(uint64_t assigned, struct err *err)
{
	if (assigned <= INT64_MAX / 2)
		return 0;
	return err_set(err, -EINVAL, "field \"assigned\": %llu is no time since the start",
		       (unsigned long long)assigned);
}

static int check_version(const struct json_at *root)
{
	int64_t version;
	int r = json_read_integer(json_need(root, "version"), 1, INT32_MAX, &version);

	if (r < 0)
		return r;
	if (version != ATTACHMENT_FILE_VERSION)
		return json_refuse(json_member(root, "version"), "is not a version known here (%d)",
				   ATTACHMENT_FILE_VERSION);
	return 0;
}

int attachment_decode(const char *json, size_t len, struct attachment **ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO(attachment_free) struct attachment *a = calloc(1, sizeof(*a));
	struct json_at root;
	int r;

	if (!a || fields_init(fields, ARRAY_SIZE(fields), a) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = json_parse(json, len, &object, err);
	if (r < 0)
		return r;
	root = json_root(object, err);
	r = check_version(&root);
	if (r == 0)
		r = fields_read(fields, ARRAY_SIZE(fields), &root, a);
	if (r == 0)
		r = check_held(&a->addresses, err);
	if (r == 0)
		r = check_assigned(a->assigned, err);
	if (r < 0)
		return r;
	/* Only this process knows what was before; after a restart there is nothing to undo. */
	for (size_t i = 0; i < a->addresses.n; i++)
		a->addresses.v[i].was = INT64_MIN;
	*ret = TAKE(a);
	return 0;
}

/* --- encode --------------------------------------------------------------------------------- */

int attachment_encode(const struct attachment *a, char **ret)
{
	AUTO(json_put) struct json_object *object = json_object_new_object();
	struct json_object *version = json_object_new_int(ATTACHMENT_FILE_VERSION);
	struct attachment usual = { 0 };
	int r;

	if (!object || !version || json_object_object_add(object, "version", version) < 0) {
		json_object_put(version);
		return -ENOMEM;
	}
	r = fields_init(fields, ARRAY_SIZE(fields), &usual);
	if (r == 0)
		r = fields_write(fields, ARRAY_SIZE(fields), a, &usual, object);
	fields_done(fields, ARRAY_SIZE(fields), &usual);
	return r < 0 ? r : json_print(object, ret);
}

static void print_time(int64_t realtime, char *text)
{
	const time_t seconds = realtime / 1000000000;
	struct tm tm;

	if (realtime < 0 || !gmtime_r(&seconds, &tm) ||
	    strftime(text, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		text[0] = '\0';
}

struct address_record attachment_record(const struct attachment *a, size_t index, const char *node,
					const char *boot, int64_t boot_time)
{
	const struct held_address *h = &a->addresses.v[index];
	struct address_record r = {
		.node = node,
		.network = h->network,
		.address = h->address,
		/* A mark for a mere route has an address instead of a container. */
		.container = a->interface[0] ? a->container : "",
		.interface = a->interface,
		.pool = h->pool,
		.namespace = a->namespace,
		.pod = a->pod,
		.link = a->link,
		.netns = a->netns,
		.boot = boot,
		.reserved = a->reserved,
	};

	print_time((int64_t)a->assigned + boot_time, r.assigned);
	return r;
}
