/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of etcd as structs: the common ground of all programs.
 *
 *   etcd -> key, JSON -> [model] -> state ...          ... -> [model] -> JSON -> etcd
 *
 * Pure. Each record has four functions, declared by RECORD():
 *
 *   int  pool_decode(key, json, len, &ret, err)  0, -ENOMEM, or -EINVAL (-E2BIG) with a sentence
 *                                                that names key, field, value and rule
 *   int  pool_encode(&pool, &text)               0 or -ENOMEM; free() the text
 *   bool pool_equal(&a, &b)
 *   void pool_done(&pool)                        releases the contents; AUTO_DONE(pool_done) does too
 *
 * The key is relative ("pool/web") and gives the parts marked "key" below. A
 * decoded record is whole and valid: every default is filled in, texts are never
 * NULL. An absent address or prefix has family 0, an absent text or time is "".
 * Unknown fields are ignored; a wrong one refuses the whole record. Encoding
 * writes the required fields and those that differ from their default, in the
 * order of the tables: what an operator would have typed. It trusts the struct.
 * A record may be made by hand with texts that lie anywhere (NULL is ""); never
 * call _done() on such a one.
 */
#pragma once

#include "lib/base/names.h"
#include "lib/json/values.h"

#define RECORD(noun)                                                                               \
	int noun##_decode(const char *key, const char *json, size_t len, struct noun *ret,         \
			  struct err *err);                                                        \
	int noun##_encode(const struct noun *record, char **ret);                                  \
	bool noun##_equal(const struct noun *a, const struct noun *b);                             \
	void noun##_done(struct noun *record);

/* --- config --------------------------------------------------------------------------------- */

enum protocol { PROTOCOL_BGP, PROTOCOL_OSPF, PROTOCOL_RIP, PROTOCOL_NONE };
enum announce { ANNOUNCE_LEARN, ANNOUNCE_STATIC };
enum ospf_type { OSPF_BROADCAST, OSPF_PTP };

struct config_bgp {
	uint32_t hold_time, keepalive_time, connect_retry_time; /* s; keepalive 0: a third */
	bool graceful_restart;
	uint32_t graceful_restart_time;
	bool bfd;
	uint32_t ecmp, listen_port;
	struct texts communities;
	/* of the mesh alone */
	const char *password_file; /* "": none */
	bool ttl_security;
	bool verify_owners; /* of blocks that nodes announce */
};

struct config_bfd {
	uint32_t min_rx, min_tx; /* ms */
	uint32_t multiplier;
};

struct config_ospf {
	struct address area;
	struct texts interfaces;
	uint32_t cost, hello, dead;
	enum ospf_type type;
	const char *password_file;
};

struct config_rip {
	struct texts interfaces; /* empty: all */
	uint32_t update_time, timeout_time;
	const char *password_file;
};

struct config_vxlan {
	uint32_t vni, port;
	uint32_t mtu_overhead; /* 0: 50 over IPv4, 70 over IPv6 */
	bool checksum_offload; /* false: for network cards that spoil what is in a tunnel */
};

struct cluster_config {
	uint32_t asn;
	enum protocol protocol;
	enum announce announce;
	bool mesh;
	struct config_bgp bgp;
	struct config_bfd bfd;
	struct config_ospf ospf;
	struct config_rip rip;
	uint32_t export_table; /* 0: none */
	struct config_vxlan vxlan;
	uint32_t reclaim_after; /* s */
	const char *log_level;  /* "": the agent's own */
};
RECORD(cluster_config)

/* --- pool, extent --------------------------------------------------------------------------- */

enum pool_prefix { POOL_PREFIX_HOST, POOL_PREFIX_POOL };
enum encapsulation { ENCAPSULATION_NONE, ENCAPSULATION_VXLAN, ENCAPSULATION_VXLAN_CROSS_SUBNET };

#define POOL_PRIORITY        100 /* unless the record says otherwise */
#define POOL_BLOCKS_MAX_BITS 20  /* a pool has at most 2^20 blocks */

struct pool_route {
	struct prefix dst;
	struct address gw; /* or family 0 */
};
struct pool_routes {
	struct pool_route *v;
	size_t n;
};

struct pool_dns {
	struct addresses nameservers;
	const char *domain;
	struct texts search, options;
};

struct pool {
	const char *name; /* key */
	struct prefix cidr;
	uint32_t block_size;
	const char *network;
	bool routed;
	struct selector_text node_selector;
	struct texts namespaces;               /* exact, or ending in '*' */
	uint32_t priority;                     /* the pool with the higher one is tried first */
	bool strict;                           /* a fence around those namespaces: KEYS.md */
	struct address range_start, range_end; /* the first and the last of cidr by default */
	struct prefixes exclude;
	enum pool_prefix prefix;
	struct address gateway; /* or family 0 */
	struct pool_routes routes;
	struct pool_dns dns;
	bool reserve_edges;
	enum encapsulation encapsulation;
	bool announce, nat_outgoing;
	uint32_t preallocate, max_blocks_per_node; /* 0: no limit */
	uint32_t cooldown_seconds;
	bool disabled;
	const char *origin;
};
RECORD(pool)
/* In which order pools are tried that serve alike: the higher priority, then the name. */
int pool_order(const struct pool *a, const struct pool *b);

struct extent {
	const char *network, *pool; /* key */
	struct prefix cidr;
	uint32_t block_size;
	char made[TIME_TEXT];
};
RECORD(extent)

/*
 * -EEXIST and a sentence that names both, when an address would belong to two pools of one
 * network; else 0. A pool and the extent of its own name never conflict here.
 */
int pool_conflicts_pool(const struct pool *a, const struct pool *b, struct err *err);
int pool_conflicts_extent(const struct pool *pool, const struct extent *extent, struct err *err);
int extent_conflicts_extent(const struct extent *a, const struct extent *b, struct err *err);
/* The first pair of a whole set that conflicts, by the two checks above. */
int pools_conflict(const struct pool *const *pools, size_t n_pools,
		   const struct extent *const *extents, size_t n_extents, struct err *err);
/* -ESTALE and a sentence when the pool was edited after blocks were cut: its extent rules. */
int pool_differs_from_extent(const struct pool *pool, const struct extent *extent, struct err *err);

/* --- node, spec, removed -------------------------------------------------------------------- */

struct node_vtep {
	struct mac mac;
	struct address ipv4, ipv6;
};

struct node_agent {
	const char *version;
	char started[TIME_TEXT];
};

struct node {
	const char *name;         /* key */
	struct prefix ipv4, ipv6; /* with host bits; at least one */
	const char *machine, *boot;
	struct texts hardware;  /* ids of the machine beside its id: "mac:...", "dmi:..." */
	uint32_t reclaim_after; /* s: so long its blocks and its name are nobody else's; 0: unknown
				 */
	const char *recovery;   /* id of the last recovery for which it has said what it holds */
	struct node_vtep vtep;
	struct node_agent agent;
};
RECORD(node)
/*
 * Which machine a record is of, as a number: its id with those of its hardware, or with its
 * addresses where no hardware is known. Another number means: perhaps another machine.
 */
uint64_t node_machine(const struct node *node);

struct node_spec {
	const char *node; /* key */
	struct label_map labels;
	uint32_t asn;                              /* 0: config's */
	struct address route_reflector_cluster_id; /* IPv4, or family 0: no reflector */
	const char *kubernetes_uid;
	struct prefixes pod_cidrs;
	bool drain; /* no new addresses; what runs stays */
};
RECORD(node_spec)

struct node_removed {
	const char *node; /* key */
	const char *by;
	char when[TIME_TEXT];
	bool now; /* the operator says that the machine is off */
};
RECORD(node_removed)

/*
 * etcd went back or was emptied: nobody claims a block that he did not hold before everybody has
 * said what he holds (docs/ARCHITECTURE.md, "Who may give an address").
 */
#define RECOVERY_TEXT 129

struct recovery {
	const char *id, *by;
	uint32_t number; /* above that of every earlier one: which of two is the later */
	char began[TIME_TEXT];
	uint32_t longest; /* s: the longest reclaimAfter that a silent node may count on */
	int64_t revision; /* the newest that a node knew before etcd went back */
	bool done;
};
RECORD(recovery)

/* --- who did what --------------------------------------------------------------------------- */

struct history_change {
	const char *key;  /* relative: "pool/web" */
	const char *done; /* created, changed, deleted */
};
struct history_changes {
	struct history_change *v;
	size_t n;
};

/* One command of roostctl that wrote. Its revision is that of what it wrote. */
struct history_entry {
	const char *name; /* key: sorts by time */
	char when[TIME_TEXT];
	const char *user, *host; /* of the process */
	const char *sudo_user;   /* as the environment says, which anybody can set; "": none */
	const char *command;     /* noun, verb and arguments */
	struct history_changes changes;
};
RECORD(history_entry)
#define HISTORY_MAX 500 /* entries; the oldest go */

/* --- what controllers write ----------------------------------------------------------------- */

struct leader {
	const char *id, *address; /* of the process; where it shows its metrics, or "" */
	char since[TIME_TEXT];
};
RECORD(leader)

#define POOL_EVENTS_MAX 10

struct pool_event {
	char when[TIME_TEXT];
	const char *what;
};
struct pool_events {
	struct pool_event *v; /* the newest last */
	size_t n;
};

struct pool_status {
	const char *pool;    /* key */
	const char *invalid; /* why the record counts as absent; "" if it does not */
	bool full;           /* every block has an owner, and somebody wants one more */
	uint32_t lacking;    /* nodes that have fewer blocks than preallocate says */
	struct pool_events events;
};
RECORD(pool_status)

/* --- block, host block, address ------------------------------------------------------------- */

/* A block that the lease server gave away: whom to, and what the others must know to reach it. */
struct block_lease {
	struct address public_ip; /* or family 0: no lease */
	const char *backend_type;
	const char *backend_data; /* a JSON object as text; "": none */
	char expires[TIME_TEXT];  /* "": never, a reservation */
	const char *owner;        /* the client that may change it: "DNS:n5"; "": none is known */
	/* Taken back, and kept for its former holder until then: nobody is shown it. */
	bool revoked;
};
#define LEASE_BACKEND_DATA_MAX 4096

struct block {
	const char *network; /* key */
	struct prefix block; /* key */
	const char *node;
	const char *pool;
	const char *token;
	char claimed[TIME_TEXT];
	const char
		*recovery; /* id of the recovery in which its holder claimed it again; "": none */
	struct block_lease lease;
};
RECORD(block)

struct host_block {
	const char *node, *network; /* key */
	struct prefix block;        /* key */
	const char *pool;
	char claimed[TIME_TEXT];
};
RECORD(host_block)

struct address_record {
	const char *node, *network; /* key */
	struct address address;     /* key */
	const char *container, *interface, *pool, *namespace, *pod, *link, *netns, *boot;
	char assigned[TIME_TEXT];
	bool reserved; /* tunnel address: no boot frees it */
};
RECORD(address_record)

/* --- static route --------------------------------------------------------------------------- */

enum on_tamper { ON_TAMPER_RESTORE, ON_TAMPER_REPORT };

#define STATIC_ROUTE_GATEWAYS_MAX 32

struct static_route {
	const char *name; /* key */
	struct selector_text node_selector;
	char deleting[TIME_TEXT]; /* "": it is to be there */
	struct prefix subnet;
	struct addresses gateways; /* of the subnet's family, no two alike; empty: detected */
	uint32_t table;            /* 0: the agent's default for all, which is main */
	uint32_t metric;
	enum on_tamper on_tamper;
};
RECORD(static_route)

/*
 * What a record says that is wrong elsewhere: whom it concerns and whether it is to go. So the
 * nodes that it selects can report what is wrong, and it can be deleted. Each of the two is read
 * by itself; -EINVAL with a sentence only where neither is sound.
 */
struct static_route_head {
	const char *name;    /* key */
	bool selector_known; /* or else all nodes report that: nobody can tell whom it means */
	struct selector_text node_selector;
	char deleting[TIME_TEXT];
};
int static_route_head_decode(const char *key, const char *json, size_t len,
			     struct static_route_head *ret, struct err *err);
void static_route_head_done(struct static_route_head *head);

struct static_route_tampered {
	uint32_t count;
	char last[TIME_TEXT];
};

/* By the node's agent. Without a subnet nothing is in the kernel, and error says why. */
struct static_route_status {
	const char *name, *node;   /* key */
	struct prefix subnet;      /* as the kernel has it; or family 0 */
	struct addresses gateways; /* those in the kernel */
	uint32_t table;            /* 0 with no subnet */
	char since[TIME_TEXT];     /* that it is so: applied, or in error */
	int64_t revision;          /* of the record that this is about */
	const char *error;         /* sentence_check; "" */
	struct static_route_tampered tampered;
};
RECORD(static_route_status)

/* --- peer, filter --------------------------------------------------------------------------- */

#define UNSET UINT32_MAX /* a number that the record leaves to config, or leaves alone */

enum family { FAMILY_IPV4, FAMILY_IPV6 };
struct families {
	enum family *v;
	size_t n;
};

struct peer {
	const char *name;                   /* key */
	struct neighbour address;           /* or family 0: then peer_selector */
	struct selector_text peer_selector; /* "": then address */
	uint32_t asn;                       /* with address */
	struct texts nodes;                 /* empty: node_selector */
	struct selector_text node_selector;
	uint32_t port;      /* 0: 179; with peer_selector config's listenPort */
	uint32_t local_asn; /* 0: the node's */
	struct address source_address;
	uint32_t multihop; /* 0: what fits the neighbour */
	bool ttl_security, passive;
	const char *password_file;
	enum maybe bfd;
	uint32_t hold_time, keepalive_time, connect_retry_time; /* UNSET: config's */
	enum maybe graceful_restart;
	uint32_t graceful_restart_time; /* UNSET: config's */
	bool next_hop_self, next_hop_keep;
	uint32_t allow_local_as;
	bool reflector_client;
	struct families families; /* empty: those that fit */
	const char *import_filter, *export_filter;
	const char *description;
	bool disabled;
};
RECORD(peer)

/* No neighbour's address: unspecified, multicast, or IPv4 written as IPv6. */
bool address_is_no_neighbour(const struct address *a);

enum filter_action { FILTER_ACCEPT, FILTER_REJECT, FILTER_CONTINUE };
enum filter_origin {
	FILTER_ORIGIN_ANY,
	FILTER_ORIGIN_IGP,
	FILTER_ORIGIN_EGP,
	FILTER_ORIGIN_INCOMPLETE
};

#define FILTER_RULES_MAX 256

struct filter_match {
	struct prefix cidr; /* or family 0: any */
	uint32_t ge, le;    /* lengths; UNSET: see filter_lengths() */
	const char *community, *large_community;
	uint32_t as_path_contains; /* 0: any */
	enum filter_origin origin;
};

struct filter_set {
	uint32_t local_pref, med; /* UNSET: left alone */
	struct texts add_communities;
	uint32_t prepend;
};

struct filter_rule {
	struct filter_match match;
	enum filter_action action;
	struct filter_set set;
};
struct filter_rules {
	struct filter_rule *v;
	size_t n;
};

struct filter {
	const char *name; /* key */
	struct filter_rules rules;
};
RECORD(filter)

/*
 * The filter that the peer names for one direction among these; NULL: it names none. -ENOENT and a
 * sentence when it is not there: its sessions are left out then.
 */
int peer_filter(const struct peer *peer, bool import, const struct filter *const *filters, size_t n,
		const struct filter **ret, struct err *err);

/* Which lengths a match with a cidr means: with neither ge nor le exactly the cidr's. */
void filter_lengths(const struct filter_match *match, uint32_t *ret_ge, uint32_t *ret_le);
