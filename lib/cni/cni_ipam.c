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

static void note_ignored(const struct json_at *at, char *list, size_t room)
{
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
		size_t n = strlen(list);

		if (cni_has(at, ignored[i]))
			snprintf(list + n, room - n, "%s%s", n ? ", " : "", ignored[i]);
	}
}

static bool wants_debug(const struct json_at *at)
{
	struct json_at level = cni_member(at, "log_level");

	return json_object_is_type(level.value, json_type_string) &&
	       strcasecmp(json_object_get_string(level.value), "debug") == 0;
}

/* --- ranges --------------------------------------------------------------------------------- */

/* The one at the top comes first, then those of the list, as in Whereabouts. */
static int read_ranges(struct json_at at, struct cni_ipam *ipam, struct cni_error *e)
{
	struct json_at range = cni_member(&at, "range"), list = cni_member(&at, "ipRanges");
	const char *text;
	size_t n = 0;
	int top = cni_read_text(e, range, &text), r;

	if (top < 0 || cni_read_array(e, list, &n) < 0)
		return -EINVAL;
	if (n + (size_t)top > CNI_RANGES_MAX)
		return cni_fail(e, CNI_CODE_CONFIG, "more than %d ranges", CNI_RANGES_MAX);
	ipam->ranges = calloc(n + 1, sizeof(*ipam->ranges));
	if (!ipam->ranges)
		return cni_no_memory(e);
	r = top ? cni_range_read(at, &ipam->ranges[ipam->n_ranges++], e)
		: cni_exclude_read(cni_member(&at, "exclude"), &ipam->exclude, e);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = cni_range_read(json_element(&list, i), &ipam->ranges[ipam->n_ranges++], e);
	return r < 0 ? r : 0;
}

static bool slice_fits(const struct cni_range *r, int64_t slice)
{
	return slice >= r->range.length && slice <= address_bits(&r->range.address);
}

/* One size for all ranges: it must fit the first, and is used for those like it. */
static int read_slice(struct json_at at, struct cni_ipam *ipam, struct cni_error *e)
{
	const struct cni_range *first = ipam->ranges;
	char range[PREFIX_TEXT];
	const char *text;
	uint8_t slice = 0;
	int r = cni_read_text(e, at, &text);

	if (r <= 0 || ipam->n_ranges == 0)
		return r;
	text += text[0] == '/';
	if (strspn(text, "0123456789") == strlen(text) && *text && strlen(text) <= 3 &&
	    atoi(text) <= 128)
		slice = (uint8_t)atoi(text);
	if (!slice || !slice_fits(first, slice)) {
		json_refuse(at, "is not a prefix length between that of the range %s and %u",
			    prefix_print(&first->range, range),
			    address_bits(&first->range.address));
		return cni_wrong(e, at, json_type_string);
	}
	for (size_t i = 0; i < ipam->n_ranges; i++)
		if (ipam->ranges[i].range.address.family == first->range.address.family &&
		    slice_fits(&ipam->ranges[i], slice))
			ipam->ranges[i].slice = slice;
	return 0;
}

/* --- the rest ------------------------------------------------------------------------------- */

static int read_static(struct json_at at, struct cni_ip *ret, struct cni_error *e)
{
	struct json_at address = cni_member(&at, "address");

	*ret = (struct cni_ip){ .interface = -1 };
	address.required = true;
	if (cni_read_object(e, at) < 0 || cni_read_host_prefix(e, address, &ret->address) < 0 ||
	    cni_read_address(e, cni_member(&at, "gateway"), &ret->gateway) < 0)
		return -EINVAL;
	return 0;
}

static int read_addresses(struct json_at at, struct cni_ipam *ipam, struct cni_error *e)
{
	size_t n = 0;
	int r = cni_read_array(e, at, &n);

	if (r <= 0)
		return r;
	ipam->addresses = calloc(n ?: 1, sizeof(*ipam->addresses));
	if (!ipam->addresses)
		return cni_no_memory(e);
	ipam->n_addresses = n;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = read_static(json_element(&at, i), &ipam->addresses[i], e);
	return r;
}

static int read_network(struct json_at at, const char **ret, struct cni_error *e)
{
	struct err why;
	int r = cni_read_text(e, at, ret);

	if (r <= 0 || network_check(*ret, &why) == 0)
		return r;
	json_wrong(at, "%s", why.text);
	return cni_wrong(e, at, json_type_string);
}

int cni_ipam_read(const struct cni_conf *conf, struct cni_ipam *ret, struct cni_error *e)
{
	AUTO_DONE(cni_ipam_done) struct cni_ipam ipam = { .network = "" };
	struct json_at root = cni_root(conf->json, e), at = cni_member(&root, "ipam");
	int r = read_ranges(at, &ipam, e);

	if (r >= 0)
		r = read_slice(cni_member(&at, "node_slice_size"), &ipam, e);
	if (r >= 0)
		r = read_addresses(cni_member(&at, "addresses"), &ipam, e);
	if (r >= 0)
		r = cni_read_address(e, cni_member(&at, "gateway"), &ipam.gateway);
	if (r >= 0)
		r = read_network(cni_member(&at, "network_name"), &ipam.network, e);
	if (r >= 0)
		r = cni_routes_read(cni_member(&at, "routes"), &ipam.routes, &ipam.n_routes, e);
	if (r >= 0)
		r = cni_dns_read(cni_member(&at, "dns"), &ipam.dns, e);
	if (r < 0)
		return r;
	ipam.debug = wants_debug(&at);
	note_ignored(&at, ipam.ignored, sizeof(ipam.ignored));
	*ret = ipam;
	ipam = (struct cni_ipam){ 0 };
	return 0;
}

void cni_ipam_done(struct cni_ipam *ipam)
{
	for (size_t i = 0; i < ipam->n_ranges; i++)
		free(ipam->ranges[i].exclude.v);
	free(ipam->ranges);
	free(ipam->exclude.v);
	free(ipam->addresses);
	free(ipam->routes);
	cni_dns_done(&ipam->dns);
	*ipam = (struct cni_ipam){ 0 };
}

bool cni_ipam_is_static(const struct cni_ipam *ipam, const struct cni_want *want)
{
	return ipam->n_addresses > 0 && ipam->n_ranges == 0 && want->n_pools == 0;
}
