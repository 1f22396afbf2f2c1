/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of desired_bird share. */
#pragma once

#include "agent/bird/desired_bird.h"
#include "agent/bird/json_tree.h"

/* The plan while it is made. */
struct bird_making {
	const struct bird_input *in;
	const struct peer **peers; /* by name */
	uint32_t asn;              /* own */
	struct address cluster_id; /* own; family 0: no reflector */
	bool transit;              /* routes of one neighbour go to another: a reflector's job */
	struct bird_filter *filters;
	size_t n_filters;
	const char *ospf_password, *rip_password; /* in the secrets, or NULL */
	bool ospf, rip;                           /* may run: what they need is there */
	struct bird_plan plan;
};

/* A filter as BIRD gets it; record is NULL for the built-in rule alone. */
struct bird_filter {
	char name[BIRD_NAME_TEXT]; /* without the family's digit */
	bool import;
	uint32_t prepend_asn; /* 0: prepending is left out */
	const struct filter *record;
};

int bird_problem(struct bird_making *m, enum bird_level level, const char *kind, const char *name,
		 const char *fmt, ...) PRINTF_LIKE(5, 6);
/* 1 and *ret (NULL for no file), 0 when it cannot be had (told as a problem), or -ENOMEM. */
int bird_secret(struct bird_making *m, const char *kind, const char *name, const char *field,
		const char *path, const char **ret);

/* Room for one more in an array that doubles at powers of two; NULL: no memory. */
void *bird_grow(void *v, size_t n, size_t size);

struct bird_offer {
	struct bird_session session;
	const struct peer *peer; /* NULL: mesh */
	bool unfit, taken;       /* taken: its texts are the plan's */
};

struct bird_offers {
	struct bird_offer *v;
	size_t n;
};

/* Another node, as far as a session with it is concerned. */
struct bird_other {
	const struct bird_node *node;
	struct labels labels;
	uint32_t asn;
	struct address cluster_id;
};

const struct address *bird_address_of(const struct node *node, sa_family_t family);
const struct prefix *bird_own(const struct bird_making *m, sa_family_t family);
int bird_offer_address(struct bird_making *m, struct bird_offers *offers, const struct peer *p);
/* The sessions with one node, one per family that both have; p is NULL for the mesh. */
int bird_offer_pair(struct bird_making *m, struct bird_offers *offers, const struct peer *p,
		    const struct bird_other *other, bool passive);
void bird_offers_done(struct bird_offers *offers);

int bird_sessions(struct bird_making *m);
/* Is this node one of the peer's own end? */
bool bird_peer_has_node(const struct peer *p, const char *name, const struct labels *labels);
/* A node's labels with the implicit one; free() ret->v. */
int bird_labels(const char *name, const struct node_spec *spec, struct labels *ret);
/* The options that config gives, then what the record says otherwise. p is NULL for the mesh. */
struct bird_options bird_options(const struct bird_making *m, const struct peer *p);
/* Chooses (and makes) the filters of a session: 1, 0 when one is absent, or -ENOMEM. */
int bird_filters(struct bird_making *m, const struct peer *p, bool ebgp, struct bird_options *o);
/* Whether blocks of that extent are routed and told to neighbours. */
bool bird_extent_announced(const struct bird_extent *e);
void bird_protocol_name(const struct neighbour *n, char *ret);

int bird_tree(struct bird_making *m);
void bird_tree_communities(struct json_tree *t, struct json_object *object,
			   const struct texts *from);
void bird_tree_families(struct json_tree *t, const struct bird_making *m, struct json_object *root);
