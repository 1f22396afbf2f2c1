/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/model.h"

#include "lib/model/record.h"

/* --- block: who owns it --------------------------------------------------------------------- */

static const struct field lease_fields[] = {
	{ FIELD(block_lease, public_ip, "publicIP", address), .required = true },
	{ FIELD(block_lease, backend_type, "backendType", text), .check = word_check },
	{ FIELD(block_lease, backend_data, "backendData", json), .max = LEASE_BACKEND_DATA_MAX },
	{ FIELD(block_lease, expires, "expires", time) },
	{ FIELD(block_lease, owner, "owner", text), .check = word_check },
	{ FIELD(block_lease, revoked, "revoked", flag) },
};

static const struct field block_fields[] = {
	{ FIELD(block, node, "node", text), .required = true, .check = node_name_check },
	{ FIELD(block, pool, "pool", text), .check = name_check },
	{ FIELD(block, token, "token", text), .check = id_check },
	{ FIELD(block, claimed, "claimed", time) },
	{ FIELD(block, recovery, "recovery", text), .check = id_check },
	{ OBJECT(block, lease, "lease", lease_fields) },
};

static const struct record_part block_parts[] = {
	RECORD_PART(block, network, text, network),
	RECORD_PART(block, block, prefix, block),
};

const struct record block_record = {
	.kind = KEY_BLOCK,
	.size = sizeof(struct block),
	.parts = block_parts,
	.n_parts = ARRAY_SIZE(block_parts),
	.fields = block_fields,
	.n_fields = ARRAY_SIZE(block_fields),
};

RECORD_DEFINE(block, block_record)

/* --- host block: the index of its owner ----------------------------------------------------- */

static const struct field host_block_fields[] = {
	{ FIELD(host_block, pool, "pool", text), .check = name_check },
	{ FIELD(host_block, claimed, "claimed", time) },
};

static const struct record_part host_block_parts[] = {
	RECORD_PART(host_block, node, text, node),
	RECORD_PART(host_block, network, text, network),
	RECORD_PART(host_block, block, prefix, block),
};

const struct record host_block_record = {
	.kind = KEY_HOST_BLOCK,
	.size = sizeof(struct host_block),
	.parts = host_block_parts,
	.n_parts = ARRAY_SIZE(host_block_parts),
	.fields = host_block_fields,
	.n_fields = ARRAY_SIZE(host_block_fields),
};

RECORD_DEFINE(host_block, host_block_record)

/* --- address: one that was given out -------------------------------------------------------- */

static const struct field address_fields[] = {
	{ FIELD(address_record, container, "container", text), .check = container_id_check },
	{ FIELD(address_record, interface, "interface", text), .check = pod_interface_check },
	{ FIELD(address_record, pool, "pool", text), .check = name_check },
	{ FIELD(address_record, namespace, "namespace", text), .check = word_check },
	{ FIELD(address_record, pod, "pod", text), .check = word_check },
	{ FIELD(address_record, link, "link", text), .check = interface_check },
	{ FIELD(address_record, netns, "netns", text), .check = path_check },
	{ FIELD(address_record, boot, "boot", text), .check = id_check },
	{ FIELD(address_record, assigned, "assigned", time) },
	{ FIELD(address_record, reserved, "reserved", flag) },
};

static const struct record_part address_parts[] = {
	RECORD_PART(address_record, node, text, node),
	RECORD_PART(address_record, network, text, network),
	RECORD_PART(address_record, address, address, address),
};

const struct record address_record_type = {
	.kind = KEY_ADDRESS,
	.size = sizeof(struct address_record),
	.parts = address_parts,
	.n_parts = ARRAY_SIZE(address_parts),
	.fields = address_fields,
	.n_fields = ARRAY_SIZE(address_fields),
};

RECORD_DEFINE(address_record, address_record_type)
