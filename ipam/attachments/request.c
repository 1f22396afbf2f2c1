/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/attachments/request.h"

#include <errno.h>
#include <string.h>

#include "lib/cni/pod_link.h"
#include "lib/json/fields.h"

int cni_network_check(const char *text, struct err *err)
{
	struct err why;

	/* The same characters; only the sentence would be wrong. */
	if (container_id_check(text, &why) == 0)
		return 0;
	return err_set(err, -EINVAL,
		       "is not a network's name: 1 to 1024 of A-Z, a-z, 0-9, '_', '.', '-', "
		       "beginning with a letter or digit");
}

/* --- what all have in common ---------------------------------------------------------------- */

struct body {
	const struct field *fields;
	size_t n_fields, size;
	int (*check)(void *request, struct err *err); /* or NULL; it may also tidy */
};

static void body_done(const struct body *type, void *request)
{
	fields_done(type->fields, type->n_fields, request);
	memset(request, 0, type->size);
}

static int body_read(const struct body *type, const char *json, size_t len, void *request,
		     struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct json_at root;
	int r = fields_init(type->fields, type->n_fields, request);

	if (r < 0)
		return err_set(err, r, "out of memory");
	r = json_parse(json, len, &object, err);
	if (r < 0)
		return r;
	root = json_root(object, err);
	r = fields_read(type->fields, type->n_fields, &root, request);
	return r == 0 && type->check ? type->check(request, err) : r;
}

static int body_decode(const struct body *type, const char *json, size_t len, void *ret,
		       struct err *err)
{
	AUTO(free) void *request = calloc(1, type->size);
	int r;

	if (!request)
		return err_set(err, -ENOMEM, "out of memory");
	r = body_read(type, json, len, request, err);
	if (r < 0) {
		body_done(type, request);
		return r;
	}
	memcpy(ret, request, type->size);
	return 0;
}

#define REQUEST_DEFINE(noun, checker)                                                              \
	static const struct body noun##_body = { noun##_fields, ARRAY_SIZE(noun##_fields),         \
						 sizeof(struct noun), checker };                   \
	int noun##_decode(const char *json, size_t len, struct noun *ret, struct err *err)         \
	{                                                                                          \
		return body_decode(&noun##_body, json, len, ret, err);                             \
	}                                                                                          \
	void noun##_done(struct noun *request)                                                     \
	{                                                                                          \
		body_done(&noun##_body, request);                                                  \
	}

#define KEY_FIELDS(noun)                                                                           \
	{ FIELD(noun, network, "network", text), .required = true, .check = cni_network_check },   \
		{ FIELD(noun, container, "container", text), .required = true,                     \
		  .check = container_id_check },                                                   \
	{                                                                                          \
		FIELD(noun, interface, "interface", text), .required = true,                       \
							   .check = pod_interface_check            \
	}

static const struct field name = { ELEMENT(text), .check = name_check };
static const struct field one_address = { ELEMENT(address) };
static const struct field one_range = { ELEMENT(range) };

/* --- assign --------------------------------------------------------------------------------- */

static const struct field range_fields[] = {
	{ FIELD(range_request, range, "range", host_prefix), .required = true },
	{ FIELD(range_request, start, "start", address) },
	{ FIELD(range_request, end, "end", address) },
	{ LIST(range_request, exclude, "exclude", &one_range) },
	{ FIELD(range_request, network, "network", text), .check = network_check,
	  .initial_text = "default" },
	{ FIELD(range_request, slice_size, "sliceSize", number), .max = 128 },
	{ FIELD(range_request, gateway, "gateway", address) },
};
static const struct field range = { ELEMENT_OBJECT(range_request, range_fields) };

static const struct field assign_request_fields[] = {
	KEY_FIELDS(assign_request),
	{ FIELD(assign_request, netns, "netns", text), .check = path_check },
	{ FIELD(assign_request, namespace, "namespace", text), .check = word_check },
	{ FIELD(assign_request, pod, "pod", text), .check = word_check },
	{ FIELD(assign_request, uid, "uid", text), .check = id_check },
	{ LIST(assign_request, pools, "pools", &name) },
	{ LIST(assign_request, addresses, "addresses", &one_address) },
	{ LIST(assign_request, exclude, "exclude", &one_range) },
	{ LIST(assign_request, ranges, "ranges", &range) },
};

static int range_limit(const struct range_request *r, size_t i, const char *field,
		       const struct address *a, struct err *err)
{
	char text[ADDRESS_TEXT], whole[PREFIX_TEXT];

	if (!a->family || prefix_contains(&r->range, a))
		return 0;
	return err_set(err, -EINVAL, "field \"ranges[%zu].%s\": %s is not in %s", i, field,
		       address_print(a, text), prefix_print(&r->range, whole));
}

static int range_check(struct range_request *r, size_t i, struct err *err)
{
	char start[ADDRESS_TEXT], end[ADDRESS_TEXT];
	unsigned bits = address_bits(&r->range.address);
	int rc;

	r->range = prefix_mask(&r->range);
	rc = range_limit(r, i, "start", &r->start, err);
	if (rc == 0)
		rc = range_limit(r, i, "end", &r->end, err);
	if (rc < 0)
		return rc;
	if (r->start.family && r->end.family && address_compare(&r->start, &r->end) > 0)
		return err_set(err, -EINVAL, "field \"ranges[%zu].end\": %s comes before start %s",
			       i, address_print(&r->end, end), address_print(&r->start, start));
	if (r->slice_size && (r->slice_size < r->range.length || r->slice_size > bits))
		return err_set(err, -EINVAL,
			       "field \"ranges[%zu].sliceSize\": %u is not between %u and %u", i,
			       r->slice_size, r->range.length, bits);
	if (r->slice_size > r->range.length + (uint32_t)POOL_BLOCKS_MAX_BITS)
		return err_set(err, -EINVAL,
			       "field \"ranges[%zu].sliceSize\": %u makes more than 2^%u slices", i,
			       r->slice_size, POOL_BLOCKS_MAX_BITS);
	if (r->gateway.family && r->gateway.family != r->range.address.family)
		return err_set(err, -EINVAL, "field \"ranges[%zu].gateway\": is of another family",
			       i);
	return 0;
}

static int list_check(const char *field, size_t n, struct err *err)
{
	if (n <= REQUEST_LIST_MAX)
		return 0;
	return err_set(err, -EINVAL, "field \"%s\": %zu elements are more than %d", field, n,
		       REQUEST_LIST_MAX);
}

static int addresses_check(const struct addresses *a, struct err *err)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; j < i; j++)
			if (address_compare(&a->v[i], &a->v[j]) == 0)
				return err_set(err, -EINVAL,
					       "field \"addresses[%zu]\": %s is asked for twice", i,
					       address_print(&a->v[i], text));
	return list_check("addresses", a->n, err);
}

static int assign_check(void *request, struct err *err)
{
	struct assign_request *r = request;
	int rc = list_check("pools", r->pools.n, err);

	if (rc == 0)
		rc = list_check("ranges", r->ranges.n, err);
	if (rc == 0)
		rc = addresses_check(&r->addresses, err);
	if (rc == 0 && r->pools.n && r->ranges.n)
		rc = err_set(err, -EINVAL, "field \"ranges\": cannot be given beside \"pools\"");
	for (size_t i = 0; rc == 0 && i < r->ranges.n; i++)
		rc = range_check(&r->ranges.v[i], i, err);
	return rc;
}

REQUEST_DEFINE(assign_request, assign_check)

/* --- release -------------------------------------------------------------------------------- */

static int boottime_read(const struct field *f, struct json_at in, void *at)
{
	return json_read_uint64(in, at) < 0 ? -EINVAL : 0;
}
static const struct field_type field_boottime = { .read = boottime_read };
typedef uint64_t field_c_boottime;

static const struct field release_request_fields[] = {
	KEY_FIELDS(release_request),
	{ FIELD(release_request, boottime, "boottime", boottime) },
};
REQUEST_DEFINE(release_request, NULL)

/* --- attach --------------------------------------------------------------------------------- */

static const struct field attach_request_fields[] = {
	KEY_FIELDS(attach_request),
	{ FIELD(attach_request, netns, "netns", text), .check = path_check },
	{ FIELD(attach_request, namespace, "namespace", text), .check = word_check },
	{ FIELD(attach_request, pod, "pod", text), .check = word_check },
	{ FIELD(attach_request, uid, "uid", text), .check = id_check },
	{ FIELD(attach_request, link, "link", text), .required = true, .check = interface_check },
	{ FIELD(attach_request, ipam, "ipam", text), .required = true, .check = word_check },
	{ FIELD(attach_request, mac, "mac", mac), .required = true },
	{ FIELD(attach_request, route_localnet, "routeLocalnet", flag) },
	{ LIST(attach_request, addresses, "addresses", &one_address), .required = true },
};

/* The name tells after a restart whose link it is, so no other one is accepted. */
static int attach_check(void *request, struct err *err)
{
	struct attach_request *r = request;
	char link[IF_NAME_TEXT];

	if (strcmp(pod_link_name(r->container, r->interface, link), r->link) != 0)
		return err_set(err, -EINVAL,
			       "field \"link\": %s is not the name that follows from container and "
			       "interface (%s)",
			       r->link, link);
	if (r->addresses.n == 0)
		return err_set(err, -EINVAL, "field \"addresses\": is empty");
	return addresses_check(&r->addresses, err);
}

REQUEST_DEFINE(attach_request, attach_check)

unsigned attach_verdict(const struct attach_request *r, const struct attachment *a, struct err *err)
{
	const struct check_request all = { r->network, r->container, r->interface, r->addresses };

	if (check_verdict(&all, a, err))
		return 103;
	if (r->addresses.n == a->addresses.n)
		return 0;
	err_set(err, 0, "%s of container %s holds %zu addresses, not %zu", a->interface,
		a->container, a->addresses.n, r->addresses.n);
	return 103;
}

/* --- check ---------------------------------------------------------------------------------- */

static const struct field check_request_fields[] = {
	KEY_FIELDS(check_request),
	{ LIST(check_request, addresses, "addresses", &one_address) },
};
REQUEST_DEFINE(check_request, NULL)

unsigned check_verdict(const struct check_request *r, const struct attachment *a, struct err *err)
{
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < r->addresses.n; i++) {
		bool held = false;

		for (size_t j = 0; j < a->addresses.n && !held; j++)
			held = address_compare(&r->addresses.v[i], &a->addresses.v[j].address) == 0;
		if (!held) {
			err_set(err, 0, "%s of container %s does not hold %s", a->interface,
				a->container, address_print(&r->addresses.v[i], text));
			return 103;
		}
	}
	return 0;
}

/* --- gc ------------------------------------------------------------------------------------- */

static const struct field entry_fields[] = {
	{ FIELD(gc_entry, container, "container", text), .required = true,
	  .check = container_id_check },
	{ FIELD(gc_entry, interface, "interface", text), .required = true,
	  .check = pod_interface_check },
};
static const struct field entry = { ELEMENT_OBJECT(gc_entry, entry_fields) };

static const struct field gc_request_fields[] = {
	{ FIELD(gc_request, network, "network", text), .required = true,
	  .check = cni_network_check },
	{ LIST(gc_request, valid, "valid", &entry), .required = true },
};
REQUEST_DEFINE(gc_request, NULL)

bool gc_keeps(const struct gc_request *r, const struct attachment *a)
{
	if (attachment_is_mark(a) || a->reserved || a->state == ATTACHMENT_RELEASING ||
	    strcmp(a->network, r->network) != 0)
		return true;
	for (size_t i = 0; i < r->valid.n; i++)
		if (strcmp(r->valid.v[i].container, a->container) == 0 &&
		    strcmp(r->valid.v[i].interface, a->interface) == 0)
			return true;
	return false;
}
