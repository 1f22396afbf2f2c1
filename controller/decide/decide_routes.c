/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_routes.h"

#include <errno.h>
#include <string.h>

#include "lib/model/model.h"

/* --- by name -------------------------------------------------------------------------------- */

/* The statuses of one name lie together: the name at i, and where the next one begins. */
static size_t one_name(const struct mirror *m, size_t i, char *name)
{
	const char *at = m->v[i]->kv.key + strlen(KEYS_STATUS_ROUTE);
	char end[KEY_TEXT];

	snprintf(name, NAME_TEXT, "%.*s", (int)strcspn(at, "/"), at);
	/* '0' follows '/'. */
	snprintf(end, sizeof(end), KEYS_STATUS_ROUTE "%.*s0", (int)strcspn(at, "/"), at);
	return mirror_from(m, end);
}

bool routes_take_node(struct plans *p, struct plan *plan, const struct mirror *m, const char *node)
{
	char name[NAME_TEXT], key[KEY_TEXT];
	size_t next;

	for (size_t i = mirror_from(m, KEYS_STATUS_ROUTE); mirror_at(m, i, KEYS_STATUS_ROUTE);
	     i = next) {
		next = one_name(m, i, name);
		if (m->v[i]->kind != KEY_STATUS_STATIC_ROUTE ||
		    key_status_static_route(key, name, node) < 0 || !mirror_find(m, key))
			continue;
		if (!plan_has_room(plan, 4, 4))
			return false;
		txn_then(&plan->txn, op_delete(key));
	}
	return true;
}

/* --- records -------------------------------------------------------------------------------- */

static void finish(const struct mirrored *e, const char *statuses, struct plans *ret)
{
	struct plan *plan = plans_add(ret, e->kv.key);

	txn_if(&plan->txn, if_unchanged(e->kv.key, e->kv.mod_revision));
	/* Older than everything: none is there. */
	txn_if_prefix(&plan->txn, statuses, if_none_made_after(NULL, NULL, 0));
	txn_then(&plan->txn, op_delete(e->kv.key));
	plan_says(ret, plan, "static route %s: no node has it any more, deleted its record",
		  mirrored_name(e));
}

static bool is_marked(const struct mirrored *e, struct plans *ret)
{
	AUTO_DONE(static_route_head_done) struct static_route_head head = { 0 };
	int r = static_route_head_decode(KV_ARGS(&e->kv), &head, NULL);

	ret->failed = ret->failed || r == -ENOMEM;
	return r == 0 && head.deleting[0];
}

static bool is_valid(const struct mirrored *e, struct plans *ret)
{
	AUTO_DONE(static_route_done) struct static_route route = { 0 };
	int r = static_route_decode(KV_ARGS(&e->kv), &route, NULL);

	ret->failed = ret->failed || r == -ENOMEM;
	return r == 0;
}

static void look_at_record(struct routes *r, const struct mirror *m, const struct mirrored *e,
			   struct plans *ret)
{
	size_t errors = 0, n = 0;
	char statuses[KEY_TEXT];

	if (e->kind != KEY_STATIC_ROUTE ||
	    keys_of_static_route_status(statuses, mirrored_name(e)) < 0)
		return;
	MIRROR_EACH(m, x, statuses) {
		errors += x->note && strcmp(x->note, "error") == 0;
		n++;
	}
	r->records++;
	r->in_error += errors > 0;
	r->invalid += !is_valid(e, ret);
	if (!is_marked(e, ret))
		return;
	r->deleting++;
	if (n == 0)
		finish(e, statuses, ret);
}

/* --- reports -------------------------------------------------------------------------------- */

/* Whoever writes it: without its record it says nothing. */
static void sweep_name(const struct mirror *m, size_t first, size_t end, const char *record,
		       struct plans *ret)
{
	struct plan *plan = plans_add(ret, record);
	size_t n = 0;

	txn_if(&plan->txn, if_absent(record));
	for (size_t i = first; i < end && plan_has_room(plan, 4, 4); i++) {
		if (m->v[i]->kind != KEY_STATUS_STATIC_ROUTE)
			continue;
		txn_then(&plan->txn, op_delete(m->v[i]->kv.key));
		n++;
	}
	plan_says(ret, plan, "%s does not exist: deleted %zu %s of it", record, n,
		  n == 1 ? "report" : "reports");
}

static void sweep_node(const struct mirror *m, const struct mirrored *e, struct plans *ret)
{
	const char *name = mirrored_name(e);
	char node[KEY_TEXT], alive[KEY_TEXT], removed[KEY_TEXT];
	struct plan *plan;

	if (key_node(node, name) < 0 || key_status_node(alive, name) < 0 ||
	    key_removed(removed, name) < 0 || mirror_find(m, node) || mirror_find(m, alive) ||
	    mirror_find(m, removed))
		return;
	plan = plans_add(ret, e->kv.key);
	txn_if(&plan->txn, if_unchanged(e->kv.key, e->kv.mod_revision));
	txn_if(&plan->txn, if_absent(node));
	txn_if(&plan->txn, if_absent(alive));
	txn_if(&plan->txn, if_absent(removed));
	txn_then(&plan->txn, op_delete(e->kv.key));
	plan_says(ret, plan, "node %s does not exist: deleted its report on a static route", name);
}

static void look_at_reports(struct routes *r, const struct mirror *m, size_t first, size_t end,
			    struct plans *ret)
{
	for (size_t i = first; i < end; i++) {
		const struct mirrored *e = m->v[i];

		if (e->kind != KEY_STATUS_STATIC_ROUTE)
			continue;
		r->errors += e->note && strcmp(e->note, "error") == 0;
		r->applied += e->note && strcmp(e->note, "applied") == 0;
		sweep_node(m, e, ret);
	}
}

void routes_decide(struct routes *r, const struct mirror *m, struct plans *ret)
{
	char name[NAME_TEXT], record[KEY_TEXT];
	size_t next;

	*r = (struct routes){ 0 };
	MIRROR_EACH(m, e, KEYS_STATIC_ROUTE)
		look_at_record(r, m, e, ret);
	for (size_t i = mirror_from(m, KEYS_STATUS_ROUTE); mirror_at(m, i, KEYS_STATUS_ROUTE);
	     i = next) {
		next = one_name(m, i, name);
		if (key_static_route(record, name) < 0)
			continue; /* not ours */
		if (mirror_find(m, record))
			look_at_reports(r, m, i, next, ret);
		else if (m->v[i]->kind == KEY_STATUS_STATIC_ROUTE)
			sweep_name(m, i, next, record, ret);
	}
}
