/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include <errno.h>
#include <string.h>

#include "lib/model/record.h"

static const char *const families[] = { "ipv4", "ipv6", NULL };

static const struct field node = { ELEMENT(text), .check = node_name_check };
static const struct field family = { ELEMENT(choice), .choices = families };

/* Ranges as in config; UNSET lies outside them all, so nobody can type it. */
static const struct field fields[] = {
	{ FIELD(peer, address, "address", neighbour) },
	{ FIELD(peer, peer_selector, "peerSelector", selector) },
	{ FIELD(peer, asn, "asn", number), .min = 1, .max = UINT32_MAX },
	{ LIST(peer, nodes, "nodes", &node) },
	{ FIELD(peer, node_selector, "nodeSelector", selector) },
	{ FIELD(peer, port, "port", number), .min = 1, .max = 65535 },
	{ FIELD(peer, local_asn, "localAsn", number), .min = 1, .max = UINT32_MAX },
	{ FIELD(peer, source_address, "sourceAddress", address) },
	{ FIELD(peer, multihop, "multihop", number), .max = 255 },
	{ FIELD(peer, ttl_security, "ttlSecurity", flag) },
	{ FIELD(peer, passive, "passive", flag) },
	{ FIELD(peer, password_file, "passwordFile", text), .check = path_check },
	{ FIELD(peer, bfd, "bfd", maybe) },
	{ FIELD(peer, hold_time, "holdTime", number), .min = 3, .max = 65535, .or_zero = true,
	  .initial = UNSET },
	{ FIELD(peer, keepalive_time, "keepaliveTime", number), .max = 65535, .initial = UNSET },
	{ FIELD(peer, connect_retry_time, "connectRetryTime", number), .min = 1, .max = 65535,
	  .initial = UNSET },
	{ FIELD(peer, graceful_restart, "gracefulRestart", maybe) },
	{ FIELD(peer, graceful_restart_time, "gracefulRestartTime", number), .min = 1, .max = 4095,
	  .initial = UNSET },
	{ FIELD(peer, next_hop_self, "nextHopSelf", flag), .initial = true },
	{ FIELD(peer, next_hop_keep, "nextHopKeep", flag) },
	{ FIELD(peer, allow_local_as, "allowLocalAs", number), .max = 255 },
	{ FIELD(peer, reflector_client, "reflectorClient", flag) },
	{ LIST(peer, families, "families", &family) },
	{ FIELD(peer, import_filter, "importFilter", text), .check = name_check },
	{ FIELD(peer, export_filter, "exportFilter", text), .check = name_check },
	{ FIELD(peer, description, "description", text), .check = description_check },
	{ FIELD(peer, disabled, "disabled", flag) },
};

bool address_is_no_neighbour(const struct address *a)
{
	/* BIRD keeps IPv4 inside IPv6 as ::ffff:0:0/96, and would take such a text for IPv4. */
	static const uint8_t zero[10];
	bool ipv4_inside = a->family == AF_INET6 && memcmp(a->bytes, zero, sizeof(zero)) == 0 &&
			   ((a->bytes[10] == 0xff && a->bytes[11] == 0xff) ||
			    (a->bytes[10] == 0 && a->bytes[11] == 0 &&
			     (a->bytes[12] || a->bytes[13])));

	return ipv4_inside || address_is_unspecified(a) || address_is_multicast(a);
}

static int neighbour_check(const struct peer *p, struct err *err)
{
	char text[ADDRESS_TEXT];

	if (address_is_no_neighbour(&p->address.address))
		return err_set(err, -EINVAL, "field \"address\": %s is no neighbour's address",
			       address_print(&p->address.address, text));
	if (!p->asn)
		return err_set(err, -EINVAL, "field \"asn\": is missing, and \"address\" needs it");
	if (p->source_address.family && p->source_address.family != p->address.address.family)
		return err_set(err, -EINVAL,
			       "field \"sourceAddress\": %s is not of the family of \"address\"",
			       address_print(&p->source_address, text));
	for (size_t i = 0; i < p->families.n; i++)
		if (p->families.v[i] == FAMILY_IPV6 && p->address.address.family == AF_INET)
			return err_set(err, -EINVAL,
				       "field \"families\": an IPv4 session cannot carry ipv6");
	if (p->address.zone[0] && p->multihop)
		return err_set(err, -EINVAL,
			       "field \"multihop\": a link-local neighbour is on the link");
	return 0;
}

/* What says something about one end only has no meaning where either end may be meant. */
static int selected_check(const struct peer *p, struct err *err)
{
	const char *field = p->asn                     ? "asn"
			    : p->local_asn             ? "localAsn"
			    : p->source_address.family ? "sourceAddress"
						       : NULL;

	if (field)
		return err_set(err, -EINVAL,
			       "field \"%s\": with \"peerSelector\" each node has its own", field);
	return 0;
}

static int check(const void *record, struct err *err)
{
	const struct peer *p = record;
	bool selected = p->peer_selector.text && p->peer_selector.text[0];
	int r;

	if (selected == (p->address.address.family != 0))
		return err_set(err, -EINVAL,
			       "fields \"address\" and \"peerSelector\": exactly one is required");
	r = selected ? selected_check(p, err) : neighbour_check(p, err);
	if (r < 0)
		return r;
	if (p->nodes.n && p->node_selector.text && p->node_selector.text[0])
		return err_set(err, -EINVAL,
			       "fields \"nodes\" and \"nodeSelector\": only one may be given");
	if (p->source_address.family && address_is_no_neighbour(&p->source_address))
		return err_set(err, -EINVAL, "field \"sourceAddress\": is no machine's address");
	if (p->hold_time != UNSET && p->keepalive_time != UNSET && p->keepalive_time &&
	    p->keepalive_time >= p->hold_time)
		return err_set(err, -EINVAL,
			       "field \"keepaliveTime\": %u is not less than holdTime %u",
			       p->keepalive_time, p->hold_time);
	return 0;
}

static const struct record_part parts[] = { RECORD_PART(peer, name, text, name) };

const struct record peer_record = {
	.kind = KEY_PEER,
	.size = sizeof(struct peer),
	.parts = parts,
	.n_parts = ARRAY_SIZE(parts),
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
	.check = check,
};

RECORD_DEFINE(peer, peer_record)
