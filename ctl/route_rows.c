/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/route_rows.h"

#include <errno.h>
#include <string.h>

#include "ctl/records/record_fields.h"
#include "lib/base/array.h"
#include "lib/json/tree.h"
#include "lib/model/record.h"

/* --- the nodes ------------------------------------------------------------------------------ */

void route_view_done(struct route_view *view)
{
	for (size_t i = 0; i < view->n; i++)
		node_spec_done(&view->v[i].spec);
	free(view->v);
	ctl_kvs_done(&view->routes);
	ctl_kvs_done(&view->status);
	ctl_kvs_done(&view->nodes);
	ctl_kvs_done(&view->specs);
	ctl_kvs_done(&view->removed);
	ctl_kvs_done(&view->alive);
	view->v = NULL;
	view->n = 0;
}

static const struct ctl_kv *find(const struct ctl_kvs *kvs, const char *beginning, const char *node)
{
	char key[KEY_TEXT];

	snprintf(key, sizeof(key), "%s%s", beginning, node);
	return ctl_find(kvs, key);
}

/* A holder of a lease has a node's record and no agent of ours. */
static bool has_agent(const struct ctl_kv *kv)
{
	AUTO_DONE(node_done) struct node node = { 0 };

	return node_decode(KV_ARGS(kv), &node, NULL) < 0 || strcmp(node.machine, "lease") != 0;
}

int route_view_nodes(struct route_view *view)
{
	view->v = calloc(view->nodes.n ?: 1, sizeof(*view->v));
	if (!view->v)
		return -ENOMEM;
	for (size_t i = 0; i < view->nodes.n; i++) {
		const char *name = view->nodes.v[i].key + strlen(KEYS_NODE);
		struct route_node *node = &view->v[view->n];
		const struct ctl_kv *spec = find(&view->specs, KEYS_SPEC, name);

		if (find(&view->removed, KEYS_REMOVED, name) || !has_agent(&view->nodes.v[i]))
			continue;
		*node = (struct route_node){ .name = name,
					     .alive = find(&view->alive, KEYS_STATUS_NODE, name) };
		/* One that is wrong counts as absent, and says so elsewhere. */
		if (spec && node_spec_decode(KV_ARGS(spec), &node->spec, NULL) == -ENOMEM)
			return -ENOMEM;
		view->n++;
	}
	return 0;
}

/* --- one route on one node ------------------------------------------------------------------ */

/* A record, or what is sound of it. */
struct seen {
	const struct ctl_kv *kv;
	struct static_route route;
	struct static_route_head head;
	const struct selector *selector; /* NULL: all, also where it cannot be read */
	bool valid, deleting;
	struct err problem;
};

static void seen_done(struct seen *s)
{
	static_route_done(&s->route);
	static_route_head_done(&s->head);
}

static int look(struct seen *s, const struct ctl_kv *kv)
{
	int r = static_route_decode(KV_ARGS(kv), &s->route, &s->problem);

	s->kv = kv;
	s->valid = r == 0;
	if (r == -ENOMEM)
		return r;
	r = static_route_head_decode(KV_ARGS(kv), &s->head, NULL);
	s->selector = s->head.node_selector.parsed;
	s->deleting = r == 0 && s->head.deleting[0];
	return r == -ENOMEM ? r : 0;
}

static bool is_selected(const struct seen *s, const struct route_node *node)
{
	return !s->deleting &&
	       selector_selects(s->selector,
				&(struct labels){ node->spec.labels.v, node->spec.labels.n },
				node->name);
}

struct tally {
	int64_t selected, applied, errors, pending, silent, withdrawing, tampered;
};

/* What a node has said; nothing, or what cannot be read, too. */
struct said {
	bool given, readable;
	struct static_route_status status;
	struct err problem;
};

static void said_done(struct said *s)
{
	static_route_status_done(&s->status);
}

static const char *judge(const struct seen *s, const struct route_node *node, bool selected,
			 const struct said *said, struct tally *t)
{
	if (!selected) {
		t->withdrawing++;
		return "withdrawing";
	}
	if (said->given && !said->readable) {
		t->errors++;
		return "error";
	}
	if (!said->given || said->status.revision < s->kv->mod_revision ||
	    (!said->status.subnet.address.family && !said->status.error[0])) {
		if (node->alive) {
			t->pending++;
			return "pending";
		}
		t->silent++;
		return "silent";
	}
	if (said->status.error[0]) {
		t->errors++;
		return "error";
	}
	t->applied++;
	return "applied";
}

static struct json_object *via(const struct addresses *gateways, const char *none)
{
	AUTO(free) char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (size_t i = 0; i < gateways->n; i++) {
		char address[ADDRESS_TEXT];

		fprintf(out, "%s%s", i ? "," : "", address_print(&gateways->v[i], address));
	}
	if (fclose(out) != 0)
		return NULL;
	return json_object_new_string(gateways->n ? text : none);
}

static int add_node(const struct said *said, const char *node, const char *state,
		    struct json_object *array)
{
	const struct static_route_status *status = &said->status;
	struct tree t = tree_new();

	tree_text(&t, "node", node);
	tree_text(&t, "state", state);
	if (said->readable) {
		tree_prefix(&t, "subnet", &status->subnet);
		if (status->subnet.address.family)
			tree_add(&t, "via", via(&status->gateways, "on-link"));
		if (status->table)
			tree_number(&t, "table", status->table);
		tree_some_text(&t, "since", status->since);
		tree_number(&t, "tampered", status->tampered.count);
		tree_some_text(&t, "tamperedLast", status->tampered.last);
	}
	tree_some_text(&t, "error", said->readable ? status->error : said->problem.text);
	return tree_end_in(&t, array);
}

/* --- on all nodes --------------------------------------------------------------------------- */

/* Both lists are sorted by node: the nodes, and what was reported of this route. */
struct merge {
	const struct route_view *view;
	const char *beginning; /* status/static-route/<name>/ */
	size_t i, j;
};

/* The name of the next node of either list, or NULL. */
static const char *next(struct merge *m, const struct route_node **ret_node,
			const struct ctl_kv **ret_status)
{
	const struct route_node *node = m->i < m->view->n ? &m->view->v[m->i] : NULL;
	const struct ctl_kv *kv = m->j < m->view->status.n ? &m->view->status.v[m->j] : NULL;
	const char *reporter;
	int order;

	if (kv && strncmp(kv->key, m->beginning, strlen(m->beginning)) != 0)
		kv = NULL;
	if (!node && !kv)
		return NULL;
	reporter = kv ? kv->key + strlen(m->beginning) : NULL;
	order = !node ? 1 : !kv ? -1 : strcmp(node->name, reporter);
	*ret_node = order <= 0 ? node : NULL;
	*ret_status = order >= 0 ? kv : NULL;
	m->i += order <= 0;
	m->j += order >= 0;
	return order <= 0 ? node->name : reporter;
}

static int on_node(const struct seen *s, const char *name, const struct route_node *node,
		   const struct ctl_kv *kv, struct tally *t, struct json_object *array)
{
	AUTO_DONE(said_done) struct said said = { .given = kv };
	bool selected = node && is_selected(s, node);
	const char *state;
	int r;

	if (!selected && !kv)
		return 0;
	if (kv) {
		r = static_route_status_decode(KV_ARGS(kv), &said.status, &said.problem);
		if (r == -ENOMEM)
			return r;
		said.readable = r == 0;
	}
	t->selected += selected;
	t->tampered += said.status.tampered.count;
	state = judge(s, node, selected, &said, t);
	return array ? add_node(&said, name, state, array) : 0;
}

static int on_all(const struct route_view *view, const struct seen *s, struct tally *t,
		  struct json_object *array)
{
	char beginning[KEY_TEXT];
	struct merge m = { .view = view, .beginning = beginning };
	const struct route_node *node = NULL;
	const struct ctl_kv *kv = NULL;
	const char *name;
	int r = keys_of_static_route_status(beginning, s->kv->key + strlen(KEYS_STATIC_ROUTE));

	/* No name of ours: nobody reports on it. */
	if (r < 0)
		return 0;
	m.j = array_place(view->status.v, view->status.n, x, strcmp(x->key, beginning));
	while (r == 0 && (name = next(&m, &node, &kv)))
		r = on_node(s, name, node, kv, t, array);
	return r;
}

/* --- the row -------------------------------------------------------------------------------- */

static void summary(const struct seen *s, const struct tally *t, struct tree *row)
{
	const struct {
		int64_t n;
		const char *one, *more;
	} parts[] = { { t->errors, "error", "errors" },
		      { t->pending, "pending", "pending" },
		      { t->silent, "silent", "silent" },
		      { t->withdrawing, "withdrawing", "withdrawing" } };
	char text[160];
	size_t n;

	if (s->deleting)
		n = (size_t)snprintf(text, sizeof(text), "deleting");
	else if (t->selected == 0)
		n = (size_t)snprintf(text, sizeof(text), "no node is selected");
	else
		n = (size_t)snprintf(text, sizeof(text), "applied %lld/%lld", (long long)t->applied,
				     (long long)t->selected);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].n)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ", %lld %s",
					      (long long)parts[i].n,
					      parts[i].n == 1 ? parts[i].one : parts[i].more);
	tree_text(row, "summary", text);
}

static const char *state_of(const struct seen *s, const struct tally *t)
{
	return s->deleting               ? "deleting"
	       : !s->valid               ? "invalid"
	       : t->errors               ? "error"
	       : t->pending || t->silent ? "pending"
					 : "ok";
}

static int add_record(const struct seen *s, struct tree *row)
{
	int r;

	if (row->failed)
		return -ENOMEM;
	if (!s->valid) {
		tree_text(row, "problem", s->problem.text);
		if (s->head.node_selector.text)
			tree_text(row, "nodeSelector", s->head.node_selector.text);
		tree_some_text(row, "deleting", s->head.deleting);
		return 0;
	}
	r = effective(&static_route_record, s->kv->key, s->kv->value, s->kv->value_len, row->object,
		      NULL);
	/* Which one that is, each node says. */
	if (!s->route.table)
		json_object_object_del(row->object, "table");
	tree_add(row, "via", via(&s->route.gateways, "detected"));
	return r;
}

int route_row(const struct route_view *view, const struct ctl_kv *kv, bool nodes,
	      struct json_object **ret)
{
	AUTO_DONE(seen_done) struct seen s = { .kv = kv };
	AUTO(json_put) struct json_object *array = nodes ? json_object_new_array() : NULL;
	struct tally t = { 0 };
	struct tree row;
	int r = nodes && !array ? -ENOMEM : look(&s, kv);

	r = r < 0 ? r : on_all(view, &s, &t, array);
	if (r < 0)
		return r;
	row = tree_new();
	tree_text(&row, "name", kv->key + strlen(KEYS_STATIC_ROUTE));
	tree_text(&row, "state", state_of(&s, &t));
	if (add_record(&s, &row) < 0)
		row.failed = true;
	summary(&s, &t, &row);
	tree_number(&row, "selected", t.selected);
	tree_number(&row, "applied", t.applied);
	tree_number(&row, "errors", t.errors);
	tree_number(&row, "pending", t.pending);
	tree_number(&row, "silent", t.silent);
	tree_number(&row, "withdrawing", t.withdrawing);
	tree_number(&row, "tampered", t.tampered);
	tree_share(&row, "nodes", array);
	return tree_end(&row, ret);
}
