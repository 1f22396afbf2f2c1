/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of fields: one line says what a field of a record is called in JSON,
 * where it lies in the struct, its rule and its default.
 *
 *   JSON --json.h--> [fields] --> struct          struct --> [fields] --> JSON
 *
 * Pure. From the table follow reading, writing, comparing and releasing, so they
 * cannot drift apart. Reading touches only what the JSON names; writing leaves
 * out what equals the default. A string that is empty counts as absent where
 * being absent means empty.
 */
#pragma once

#include "lib/base/names.h"
#include "lib/json/json.h"
#include "lib/json/values.h"

struct field;

struct field_type {
	bool blank_is_absent;
	/* The default into zeroed memory; NULL: zero is the default. 0 or -ENOMEM. */
	int (*init)(const struct field *f, void *at);
	/* Only called for a value that is there (null in a list: refuse it). Replaces what is at
	 * "at"; 0, -EINVAL or -ENOMEM. */
	int (*read)(const struct field *f, struct json_at in, void *at);
	/* usual is the default: of interest to those that have fields of their own. */
	int (*write)(const struct field *f, const void *at, const void *usual,
		     struct json_object **ret);
	bool (*equal)(const struct field *f, const void *a, const void *b);
	void (*done)(const struct field *f, void *at); /* NULL: nothing to release */
};

struct field {
	const char *name;
	const struct field_type *type;
	size_t at;
	bool required;
	uint32_t min, max, initial; /* number; initial of flag and choice too */
	bool or_zero;               /* number: 0 is allowed beside min to max */
	name_check_fn *check;       /* text, borrowed */
	const char *initial_text;   /* text */
	const char *const *choices; /* choice: the words in the enum's order, then NULL */
	sa_family_t family;         /* address, prefix: only this one; 0: either */
	const struct field *fields; /* object: its table; list: one line for an element */
	size_t n_fields;
	size_t size; /* object: of its struct; list: of an element */
};

/*
 *   { FIELD(pool, cidr, "cidr", prefix), .required = true },
 *
 * says what type of field it is by its last word. The array of negative length stops a member
 * whose size does not fit that type.
 */
#define FIELD(record, member, json, kind)                                                          \
	.name = (json), .type = &field_##kind,                                                     \
	.at = offsetof(struct record, member) +                                                    \
	      0 * sizeof(char[sizeof(((struct record *)0)->member) == sizeof(field_c_##kind)       \
				      ? 1                                                          \
				      : -1])
#define OBJECT(record, member, json, table)                                                        \
	.name = (json), .type = &field_object, .at = offsetof(struct record, member),              \
	.fields = (table), .n_fields = ARRAY_SIZE(table),                                          \
	.size = sizeof(((struct record *)0)->member)
/* A struct that begins with v and n, such as a growable array. */
#define LIST(record, member, json, element)                                                        \
	.name = (json), .type = &field_list, .at = offsetof(struct record, member.v),              \
	.fields = (element), .size = sizeof(*((struct record *)0)->member.v)
/*
 * "gateway": the only element of the list that the line before, "gateways", describes. Read where
 * the list was not given (both are refused), never written.
 */
#define ONLY(record, member, json, element)                                                        \
	FIELD(record, member, json, only), .fields = (element),                                    \
					   .size = sizeof(*((struct record *)0)->member.v)
/* The one line of an element's table. */
#define ELEMENT(kind) .type = &field_##kind
#define ELEMENT_OBJECT(record, table)                                                              \
	.type = &field_object, .fields = (table), .n_fields = ARRAY_SIZE(table),                   \
	.size = sizeof(struct record)

extern const struct field_type field_text, field_borrowed, field_number, field_flag, field_choice,
	field_address, field_prefix, field_host_prefix, field_range, field_time, field_mac,
	field_selector, field_labels, field_list, field_only, field_object, field_maybe,
	field_neighbour, field_revision, field_json;

typedef const char *field_c_text;
typedef const char *field_c_borrowed; /* lies in the document and lives as long; only read */
typedef uint32_t field_c_number;
typedef bool field_c_flag;
typedef unsigned field_c_choice; /* any enum */
typedef struct address field_c_address;
typedef struct prefix field_c_prefix;
typedef struct prefix field_c_host_prefix; /* keeps host bits */
typedef struct prefix field_c_range;       /* "10.1.0.0/30", or one address: "10.1.0.5" */
typedef char field_c_time[TIME_TEXT];
typedef struct mac field_c_mac;
typedef struct selector_text field_c_selector;
typedef struct label_map field_c_labels;
typedef unsigned field_c_maybe; /* enum maybe */
typedef struct neighbour field_c_neighbour;
typedef const char *field_c_json;  /* any object, as one line of text; "": none */
typedef struct texts field_c_list; /* anything with v and n */
typedef struct texts field_c_only; /* the same member: another way to write a list of one */
typedef int64_t field_c_revision;  /* of a key in etcd */

/* Defaults into a zeroed struct. On failure as well fields_done() releases it. */
int fields_init(const struct field *table, size_t n, void *record);
int fields_read(const struct field *table, size_t n, const struct json_at *in, void *record);
int fields_write(const struct field *table, size_t n, const void *record, const void *usual,
		 struct json_object *object);
bool fields_equal(const struct field *table, size_t n, const void *a, const void *b);
void fields_done(const struct field *table, size_t n, void *record);
