/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the audit: what etcd holds, decoded (audit_state.c), and how a finding is made (audit.c). */
#pragma once

#include "ipam/audit/audit.h"
#include "lib/base/array.h"
#include "lib/model/keys.h"

/* Every node that any key names. */
struct seen_node {
	char *name;
	const struct store_kv *kv, *removed, *status; /* NULL: absent */
	struct node record;                           /* all zero if kv is NULL or damaged */
	bool removed_now;                             /* somebody says that the machine is off */
	size_t blocks, indexes, addresses;
};

/* A damaged record has its key alone; owner is then NULL. */
struct seen_block {
	const struct store_kv *kv;
	char network[NAME_TEXT];
	struct prefix block;
	struct block record;
	struct seen_node *owner;
};
struct seen_index {
	const struct store_kv *kv;
	char network[NAME_TEXT];
	struct prefix block;
	struct host_block record;
	bool damaged;
	struct seen_node *node;
};
struct seen_address {
	const struct store_kv *kv;
	char network[NAME_TEXT];
	struct address address;
	struct seen_node *node;
	bool damaged, reserved;
	char boot[129];
};
struct seen_extent {
	const struct store_kv *kv;
	char network[NAME_TEXT], pool[NAME_TEXT];
	struct extent record;
	bool damaged;
};
struct seen_pool {
	const struct store_kv *kv;
	char name[NAME_TEXT];
	struct pool record;
	bool damaged;
};

struct audit {
	const struct audit_input *in;
	ARRAY(struct seen_node) nodes;        /* by name */
	ARRAY(struct seen_block) blocks;      /* by network, block */
	ARRAY(struct seen_index) indexes;     /* by network, block, node */
	ARRAY(struct seen_address) addresses; /* by network, address, node */
	ARRAY(struct seen_extent) extents;    /* by network, cidr */
	ARRAY(struct seen_pool) pools;        /* by name */
	bool lengths[2][129];                 /* which lengths blocks have, IPv4 first */
	struct findings findings;
	bool failed; /* out of memory: reported at the end */
};

int audit_read(struct audit *a);
void audit_forget(struct audit *a);

const struct seen_node *audit_node(const struct audit *a, const char *name);
const struct seen_block *audit_block(const struct audit *a, const char *network,
				     const struct prefix *block);
const struct seen_index *audit_index(const struct audit *a, const char *network,
				     const struct prefix *block, const char *node);
/* The first of those of a block, which follow each other; *ret_n is their number. */
const struct seen_index *audit_indexes(const struct audit *a, const char *network,
				       const struct prefix *block, size_t *ret_n);
const struct seen_extent *audit_extent(const struct audit *a, const char *network,
				       const char *pool);
const struct seen_pool *audit_pool(const struct audit *a, const char *name);
/* The narrowest block around an address; node NULL: anybody's, else only that node's. */
const struct seen_block *audit_block_around(const struct audit *a, const char *network,
					    const struct address *address,
					    const struct seen_node *node);
/* Addresses in a block: of this node, or of anybody with NULL. */
size_t audit_addresses_in(const struct audit *a, const char *network, const struct prefix *block,
			  const struct seen_node *node);
const struct seen_address *audit_address(const struct audit *a, const char *node,
					 const char *network, const struct address *address);

/* --- a finding ------------------------------------------------------------------------------ */

/*
 * The others are about the finding that was made last. It has the todo and left of its kind, where
 * these are always the same; without memory the whole audit fails.
 */
void finding_new(struct audit *a, enum finding_kind kind, enum finding_severity severity,
		 const char *thing, const char *fmt, ...) PRINTF_LIKE(5, 6);
void finding_todo(struct audit *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
void finding_left(struct audit *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* What it is concluded from: this key as it is (NULL: nothing); this one's absence; no new key in
 * a range. */
void finding_from(struct audit *a, const struct store_kv *kv);
void finding_from_absent(struct audit *a, const char *key);
void finding_from_no_newer(struct audit *a, const char *beginning);

/* What its repair does; value is taken and may be NULL for out of memory. */
void finding_deletes(struct audit *a, const char *key);
void finding_puts(struct audit *a, const char *key, char *value);

/* Its repair deletes this link. */
void finding_unlinks(struct audit *a, uint32_t link);

void audit_undecodable(struct audit *a, const struct store_kv *kv, const char *why);

/* --- what finds them ------------------------------------------------------------------------ */

void audit_etcd(struct audit *a);
void audit_local(struct audit *a);
