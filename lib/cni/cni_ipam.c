/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_ipam.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Whereabouts' fields that have no meaning here; docs/WHEREABOUTS.md says why of each. */
static const char *const ignored[] = {
	"name",
	"datastore",
	"etcd_host",
	"etcd_username",
	"etcd_password",
	"etcd_key_file",
	"etcd_cert_file",
	"etcd_ca_cert_file",
	"leader_lease_duration",
	"leader_renew_deadline",
	"leader_retry_period",
	"log_file",
	"enable_overlapping_ranges",
	"sleep_for_race",
	"kubernetes",
	"configuration_path",
	"podname",
	"podnamespace",
	"fast_ipam",
};

static void note_ignored(struct json_object *section, char *list, size_t room)
{
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
		size_t n = strlen(list);

		if (cni_has(section, ignored[i]))
			snprintf(list + n, room - n, "%s%s", n ? ", " : "", ignored[i]);
	}
}

/* --- one range ------------------------------------------------------------------------------ */

/* "10.5.0.10-10.5.0.20/16": first, last with the length. */
static bool parse_span(const char *text, struct cni_range *ret)
{
	const char *dash = strchr(text, '-');
	char first[ADDRESS_TEXT];
	struct prefix last;
	size_t n;

	if (!dash || (n = (size_t)(dash - text)) >= sizeof(first))
		return false;
	memcpy(first, text, n);
	first[n] = '\0';
	if (address_parse(first, &ret->start) < 0 || prefix_parse_host(dash + 1, &last) < 0)
		return false;
	ret->end = last.address;
	ret->range = prefix_mask(&last);
	return true;
}

static int span_read(const struct field *f, struct json_at in, void *at)
{
	struct cni_range *range = at;
	struct prefix p;
	const char *text;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r < 0 || parse_span(text, range))
		return r < 0 ? r : 0;
	if (prefix_parse_host(text, &p) < 0)
		return json_refuse(in, "is not a range such as \"10.5.0.0/16\" or "
				       "\"10.5.0.10-10.5.0.20/16\"");
	range->range = prefix_mask(&p);
	return 0;
}

/* The limits of a span in "range" win, as they do in Whereabouts. */
static int limit_read(const struct field *f, struct json_at in, void *at)
{
	struct address limit;
	int r = json_read_address(in, &limit);

	if (r > 0 && !((struct address *)at)->family)
		*(struct address *)at = limit;
	return r < 0 ? r : 0;
}

static int excluded_read(const struct field *f, struct json_at in, void *at)
{
	struct prefix *p = at;
	const char *text;
	int r = json_read_text(in, JSON_STRING_MAX, &text);

	if (r < 0)
		return r;
	if (prefix_parse_host(text, p) == 0)
		*p = prefix_mask(p);
	else if (address_parse(text, &p->address) == 0)
		p->length = (uint8_t)address_bits(&p->address);
	else
		return json_refuse(in, "is neither an address nor a prefix");
	return 0;
}

static const struct field_type field_span = { .read = span_read };
static const struct field_type field_limit = { .blank_is_absent = true, .read = limit_read };
static const struct field_type field_excluded = { .read = excluded_read };
typedef struct address field_c_limit;

static const struct field exclude_element = { ELEMENT(excluded) };
static const struct field range_fields[] = {
	{ .name = "range", .type = &field_span, .required = true },
	{ FIELD(cni_range, start, "range_start", limit) },
	{ FIELD(cni_range, end, "range_end", limit) },
	{ LIST(cni_range, exclude, "exclude", &exclude_element) },
};

static int check_limits(struct json_at at, const struct cni_range *r)
{
	const struct address *outside = NULL;
	char text[ADDRESS_TEXT], range[PREFIX_TEXT];

	if (r->start.family && !prefix_contains(&r->range, &r->start))
		outside = &r->start;
	else if (r->end.family && !prefix_contains(&r->range, &r->end))
		outside = &r->end;
	if (outside)
		return json_wrong(at, "%s lies outside the range %s", address_print(outside, text),
				  prefix_print(&r->range, range));
	if (r->start.family && r->end.family && address_compare(&r->start, &r->end) > 0)
		return json_wrong(at, "the range starts after its end, %s",
				  address_print(&r->end, text));
	return 0;
}

static int range_read(const struct field *f, struct json_at in, void *at)
{
	int r = json_read_object(in);

	r = r < 0 ? r : fields_read(range_fields, ARRAY_SIZE(range_fields), &in, at);
	return r ?: check_limits(in, at);
}

static void range_done(const struct field *f, void *at)
{
	fields_done(range_fields, ARRAY_SIZE(range_fields), at);
}

static const struct field_type field_whereabouts = { .read = range_read, .done = range_done };

/* --- the section ---------------------------------------------------------------------------- */

static const struct field address_fields[] = {
	{ FIELD(cni_ip, address, "address", host_prefix), .required = true },
	{ FIELD(cni_ip, gateway, "gateway", address) },
};
static const struct field address_element = { ELEMENT_OBJECT(cni_ip, address_fields) };
static const struct field range_element = { ELEMENT(whereabouts) };
static const struct field ipam_fields[] = {
	{ LIST(cni_ipam, ranges, "ipRanges", &range_element) },
	{ LIST(cni_ipam, addresses, "addresses", &address_element) },
	{ FIELD(cni_ipam, slice_text, "node_slice_size", borrowed) },
	{ FIELD(cni_ipam, gateway, "gateway", address) },
	{ FIELD(cni_ipam, network, "network_name", borrowed), .check = network_check },
	{ CNI_ROUTES(cni_ipam, routes, "routes") },
	{ CNI_DNS(cni_ipam, dns, "dns") },
};
static const struct field exclude_field = { LIST(cni_ipam, exclude, "exclude", &exclude_element) };

/* A range at the top comes before those of the list, as in Whereabouts. */
static int read_top_range(struct json_at at, struct cni_ipam *ipam)
{
	const char *text;
	int r = json_read_text(json_member(&at, "range"), JSON_STRING_MAX, &text);

	if (r < 0)
		return r;
	if (r > 0) {
		struct cni_range *range = array_insert(&ipam->ranges, 0);

		r = range ? range_read(NULL, at, range) : -ENOMEM;
	} else {
		r = fields_read(&exclude_field, 1, &at, ipam);
	}
	if (r == 0 && ipam->ranges.n > CNI_RANGES_MAX)
		return err_set(at.err, -EINVAL, "more than %d ranges", CNI_RANGES_MAX);
	return r;
}

static bool slice_fits(const struct cni_range *r, int64_t slice)
{
	return slice >= r->range.length && slice <= address_bits(&r->range.address);
}

/* One size for all ranges: it must fit the first, and is used for those like it. */
static int read_slice(struct json_at at, struct cni_ipam *ipam)
{
	const struct cni_range *first = ipam->ranges.v;
	const char *text = ipam->slice_text;
	char range[PREFIX_TEXT];
	uint8_t slice = 0;

	if (!text || ipam->ranges.n == 0)
		return 0;
	text += text[0] == '/';
	if (strspn(text, "0123456789") == strlen(text) && *text && strlen(text) <= 3 &&
	    atoi(text) <= 128)
		slice = (uint8_t)atoi(text);
	if (!slice || !slice_fits(first, slice))
		return json_refuse(json_member(&at, "node_slice_size"),
				   "is not a prefix length between that of the range %s and %u",
				   prefix_print(&first->range, range),
				   address_bits(&first->range.address));
	for (size_t i = 0; i < ipam->ranges.n; i++)
		if (ipam->ranges.v[i].range.address.family == first->range.address.family &&
		    slice_fits(&ipam->ranges.v[i], slice))
			ipam->ranges.v[i].slice = slice;
	return 0;
}

int cni_ipam_read(const struct cni_conf *conf, struct cni_ipam *ret, struct cni_error *e)
{
	AUTO_DONE(cni_ipam_done) struct cni_ipam ipam = { .network = "" };
	struct json_at root = cni_root(conf->json, e), at = json_member(&root, "ipam");
	struct json_at level = json_member(&at, "log_level");
	int r = fields_read(ipam_fields, ARRAY_SIZE(ipam_fields), &at, &ipam);

	r = r ?: read_top_range(at, &ipam);
	r = r ?: read_slice(at, &ipam);
	if (r < 0)
		return cni_read(e, r);
	cni_routes_mask(&ipam.routes);
	for (size_t i = 0; i < ipam.addresses.n; i++)
		ipam.addresses.v[i].interface = -1;
	ipam.debug = json_object_is_type(level.value, json_type_string) &&
		     strcasecmp(json_object_get_string(level.value), "debug") == 0;
	note_ignored(at.value, ipam.ignored, sizeof(ipam.ignored));
	*ret = ipam;
	ipam = (struct cni_ipam){ 0 };
	return 0;
}

void cni_ipam_done(struct cni_ipam *ipam)
{
	fields_done(ipam_fields, ARRAY_SIZE(ipam_fields), ipam);
	fields_done(&exclude_field, 1, ipam);
}

bool cni_ipam_is_static(const struct cni_ipam *ipam, const struct cni_want *want)
{
	return ipam->addresses.n > 0 && ipam->ranges.n == 0 && want->n_pools == 0;
}
