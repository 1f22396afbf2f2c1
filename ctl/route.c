/* SPDX-License-Identifier: Apache-2.0 */
/* route list, route show; what is worth a note when a route is written. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/verbs.h"
#include "ctl/records/record_verbs.h"
#include "ctl/route_rows.h"

/* status: where the statuses are that are wanted. */
static int read_all(struct ctl *ctl, const char *status, struct route_view *ret, struct err *err)
{
	int r = ctl_read(ctl, KEYS_STATIC_ROUTE, &ret->routes, err);

	r = r < 0 ? r : ctl_read(ctl, status, &ret->status, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_NODE, &ret->nodes, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_SPEC, &ret->specs, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_REMOVED, &ret->removed, err);
	r = r < 0 ? r : ctl_read(ctl, KEYS_STATUS_NODE, &ret->alive, err);
	if (r == 0 && route_view_nodes(ret) < 0)
		return -ENOMEM;
	return r;
}

static int route_list_read(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO_DONE(route_view_done) struct route_view view = { 0 };
	int r = read_all(ctl, KEYS_STATUS_ROUTE, &view, err);

	if (r < 0)
		return r;
	for (size_t i = 0; array && r == 0 && i < view.routes.n; i++) {
		struct json_object *row = NULL;

		r = route_row(&view, &view.routes.v[i], false, &row);
		if (r == 0 && json_object_array_add(array, row) < 0) {
			json_object_put(row);
			r = -ENOMEM;
		}
	}
	if (r < 0 || !array)
		return -ENOMEM;
	*ret = TAKE(array);
	return 0;
}

static const struct out_column columns[] = {
	COLUMN("NAME", "name"),
	COLUMN("SUBNET", "subnet"),
	COLUMN("VIA", "via"),
	COLUMN("TABLE", "table"),
	COLUMN("STATE", "state"),
	COLUMN("NODES", "summary"),
	WIDE("METRIC", "metric"),
	WIDE("NODESELECTOR", "nodeSelector"),
	WIDE("ONTAMPER", "onTamper"),
	WIDE("TAMPERED", "tampered"),
	WIDE("DELETING", "deleting"),
	WIDE("PROBLEM", "problem"),
	COLUMNS_END,
};

const struct command_list route_list = {
	.read = route_list_read,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_STATIC_ROUTE, KEYS_STATUS, KEYS_NODE, KEYS_SPEC,
					  KEYS_REMOVED, NULL },
	.none = "There are no static routes: roostctl route create NAME subnet=PREFIX",
};

int route_show(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO_DONE(route_view_done) struct route_view view = { 0 };
	const struct kind *kind = kind_find("route");
	char key[KEY_TEXT], status[KEY_TEXT];
	const struct ctl_kv *kv = NULL;
	int r = kind_key(kind, ctl->args[0], key, err);

	r = r < 0 ? r : keys_of_static_route_status(status, ctl->args[0]);
	r = r < 0 ? r : read_all(ctl, status, &view, err);
	r = r < 0 ? r : record_need(&view.routes, kind, key, &kv, err);
	if (r < 0)
		return r;
	if (route_row(&view, kv, true, &object) < 0)
		return -ENOMEM;
	return out_show(&ctl->out, object);
}

/* --- notes ---------------------------------------------------------------------------------- */

#define NOTES_MAX 3

struct notes {
	size_t n;
};

static void note(struct notes *notes, const struct static_route *route, const char *kind,
		 const char *name, const struct prefix *other, const char *what)
{
	char subnet[PREFIX_TEXT], text[PREFIX_TEXT];

	if (notes->n++ < NOTES_MAX)
		fprintf(stderr, "roostctl: note: route %s (%s) overlaps %s %s (%s): %s\n",
			route->name, prefix_print(&route->subnet, subnet), kind, name,
			prefix_print(other, text), what);
}

static void note_pools(struct notes *notes, const struct static_route *route,
		       const struct ctl_kvs *pools)
{
	for (size_t i = 0; i < pools->n; i++) {
		AUTO_DONE(pool_done) struct pool pool = { 0 };
		const struct ctl_kv *kv = &pools->v[i];

		if (pool_decode(KV_ARGS(kv), &pool, NULL) == 0 &&
		    prefix_overlaps(&route->subnet, &pool.cidr))
			note(notes, route, "pool", pool.name, &pool.cidr,
			     "nodes refuse a static route that overlaps a pool");
	}
}

static const char *between(const struct static_route *a, const struct static_route *b)
{
	if (prefix_compare(&a->subnet, &b->subnet) != 0)
		return "on a node that has both, the longer prefix takes precedence";
	return a->metric == b->metric
		       ? "a node that both select can have only one of them"
		       : "on a node that has both, the lower metric takes precedence";
}

static void note_routes(struct notes *notes, const struct static_route *route,
			const struct ctl_kvs *routes)
{
	for (size_t i = 0; i < routes->n; i++) {
		AUTO_DONE(static_route_done) struct static_route other = { 0 };
		const struct ctl_kv *kv = &routes->v[i];

		if (static_route_decode(KV_ARGS(kv), &other, NULL) == 0 &&
		    strcmp(other.name, route->name) != 0 && other.table == route->table &&
		    prefix_overlaps(&route->subnet, &other.subnet))
			note(notes, route, "route", other.name, &other.subnet,
			     between(route, &other));
	}
}

void route_notes(struct ctl *ctl, const struct world *world, const char *key, const char *value)
{
	AUTO_DONE(static_route_done) struct static_route route = { 0 };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs routes = { 0 };
	struct notes notes = { 0 };

	if (static_route_decode(key, value, strlen(value), &route, NULL) < 0)
		return;
	note_pools(&notes, &route, &world->pools);
	if (ctl_read(ctl, KEYS_STATIC_ROUTE, &routes, NULL) == 0)
		note_routes(&notes, &route, &routes);
	if (notes.n > NOTES_MAX)
		fprintf(stderr, "roostctl: note: it overlaps %zu more\n", notes.n - NOTES_MAX);
}
