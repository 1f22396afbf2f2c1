/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Desired BIRD: what BIRD on this node should run, given what is known.
 *
 *   records -> state -> [desired_bird] -> tree -> templates/ -> confd -> BIRD
 *                                      -> protocols, problems, flaps -> log, status
 *
 * Pure: no clock, no I/O, no log. The plan follows from the records alone, is
 * sorted, and never depends on the order in which they came. Records are taken
 * as lib/model/model.h decoded them, so every text is harmless to BIRD; passwords come
 * as read and are checked here. What cannot be done safely is left out and told
 * as a problem: a session whose password cannot be read never appears without
 * one, not even by way of the mesh. Names of protocols follow from the
 * neighbour's address, so a new peer renames nobody.
 */
#pragma once

#include "lib/base/array.h"
#include "lib/model/model.h"

#define BIRD_NAME_TEXT 65 /* BIRD's 64 and the NUL */
/* Peer records with a peerSelector: each is compared with every node. */
#define BIRD_SELECTORS_MAX 256
#define BIRD_AUTH_OPTION   2017 /* the first version that wants `authentication md5` */

struct bird_node {
	const struct node *node;
	const struct node_spec *spec; /* NULL: there is none */
};

/*
 * pool is NULL when its record is gone and nothing is remembered of it: its blocks then
 * count as routed and announced on the network "default" and nowhere else, as a pool's do. silent:
 * it was not announced, that much is remembered.
 */
struct bird_extent {
	const struct extent *extent;
	const struct pool *pool;
	bool silent;
};

/* A block/ record: whose it is. */
struct bird_owned {
	struct prefix block;
	const char *node;
};

/* A file that a record names: its text, or NULL and the reason. */
struct bird_password {
	const char *path, *text, *reason;
};

struct bird_input {
	const char *self;
	struct prefix ipv4, ipv6;     /* own interface addresses; family 0: none */
	struct address router_id;     /* IPv4 form, also on IPv6-only nodes: identity.h */
	const struct node_spec *spec; /* own; NULL: none */
	const struct cluster_config *config;
	const struct bird_node *nodes; /* all of them; self among them does not matter */
	size_t n_nodes;
	const struct peer *const *peers;
	size_t n_peers;
	const struct filter *const *filters;
	size_t n_filters;
	const struct bird_extent *extents;
	size_t n_extents;
	const struct prefix *blocks; /* own blocks, routed or not */
	size_t n_blocks;
	const struct bird_owned *owned; /* all nodes' blocks; only with bgp.verifyOwners */
	size_t n_owned;
	const struct bird_password *passwords;
	size_t n_passwords;
	unsigned version;         /* BIRD's, 2017 for 2.17; 0: not known, works with all */
	uint32_t kernel_protocol; /* of the routes that are ours: 114 */
	const char *snippets;     /* a folder that exists, for *.conf of the operator; or NULL */
};

enum bird_next_hop {
	BIRD_NEXT_HOP_SELF,
	BIRD_NEXT_HOP_SELF_EBGP,
	BIRD_NEXT_HOP_KEEP,
	BIRD_NEXT_HOP_PLAIN
};

/* Sessions that agree in all of this share one template in the file. No pointers. */
struct bird_options {
	uint32_t local_asn;
	uint32_t multihop; /* 0: direct */
	uint32_t hold_time, keepalive_time, connect_retry_time, graceful_restart_time;
	uint32_t allow_local_as;
	uint32_t graceful_restart, bfd, ttl_security, rr_client; /* flags */
	uint8_t cluster_id[4]; /* with rr_client; zero: the router id */
	uint32_t next_hop;     /* enum bird_next_hop */
	uint32_t gateway_recursive;
	uint32_t ipv4, ipv6;        /* channels */
	uint32_t extended_next_hop; /* ipv4 over an IPv6 session */
	uint32_t verify_owner;      /* a flag: only blocks that the neighbour owns */
	uint32_t import, export;    /* numbers of filters; of use only while the plan is made */
};

struct bird_session {
	char name[BIRD_NAME_TEXT];
	struct neighbour neighbour;
	struct address local; /* family 0: BIRD chooses */
	uint32_t asn, port, local_port;
	bool passive;
	char *record; /* "peer/tor", "node/n2" */
	char *description;
	const char *password; /* in the plan's secrets, or NULL */
	struct bird_options options;
};

enum bird_level { BIRD_NOTICE, BIRD_PROBLEM };
struct bird_problem {
	enum bird_level level; /* a notice explains, a problem leaves something out */
	char *record, *text;
};

/* For comparison with `show protocols`. */
struct bird_intent {
	char name[BIRD_NAME_TEXT];
	const char *kind;                   /* its column "Proto": "BGP", "Kernel" */
	const struct bird_session *session; /* of BGP, else NULL */
};

struct bird_plan {
	struct json_object *tree;      /* holds passwords: never to be shown */
	struct bird_session *sessions; /* by neighbour */
	size_t n_sessions;
	struct bird_intent *protocols;
	size_t n_protocols;
	ARRAY(struct bird_problem) problems; /* by record */
	struct prefix *announced;            /* own blocks that are told to neighbours */
	size_t n_announced;
	struct texts secrets; /* for log_hide() */
	struct address router_id;
};

/* 0 or -ENOMEM; *ret is set only on success, release it with bird_plan_done(). */
int desired_bird(const struct bird_input *in, struct bird_plan *ret);
void bird_plan_done(struct bird_plan *plan);

/* The files whose passwords this node needs, sorted; passwords of in are not looked at. The
 * paths lie in the records. 0 or -ENOMEM; free() ret->v. */
int desired_bird_password_files(const struct bird_input *in, struct texts *ret);

/* --- what a new plan does to what runs ------------------------------------------------------ */

enum bird_flap_kind {
	BIRD_RESTARTS,  /* a session goes down and comes back */
	BIRD_REMOVED,   /* a session goes away */
	BIRD_WITHDRAWS, /* a block is withdrawn, for an instant or for good */
};
struct bird_flap {
	enum bird_flap_kind kind;
	char what[PREFIX_TEXT + BIRD_NAME_TEXT]; /* protocol or block */
	const char *why;                         /* "holdTime changes" */
};
struct bird_flaps {
	struct bird_flap *v;
	size_t n, room;
};
/* What loading `after` does to what runs by `before`, beyond adding. 0 or -ENOMEM. */
int bird_flaps(const struct bird_plan *before, const struct bird_plan *after,
	       struct bird_flaps *ret);
void bird_flaps_done(struct bird_flaps *flaps);
