/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FIELD=VALUE as typed, into a record's JSON, by the record's own table of fields.
 *
 *   "blockSize=26", {"cidr": ...} -> [assign] -> {"cidr": ..., "blockSize": 26} -> record_decode
 *
 * Pure. The table says which type a value is given; whether it is a good one is left to decoding,
 * so that the sentence is the one that an agent would say. Dots lead into objects (bgp.holdTime=30,
 * labels.zone=a). A list is typed with commas; what begins with '[' or '{' is JSON where a list or
 * an object is wanted. An empty value takes the field out: its default holds again.
 */
#pragma once

#include "lib/model/record.h"

/* 0, -ENOMEM, or -EINVAL with a sentence (for an unknown field with the nearest one). */
int assign(const struct record *type, const char *word, struct json_object *object,
	   struct err *err);
int assign_all(const struct record *type, const char *const *words, size_t n,
	       struct json_object *object, struct err *err);

/* The first member that the table does not know, however deep, as "dns.domian"; false: none.
 * field holds 128 bytes. */
bool assign_unknown(const struct record *type, struct json_object *object, char *field);
/* The sentence about one, with the nearest that is known. */
int assign_refuse_unknown(const struct record *type, const char *field, struct err *err);
