/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watches show. It only ever starts a round, and is never written upon: the one thing
 * taken over from it is a raised MOD revision of our own, unchanged value.
 */
#include <string.h>

#include "agent/node/register_parts.h"

#define RESTORE_MS 5000 /* at most so often what somebody edits is written back */

/* --- the watch on our key ------------------------------------------------------------------- */

static void restore(struct registration *r)
{
	uint64_t now = timers_now(r->timers);
	bool again = r->restored && now - r->restored < RESTORE_MS;

	log_warning(REGISTER_PART, "somebody edited the node record: writing it back");
	r->restored = now;
	if (again)
		register_wait(r, RESTORE_MS);
	else
		register_round(r);
}

static void changed_by_others(struct registration *r, const struct record_event *e)
{
	const struct node *found = e->entry->wrong ? NULL : e->entry->value;

	if (found && register_by_other(&r->self, found)) {
		r->displaced = true;
		register_lost(r, "another agent has registered this node's name");
		register_round(r);
	} else if (register_is_ours(r, e->kv)) {
		register_round(r);
	} else {
		restore(r);
	}
}

static void on_node_put(struct registration *r, const struct record_event *e)
{
	const struct store_kv *kv = e->kv;

	if (kv->mod_revision > r->newest)
		r->newest = kv->mod_revision;
	if (r->phase != SETTLED || kv->mod_revision <= r->fence.mod_revision)
		return;
	if (kv->create_revision == r->fence.create_revision && register_is_ours(r, kv))
		r->fence.mod_revision = kv->mod_revision;
	else
		changed_by_others(r, e);
}

static void on_node_deleted(struct registration *r, int64_t revision)
{
	if (revision > r->newest)
		r->newest = revision;
	if (r->phase == WAITING || (r->phase == SETTLED && revision > r->fence.mod_revision)) {
		/* That a restore lacks it proves nothing. */
		if (r->held_before)
			register_void(r, "etcd has lost the node record; registering again");
		else
			register_lost(r, "the node record is gone from etcd; registering again");
		register_round(r);
	}
}

static void on_node(const struct record_event *e, void *arg)
{
	if (e->news == RECORD_PUT)
		on_node_put(arg, e);
	else if (e->news == RECORD_GONE)
		on_node_deleted(arg, e->revision);
}

/* --- removed/<node> ------------------------------------------------------------------------- */

static void on_removed_put(struct registration *r, const struct store_kv *kv)
{
	AUTO_DONE(node_removed_done) struct node_removed found = { 0 };
	struct err err = { "" };

	if (node_removed_decode(r->removed_name, kv->value, kv->value_len, &found, &err) < 0) {
		health_set(r->health, "removed", LOG_LEVEL_WARNING, "%s: ignored", err.text);
		return;
	}
	health_set(r->health, "removed", LOG_LEVEL_WARNING,
		   "this node was removed (by %s, %s): it gives no new addresses and gives back "
		   "what no pod uses; delete the key %s to have it back",
		   *found.by ? found.by : "an unknown hand",
		   *found.when ? found.when : "at an unknown time", r->removed_key);
	r->removed = true;
	r->handlers->removed(&found, r->arg);
}

static void on_removed_deleted(struct registration *r)
{
	health_clear(r->health, "removed");
	/* A name that was waited for may be free now. */
	if (r->phase == WAITING && r->waited)
		register_round(r);
	if (!r->removed)
		return;
	r->removed = false;
	r->handlers->removed(NULL, r->arg);
}

static void on_removed(const struct record_event *e, void *arg)
{
	if (e->news == RECORD_PUT)
		on_removed_put(arg, e->kv);
	else if (e->news == RECORD_GONE)
		on_removed_deleted(arg);
}

int register_watch(struct registration *r)
{
	int e = records_want(r->records, r->node_name, on_node, r, &r->wants[0]);

	return e ?: records_want(r->records, r->removed_name, on_removed, r, &r->wants[1]);
}
