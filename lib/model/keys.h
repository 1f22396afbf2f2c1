/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys in etcd: one pattern per kind, read by the builder and the parser.
 *
 * Pure. Keys are relative to the prefix ("/roost/v1/" by default): "pool/web",
 * "block/default/10.1.0.64-26". Strict on both sides: what key_parse() accepts
 * is exactly what the builders make, byte for byte, so two texts never mean one
 * thing. A builder given a part that is not a valid name says -EINVAL and makes
 * nothing. A foreign key under our prefix is -EINVAL for the parser: not ours,
 * left alone.
 */
#pragma once

#include "lib/base/names.h"
#include "lib/base/prefix.h"

#define KEY_PREFIX "/roost/v1/"
/* Room for the longest relative key with its NUL, and for one with a prefix. */
#define KEY_TEXT      512
#define KEY_FULL_TEXT (KEY_TEXT + 256)

enum key_kind {
	KEY_CONFIG,              /* config */
	KEY_POOL,                /* pool/<pool> */
	KEY_EXTENT,              /* extent/<network>/<pool> */
	KEY_BLOCK,               /* block/<network>/<block> */
	KEY_HOST_BLOCK,          /* host/<node>/<family>/block/<network>/<block> */
	KEY_ADDRESS,             /* host/<node>/address/<network>/<address> */
	KEY_GIVE_BACK,           /* host/<node>/give-back/<network> */
	KEY_NODE,                /* node/<node> */
	KEY_SPEC,                /* spec/<node> */
	KEY_REMOVED,             /* removed/<node> */
	KEY_RECOVERY,            /* recovery */
	KEY_PEER,                /* peer/<name> */
	KEY_FILTER,              /* filter/<name> */
	KEY_STATIC_ROUTE,        /* static-route/<name> */
	KEY_STATUS_NODE,         /* status/node/<node> */
	KEY_STATUS_POOL,         /* status/pool/<pool> */
	KEY_STATUS_STATIC_ROUTE, /* status/static-route/<name>/<node> */
	KEY_LEADER,              /* leader/controller */
	KEY_HISTORY,             /* history/<name> */
	KEY_KINDS
};

/* Only the parts that the kind has are set, the others are empty. */
struct key {
	enum key_kind kind;
	char node[NODE_NAME_TEXT];
	char network[NAME_TEXT];
	char pool[NAME_TEXT];
	char name[NAME_TEXT];
	struct prefix block; /* its family is the <family> of the key */
	struct address address;
};

/* The pattern as in the list above, for help texts and documentation. */
const char *key_pattern(enum key_kind kind);

/* 0 or -EINVAL; ret is written only on success. */
int key_parse(const char *text, struct key *ret);
/* The same for a whole key: -EINVAL too when it does not begin with prefix. */
int key_parse_full(const char *prefix, const char *text, struct key *ret);

/* All that follow write KEY_TEXT bytes at most and return 0 or -EINVAL. */
int key_print(const struct key *key, char *text);

/* struct key without its copies; absent parts are NULL. A pattern may end in '/'. */
struct key_parts {
	const char *node, *network, *pool, *name;
	const struct prefix *block;
	const struct address *address;
	sa_family_t family;
};
int key_build(char *text, const char *pattern, const struct key_parts *parts);
#define KEY_BUILD(text, pattern, ...)                                                              \
	key_build(text, pattern, &(const struct key_parts){ __VA_ARGS__ })

#define key_config(text)      KEY_BUILD(text, key_pattern(KEY_CONFIG), 0)
#define key_pool(text, pool_) KEY_BUILD(text, key_pattern(KEY_POOL), .pool = (pool_))
#define key_extent(text, network_, pool_)                                                          \
	KEY_BUILD(text, key_pattern(KEY_EXTENT), .network = (network_), .pool = (pool_))
#define key_block(text, network_, block_)                                                          \
	KEY_BUILD(text, key_pattern(KEY_BLOCK), .network = (network_), .block = (block_))
#define key_host_block(text, node_, network_, block_)                                              \
	KEY_BUILD(text, key_pattern(KEY_HOST_BLOCK), .node = (node_), .network = (network_),       \
		  .block = (block_), .family = (block_)->address.family)
#define key_address(text, node_, network_, address_)                                               \
	KEY_BUILD(text, key_pattern(KEY_ADDRESS), .node = (node_), .network = (network_),          \
		  .address = (address_))
#define key_give_back(text, node_, network_)                                                       \
	KEY_BUILD(text, key_pattern(KEY_GIVE_BACK), .node = (node_), .network = (network_))
#define key_node(text, node_)    KEY_BUILD(text, key_pattern(KEY_NODE), .node = (node_))
#define key_spec(text, node_)    KEY_BUILD(text, key_pattern(KEY_SPEC), .node = (node_))
#define key_removed(text, node_) KEY_BUILD(text, key_pattern(KEY_REMOVED), .node = (node_))
#define key_recovery(text)       KEY_BUILD(text, key_pattern(KEY_RECOVERY), 0)
#define key_peer(text, name_)    KEY_BUILD(text, key_pattern(KEY_PEER), .name = (name_))
#define key_filter(text, name_)  KEY_BUILD(text, key_pattern(KEY_FILTER), .name = (name_))
#define key_static_route(text, name_)                                                              \
	KEY_BUILD(text, key_pattern(KEY_STATIC_ROUTE), .name = (name_))
#define key_status_node(text, node_) KEY_BUILD(text, key_pattern(KEY_STATUS_NODE), .node = (node_))
#define key_status_pool(text, pool_) KEY_BUILD(text, key_pattern(KEY_STATUS_POOL), .pool = (pool_))
#define key_status_static_route(text, name_, node_)                                                \
	KEY_BUILD(text, key_pattern(KEY_STATUS_STATIC_ROUTE), .name = (name_), .node = (node_))
#define key_leader(text)         KEY_BUILD(text, key_pattern(KEY_LEADER), 0)
#define key_history(text, name_) KEY_BUILD(text, key_pattern(KEY_HISTORY), .name = (name_))

/* What is listed and watched: the beginnings that many keys share, with the last '/'. */
#define KEYS_POOL                       "pool/"
#define KEYS_EXTENT                     "extent/"
#define KEYS_BLOCK                      "block/"
#define KEYS_HOST                       "host/"
#define KEYS_NODE                       "node/"
#define KEYS_SPEC                       "spec/"
#define KEYS_REMOVED                    "removed/"
#define KEYS_PEER                       "peer/"
#define KEYS_FILTER                     "filter/"
#define KEYS_STATIC_ROUTE               "static-route/"
#define KEYS_HISTORY                    "history/"
#define KEYS_STATUS                     "status/"
#define KEYS_STATUS_NODE                KEYS_STATUS "node/"
#define KEYS_STATUS_POOL                KEYS_STATUS "pool/"
#define KEYS_STATUS_ROUTE               KEYS_STATUS "static-route/"
#define keys_of_host(text, node_)       KEY_BUILD(text, "host/<node>/", .node = (node_))
#define keys_of_extents(text, network_) KEY_BUILD(text, "extent/<network>/", .network = (network_))
#define keys_of_blocks(text, network_)  KEY_BUILD(text, "block/<network>/", .network = (network_))
#define keys_of_host_blocks(text, node_, family_)                                                  \
	KEY_BUILD(text, "host/<node>/<family>/block/", .node = (node_), .family = (family_))
#define keys_of_host_addresses(text, node_) KEY_BUILD(text, "host/<node>/address/", .node = (node_))
#define keys_of_static_route_status(text, name_)                                                   \
	KEY_BUILD(text, "status/static-route/<name>/", .name = (name_))

/* prefix and relative key in one; text holds KEY_FULL_TEXT. -ENAMETOOLONG if they do not fit. */
int key_full(const char *prefix, const char *key, char *text);
