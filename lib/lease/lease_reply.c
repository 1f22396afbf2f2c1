/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/lease/lease_reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/json_out.h"
#include "lib/json/json.h"

/* What flannel takes when its configuration does not say. */
#define USUAL_VNI  1
#define USUAL_PORT 8472

/* --- configuration -------------------------------------------------------------------------- */

static int read_backend(struct json_at backend, struct lease_network *ret)
{
	struct json_at type = json_member(&backend, "Type");
	const char *name = "vxlan";
	int64_t vni = USUAL_VNI, port = USUAL_PORT;
	int r = json_read_object(backend);

	if (r > 0)
		r = json_read_text(type, 64, &name);
	if (r >= 0 && strcmp(name, "vxlan") != 0)
		return json_refuse(type, "is no backend that roost has: only vxlan is");
	if (r >= 0)
		r = json_read_integer(json_member(&backend, "VNI"), 1, (1 << 24) - 1, &vni);
	if (r >= 0)
		r = json_read_integer(json_member(&backend, "Port"), 1, 65535, &port);
	if (r >= 0)
		r = json_read_bool(json_member(&backend, "DirectRouting"), &ret->direct);
	if (r < 0)
		return r;
	ret->vni = (uint32_t)vni;
	ret->port = (uint32_t)port;
	return 0;
}

int lease_network_read(const char *text, size_t len, struct lease_network *ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct lease_network network = { 0 };
	int64_t subnet_len = 0;
	struct json_at root;
	int r = json_parse(text, len, &object, err);

	if (r < 0)
		return r == -E2BIG ? -EINVAL : r;
	root = json_root(object, err);
	r = json_read_prefix(json_need(&root, "Network"), &network.cidr);
	if (r >= 0)
		r = json_read_integer(json_need(&root, "SubnetLen"), network.cidr.length,
				      address_bits(&network.cidr.address), &subnet_len);
	if (r >= 0)
		r = read_backend(json_member(&root, "Backend"), &network);
	if (r < 0)
		return r;
	network.subnet_len = (uint8_t)subnet_len;
	*ret = network;
	return 0;
}

/* --- leases --------------------------------------------------------------------------------- */

/* RFC 3339 with any offset, as Go prints it. Before 1970, such as Go's zero time: never. */
static int read_time(struct json_at at, int64_t *ret)
{
	const char *text = NULL;
	struct tm tm = { 0 };
	char sign = 0;
	int end = 0, hours = 0, minutes = 0, r = json_read_text(at, 64, &text);

	if (r <= 0)
		return r;
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 6)
		return json_refuse(at, "is no time as RFC 3339 has it");
	text += end;
	text += *text == '.' ? 1 + strspn(text + 1, "0123456789") : 0;
	if (strcmp(text, "Z") != 0 && sscanf(text, "%c%2d:%2d", &sign, &hours, &minutes) != 3)
		return json_refuse(at, "is no time as RFC 3339 has it");
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ret = (int64_t)timegm(&tm) - (sign == '-' ? -60 : 60) * (60 * hours + minutes);
	if (*ret < 0)
		*ret = 0;
	return 1;
}

/* Whatever is wrong here is the holder's affair. */
static void read_attrs(struct json_at attrs, struct lease *ret)
{
	struct json_at backend;
	const char *text = NULL;
	struct address holder;

	attrs.err = NULL;
	if (json_read_text(json_member(&attrs, "PublicIP"), ADDRESS_TEXT, &text) > 0 &&
	    address_parse(text, &holder) == 0)
		ret->holder = holder;
	backend = json_member(&attrs, "BackendData");
	if (json_read_text(json_member(&backend, "VtepMAC"), 32, &text) > 0)
		if (!mac_parse(text, &ret->mac) || !mac_is_of_device(&ret->mac))
			ret->mac = (struct mac){ { 0 } };
}

static int read_lease(struct json_at at, struct lease *ret)
{
	struct lease lease = { 0 };
	struct json_at subnet = json_need(&at, "Subnet");
	int r = json_read_host_prefix(subnet, &lease.subnet);

	if (r < 0)
		return r;
	/* A server that gives the first address with the length means the same. */
	lease.subnet = prefix_mask(&lease.subnet);
	read_attrs(json_member(&at, "Attrs"), &lease);
	r = read_time(json_member(&at, "Expiration"), &lease.expires);
	if (r < 0)
		return r;
	*ret = lease;
	return 0;
}

int lease_read(const char *text, size_t len, struct lease *ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	int r = json_parse(text, len, &object, err);

	if (r < 0)
		return r == -E2BIG ? -EINVAL : r;
	return read_lease(json_root(object, err), ret);
}

static int read_event(struct json_at at, struct lease_change *ret)
{
	struct json_at type = json_need(&at, "type");
	const char *name = NULL;
	int r = json_read_text(type, 32, &name);

	if (r < 0)
		return r;
	if (strcmp(name, "added") != 0 && strcmp(name, "removed") != 0)
		return json_refuse(type, "is neither added nor removed");
	ret->removed = name[0] == 'r';
	return read_lease(json_need(&at, "lease"), &ret->lease);
}

static int read_list(struct json_at list, bool events, struct lease_changes *ret)
{
	size_t n = 0;
	int r = json_read_array(list, &n);

	if (r < 0)
		return r;
	ret->v = calloc(n ?: 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	ret->n = n;
	for (size_t i = 0; i < n; i++) {
		struct json_at at = json_element(&list, i);

		r = events ? read_event(at, &ret->v[i]) : read_lease(at, &ret->v[i].lease);
		if (r < 0)
			return r;
	}
	return 0;
}

/* "17", or the number itself: it is only handed back. */
static int read_cursor(struct json_at at, char *ret)
{
	const char *text = NULL;
	int64_t number;

	if (json_object_is_type(at.value, json_type_int)) {
		if (json_read_integer(at, 0, INT64_MAX, &number) < 0)
			return -EINVAL;
		snprintf(ret, LEASE_CURSOR, "%lld", (long long)number);
		return 0;
	}
	if (json_read_text(at, LEASE_CURSOR - 1, &text) < 0)
		return -EINVAL;
	if (strspn(text, "0123456789") != strlen(text))
		return json_refuse(at, "is no number");
	snprintf(ret, LEASE_CURSOR, "%s", text);
	return 0;
}

int lease_changes_read(const char *text, size_t len, struct lease_changes *ret, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO_DONE(lease_changes_done) struct lease_changes changes = { 0 };
	struct json_at root, events;
	size_t n = 0;
	int r = json_parse_large(text, len, LEASE_REPLY_MAX, &object, err);

	if (r < 0)
		return r == -E2BIG ? -EINVAL : r;
	root = json_root(object, err);
	events = json_member(&root, "events");
	r = json_read_array(events, &n);
	changes.reset = n == 0;
	if (r >= 0)
		r = read_list(n ? events : json_member(&root, "snapshot"), n, &changes);
	if (r >= 0)
		r = read_cursor(json_need(&root, "cursor"), changes.cursor);
	if (r < 0)
		return r;
	*ret = changes;
	changes.v = NULL;
	return 0;
}

void lease_changes_done(struct lease_changes *c)
{
	free(c->v);
	c->v = NULL;
}

/* --- what is sent --------------------------------------------------------------------------- */

static void print_attrs(struct json_out *out, const struct lease *lease, uint32_t vni)
{
	char mac[MAC_TEXT];

	json_out_address(out, "PublicIP", &lease->holder);
	json_out_text(out, "BackendType", "vxlan");
	json_out_open(out, "BackendData", '{');
	json_out_number(out, "VNI", vni);
	json_out_text(out, "VtepMAC", mac_print(&lease->mac, mac));
	json_out_close(out, '}');
}

int lease_attrs_print(const struct lease *lease, uint32_t vni, char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	print_attrs(&out, lease, vni);
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}

int lease_print(const struct lease *lease, uint32_t vni, char **ret)
{
	struct json_out out = { 0 };
	char expires[TIME_TEXT];

	json_out_open(&out, NULL, '{');
	json_out_prefix(&out, "Subnet", &lease->subnet);
	json_out_open(&out, "Attrs", '{');
	print_attrs(&out, lease, vni);
	json_out_close(&out, '}');
	json_out_text(&out, "Expiration",
		      lease->expires ? clock_utc_of(lease->expires, expires)
				     : "0001-01-01T00:00:00Z");
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}
