/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers write: who leads, and how the pools are. */
#include "lib/model/model.h"
#include "lib/model/record.h"

/* --- leader --------------------------------------------------------------------------------- */

static const struct field leader_fields[] = {
	{ FIELD(leader, id, "id", text), .check = id_check, .required = true },
	{ FIELD(leader, address, "address", text), .check = word_check },
	{ FIELD(leader, since, "since", time) },
};

const struct record leader_record = {
	.kind = KEY_LEADER,
	.size = sizeof(struct leader),
	.fields = leader_fields,
	.n_fields = ARRAY_SIZE(leader_fields),
};

RECORD_DEFINE(leader, leader_record)

/* --- the state of a pool -------------------------------------------------------------------- */

static const struct field event_fields[] = {
	{ FIELD(pool_event, when, "when", time) },
	{ FIELD(pool_event, what, "what", text), .check = word_check, .required = true },
};
static const struct field event = { ELEMENT_OBJECT(pool_event, event_fields) };

static const struct field pool_status_fields[] = {
	{ FIELD(pool_status, invalid, "invalid", text), .check = word_check },
	{ FIELD(pool_status, full, "full", flag) },
	{ FIELD(pool_status, lacking, "lacking", number), .max = UINT32_MAX },
	{ LIST(pool_status, events, "events", &event) },
};

static const struct record_part pool_status_parts[] = { RECORD_PART(pool_status, pool, text,
								    pool) };

const struct record pool_status_record = {
	.kind = KEY_STATUS_POOL,
	.size = sizeof(struct pool_status),
	.parts = pool_status_parts,
	.n_parts = ARRAY_SIZE(pool_status_parts),
	.fields = pool_status_fields,
	.n_fields = ARRAY_SIZE(pool_status_fields),
};

RECORD_DEFINE(pool_status, pool_status_record)
