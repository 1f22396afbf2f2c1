/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that etcd has of the nodes, read together; and changes of spec/<node>. */
#pragma once

#include "ctl/frame/ctl.h"
#include "lib/model/keys.h"

struct nodes {
	struct ctl_kvs nodes, specs, removed, status, blocks;
	struct json_object *held; /* node -> number of its blocks: there are many of both */
};
void nodes_done(struct nodes *n);
/* node NULL: of all; else the keys of one, and all blocks. */
int nodes_read(struct ctl *ctl, const char *node, struct nodes *ret, struct err *err);

/* Whether anything at all is known of it; if not, -ENOENT with the sentence. */
int nodes_need(const struct nodes *n, const char *node, struct err *err);

/* name, state, alive, addresses, version, blocks, used, problems: what list shows. */
int nodes_row(struct ctl *ctl, const struct nodes *n, const char *node, struct json_object **ret,
	      struct err *err);

/* The object of a key, or NULL: absent or no JSON. json_object_put() it. */
struct json_object *nodes_object(const struct ctl_kvs *kvs, const char *beginning,
				 const char *node);
size_t nodes_count_blocks(const struct nodes *n, const char *node);
/* Address keys below host/<node>/. */
int nodes_count_addresses(struct ctl *ctl, const char *node, size_t *ret, struct err *err);

/*
 * Reads spec/<node>, lets fn change its object, checks it and writes it back if it differs; again
 * when somebody else has written it meanwhile, whose changes stay. 0: written, 1: it was so before.
 */
typedef int spec_fn(struct json_object *spec, void *arg, struct err *err);
int spec_update(struct ctl *ctl, const char *node, spec_fn *fn, void *arg, struct err *err);
