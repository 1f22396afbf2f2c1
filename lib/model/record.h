/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common form of the records: key and JSON to a struct and back.
 *
 *   key, JSON -> identity from the key -> defaults -> basis fields
 *             -> defaults that follow from them -> other fields -> rules between fields
 *
 * Pure. The model_*.c files give a table for each record.
 */
#pragma once

#include "lib/json/fields.h"
#include "lib/model/keys.h"

/* One part of the key that the struct keeps: pool.name is <pool> of pool/<pool>. */
struct record_part {
	const struct field_type *type; /* field_text, field_prefix or field_address */
	size_t at, from;               /* in the record, in struct key */
};
#define RECORD_PART(record, member, kind, part)                                                    \
	{                                                                                          \
		&field_##kind, offsetof(struct record, member), offsetof(struct key, part)         \
	}

struct record {
	enum key_kind kind;
	size_t size;
	const struct record_part *parts;
	size_t n_parts;
	const struct field *fields;
	size_t n_fields;
	/* The first n_basis fields are read first; derive() then sets in record the defaults that
	 * follow from them in basis (decoding: the same struct). Numbers and flags only. */
	size_t n_basis;
	void (*derive)(const void *basis, void *record);
	/* The rules that concern more than one field; the sentence names the field. */
	int (*check)(const void *record, struct err *err);
};

/* The record of a kind of key, or NULL: for tools that treat all of them alike. */
const struct record *record_of(enum key_kind kind);
extern const struct record config_record, pool_record, extent_record, node_record, spec_record,
	removed_record, recovery_record, block_record, host_block_record, address_record_type,
	peer_record, filter_record, leader_record, pool_status_record, static_route_record,
	static_route_status_record, history_record;

int record_decode(const struct record *type, const char *key, const char *json, size_t len,
		  void *ret, struct err *err);
int record_encode(const struct record *type, const void *record, char **ret);
bool record_equal(const struct record *type, const void *a, const void *b);
void record_done(const struct record *type, void *record);

/* The four functions of a record, as lib/model/model.h declares them. */
#define RECORD_DEFINE(noun, type)                                                                  \
	int noun##_decode(const char *key, const char *json, size_t len, struct noun *ret,         \
			  struct err *err)                                                         \
	{                                                                                          \
		return record_decode(&(type), key, json, len, ret, err);                           \
	}                                                                                          \
	int noun##_encode(const struct noun *record, char **ret)                                   \
	{                                                                                          \
		return record_encode(&(type), record, ret);                                        \
	}                                                                                          \
	bool noun##_equal(const struct noun *a, const struct noun *b)                              \
	{                                                                                          \
		return record_equal(&(type), a, b);                                                \
	}                                                                                          \
	void noun##_done(struct noun *record)                                                      \
	{                                                                                          \
		record_done(&(type), record);                                                      \
	}
