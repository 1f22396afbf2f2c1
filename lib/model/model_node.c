/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include <errno.h>

#include "lib/base/hash.h"
#include "lib/model/record.h"

/* --- node: what its agent says -------------------------------------------------------------- */

static const struct field vtep_fields[] = {
	{ FIELD(node_vtep, mac, "mac", mac) },
	{ FIELD(node_vtep, ipv4, "ipv4", address), .family = AF_INET },
	{ FIELD(node_vtep, ipv6, "ipv6", address), .family = AF_INET6 },
};

static const struct field agent_fields[] = {
	{ FIELD(node_agent, version, "version", text), .check = word_check },
	{ FIELD(node_agent, started, "started", time) },
};

static const struct field hardware_id = { ELEMENT(text), .check = id_check };

static const struct field node_fields[] = {
	{ FIELD(node, ipv4, "ipv4", host_prefix), .family = AF_INET },
	{ FIELD(node, ipv6, "ipv6", host_prefix), .family = AF_INET6 },
	{ FIELD(node, machine, "machine", text), .check = id_check },
	{ FIELD(node, boot, "boot", text), .check = id_check },
	{ LIST(node, hardware, "hardware", &hardware_id) },
	{ FIELD(node, reclaim_after, "reclaimAfter", number), .max = INT32_MAX },
	{ FIELD(node, recovery, "recovery", text), .check = id_check },
	{ OBJECT(node, vtep, "vtep", vtep_fields) },
	{ OBJECT(node, agent, "agent", agent_fields) },
};

/* What no machine can have as its own would only fail later, in BIRD or as a next hop. */
static int own_address(const char *field, const struct prefix *p, struct err *err)
{
	char text[PREFIX_TEXT];

	if (!p->address.family ||
	    !(address_is_unspecified(&p->address) || address_is_multicast(&p->address)))
		return 0;
	return err_set(err, -EINVAL, "field \"%s\": %s is no machine's address", field,
		       prefix_print(p, text));
}

static int node_check(const void *record, struct err *err)
{
	const struct node *node = record;
	int r;

	if (!node->ipv4.address.family && !node->ipv6.address.family)
		return err_set(err, -EINVAL,
			       "fields \"ipv4\" and \"ipv6\": at least one is required");
	r = own_address("ipv4", &node->ipv4, err);
	return r < 0 ? r : own_address("ipv6", &node->ipv6, err);
}

static const struct record_part node_parts[] = { RECORD_PART(node, name, text, node) };

const struct record node_record = {
	.kind = KEY_NODE,
	.size = sizeof(struct node),
	.parts = node_parts,
	.n_parts = ARRAY_SIZE(node_parts),
	.fields = node_fields,
	.n_fields = ARRAY_SIZE(node_fields),
	.check = node_check,
};

RECORD_DEFINE(node, node_record)

/* --- spec: what others say about it --------------------------------------------------------- */

static const struct field pod_cidr = { ELEMENT(prefix) };

static const struct field spec_fields[] = {
	{ FIELD(node_spec, labels, "labels", labels) },
	{ FIELD(node_spec, asn, "asn", number), .min = 1, .max = UINT32_MAX },
	{ FIELD(node_spec, route_reflector_cluster_id, "routeReflectorClusterId", address),
	  .family = AF_INET },
	{ FIELD(node_spec, kubernetes_uid, "kubernetesUid", text), .check = id_check },
	{ LIST(node_spec, pod_cidrs, "podCIDRs", &pod_cidr) },
	{ FIELD(node_spec, drain, "drain", flag) },
};

static const struct record_part spec_parts[] = { RECORD_PART(node_spec, node, text, node) };

const struct record spec_record = {
	.kind = KEY_SPEC,
	.size = sizeof(struct node_spec),
	.parts = spec_parts,
	.n_parts = ARRAY_SIZE(spec_parts),
	.fields = spec_fields,
	.n_fields = ARRAY_SIZE(spec_fields),
};

RECORD_DEFINE(node_spec, spec_record)

/* --- removed -------------------------------------------------------------------------------- */

static const struct field removed_fields[] = {
	{ FIELD(node_removed, by, "by", text), .check = word_check },
	{ FIELD(node_removed, when, "when", time) },
	{ FIELD(node_removed, now, "now", flag) },
};

static const struct record_part removed_parts[] = { RECORD_PART(node_removed, node, text, node) };

const struct record removed_record = {
	.kind = KEY_REMOVED,
	.size = sizeof(struct node_removed),
	.parts = removed_parts,
	.n_parts = ARRAY_SIZE(removed_parts),
	.fields = removed_fields,
	.n_fields = ARRAY_SIZE(removed_fields),
};

RECORD_DEFINE(node_removed, removed_record)

uint64_t node_machine(const struct node *node)
{
	uint64_t all = HASH_TEXTS("machine", node->machine).low;
	char ipv4[PREFIX_TEXT], ipv6[PREFIX_TEXT];

	/* The order in which the kernel lists network cards is no property of a machine. */
	for (size_t i = 0; i < node->hardware.n; i++)
		all ^= HASH_TEXTS("hardware", node->hardware.v[i]).low;
	if (!node->hardware.n)
		all ^= HASH_TEXTS("addresses",
				  node->ipv4.address.family ? prefix_print(&node->ipv4, ipv4) : "",
				  node->ipv6.address.family ? prefix_print(&node->ipv6, ipv6) : "")
			       .low;
	return all;
}

/* --- recovery ------------------------------------------------------------------------------- */

static const struct field recovery_fields[] = {
	{ FIELD(recovery, id, "id", text), .check = id_check, .required = true },
	{ FIELD(recovery, by, "by", text), .check = word_check },
	{ FIELD(recovery, number, "number", number), .max = INT32_MAX },
	{ FIELD(recovery, began, "began", time) },
	{ FIELD(recovery, longest, "longest", number), .max = INT32_MAX },
	{ FIELD(recovery, revision, "revision", revision) },
	{ FIELD(recovery, done, "done", flag) },
};

const struct record recovery_record = {
	.kind = KEY_RECOVERY,
	.size = sizeof(struct recovery),
	.fields = recovery_fields,
	.n_fields = ARRAY_SIZE(recovery_fields),
};

RECORD_DEFINE(recovery, recovery_record)
