/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of records: checked as the agents check them, against all other records, then written
 * in one transaction that compares what was read.
 *
 *   changes + world (pools, extents, peers, filters as read) -> [change_check] -> change_write
 *
 * change_check() is pure. It looks only at what changes: a conflict that is there already is no
 * reason to refuse something else.
 */
#pragma once

#include "ctl/frame/ctl.h"
#include "ctl/records/kind.h"

struct change {
	const struct kind *kind;
	char key[KEY_TEXT];
	char *value;          /* NULL: deleted */
	int64_t mod_revision; /* as read; 0: was absent */
	const char *unless;   /* beginning of keys of which none may be there; NULL: no matter */
};
struct change_list {
	struct change *v;
	size_t n, room;
};
void change_list_done(struct change_list *changes);
/* Takes value, also on failure. 0 or -ENOMEM. */
int change_list_add(struct change_list *changes, const struct kind *kind, const char *key,
		    char *value, int64_t mod_revision);

/* What pools, peers and filters must agree with. */
struct world {
	struct ctl_kvs pools, extents, peers, filters;
	int64_t revision;
};
void world_done(struct world *world);
int world_read(struct ctl *ctl, struct world *ret, struct err *err);

/* 0, or a negative errno with the sentence that an agent would report. */
int change_check(const struct change *changes, size_t n, const struct world *world,
		 struct err *err);

/* Every record of one kind as it will be: what was read and does not change, and what changes. */
struct change_walk {
	const struct ctl_kvs *old;
	const struct change *changes;
	size_t n, i, j;
	enum key_kind kind;
};
/* The next key with its text, or NULL. */
const char *change_next(struct change_walk *walk, const char **ret_value);

/*
 * All of them or none. -EBUSY when something was changed by others meanwhile;
 * then nothing was written. world NULL: only the changed keys themselves are compared. With --dry-run
 * they are printed instead.
 */
int change_write(struct ctl *ctl, const struct change *changes, size_t n, const struct world *world,
		 struct err *err);

/* How often what somebody else interfered with is tried. */
#define CHANGE_TRIES 5
