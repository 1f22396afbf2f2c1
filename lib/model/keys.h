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

int key_config(char *text);
int key_pool(char *text, const char *pool);
int key_extent(char *text, const char *network, const char *pool);
int key_block(char *text, const char *network, const struct prefix *block);
int key_host_block(char *text, const char *node, const char *network, const struct prefix *block);
int key_address(char *text, const char *node, const char *network, const struct address *address);
int key_give_back(char *text, const char *node, const char *network);
int key_node(char *text, const char *node);
int key_spec(char *text, const char *node);
int key_removed(char *text, const char *node);
int key_recovery(char *text);
int key_peer(char *text, const char *name);
int key_filter(char *text, const char *name);
int key_static_route(char *text, const char *name);
int key_status_node(char *text, const char *node);
int key_status_pool(char *text, const char *pool);
int key_status_static_route(char *text, const char *name, const char *node);
int key_leader(char *text);

/* What is listed and watched: the beginnings that many keys share, with the last '/'. */
#define KEYS_POOL         "pool/"
#define KEYS_EXTENT       "extent/"
#define KEYS_BLOCK        "block/"
#define KEYS_HOST         "host/"
#define KEYS_NODE         "node/"
#define KEYS_SPEC         "spec/"
#define KEYS_REMOVED      "removed/"
#define KEYS_PEER         "peer/"
#define KEYS_FILTER       "filter/"
#define KEYS_STATIC_ROUTE "static-route/"
#define KEYS_STATUS       "status/"
#define KEYS_STATUS_NODE  KEYS_STATUS "node/"
#define KEYS_STATUS_POOL  KEYS_STATUS "pool/"
#define KEYS_STATUS_ROUTE KEYS_STATUS "static-route/"
int keys_of_host(char *text, const char *node);       /* host/<node>/ */
int keys_of_extents(char *text, const char *network); /* extent/<network>/ */
int keys_of_blocks(char *text, const char *network);  /* block/<network>/ */
int keys_of_host_blocks(char *text, const char *node,
			sa_family_t family);                   /* host/<node>/ipv4/block/ */
int keys_of_host_addresses(char *text, const char *node);      /* host/<node>/address/ */
int keys_of_static_route_status(char *text, const char *name); /* status/static-route/<name>/ */

/* prefix and relative key in one; text holds KEY_FULL_TEXT. -ENAMETOOLONG if they do not fit. */
int key_full(const char *prefix, const char *key, char *text);
