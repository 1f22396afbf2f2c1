/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide/decide_kube.h"

#include <errno.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/json/selector.h"
#include "lib/model/lease_holder.h"

/* In a small cluster so many may go together, although they are more than a tenth. */
#define AT_ONCE 2

static void seen_done(struct kube_seen *s)
{
	free(s->name);
	free(s->uid);
	free(s->spec);
}

void kube_nodes_done(struct kube_nodes *k)
{
	for (size_t i = 0; i < k->n; i++)
		seen_done(&k->v[i]);
	array_done(k);
	k->in_sync = k->pod_cidrs = false;
}

/* --- what Kubernetes says ------------------------------------------------------------------- */

static struct kube_seen *find(const struct kube_nodes *k, const char *name)
{
	return array_find(k->v, k->n, x, strcmp(x->name, name));
}

/* Takes what fresh holds. */
static int replace(struct kube_nodes *k, struct kube_seen *fresh)
{
	struct kube_seen *at = find(k, fresh->name);

	if (at)
		seen_done(at);
	else
		at = array_insert(k, array_place(k->v, k->n, x, strcmp(x->name, fresh->name)));
	if (!at) {
		seen_done(fresh);
		return -ENOMEM;
	}
	*at = *fresh;
	return 0;
}

int kube_nodes_put(struct kube_nodes *k, const struct kube_node *node)
{
	AUTO(free) struct label *labels = calloc(node->labels.n + 1, sizeof(*labels));
	struct node_spec spec = { .kubernetes_uid = node->uid, .pod_cidrs = node->pod_cidrs };
	struct kube_seen fresh = { .name = strdup(node->name), .uid = strdup(node->uid) };

	spec.labels.v = labels;
	for (size_t i = 0; labels && i < node->labels.n; i++)
		/* Every selector has it implicitly, and no record may have it. */
		if (strcmp(node->labels.v[i].key, LABEL_HOSTNAME) != 0)
			labels[spec.labels.n++] = node->labels.v[i];
	if (!labels || !fresh.name || !fresh.uid || node_spec_encode(&spec, &fresh.spec) < 0) {
		seen_done(&fresh);
		return -ENOMEM;
	}
	return replace(k, &fresh);
}

int kube_nodes_gone(struct kube_nodes *k, const char *name, const char *uid, uint64_t now)
{
	const struct kube_seen *old = find(k, name);
	struct kube_seen fresh;

	/* Another of that name is there by now, or it was told before. */
	if (old && (old->spec ? strcmp(old->uid, uid) != 0 : strcmp(old->uid, uid) == 0))
		return 0;
	fresh = (struct kube_seen){ .name = strdup(name), .uid = strdup(uid), .since = now };
	if (!fresh.name || !fresh.uid) {
		seen_done(&fresh);
		return -ENOMEM;
	}
	return replace(k, &fresh);
}

/* --- records of ours ------------------------------------------------------------------------ */

/* 1: read, 0: absent, negative: cannot be read, so left alone. */
static int read_spec(const struct mirror *m, const char *node, struct node_spec *ret,
		     const struct mirrored **ret_entry, char *key)
{
	const struct mirrored *e;

	*ret_entry = NULL;
	if (key_spec(key, node) < 0)
		return -EINVAL;
	e = mirror_find(m, key);
	if (!e)
		return 0;
	*ret_entry = e;
	return node_spec_decode(key, e->kv.value, e->kv.value_len, ret, NULL) < 0 ? -EINVAL : 1;
}

static const struct mirrored *removed_entry(const struct mirror *m, const char *node)
{
	char key[KEY_TEXT];

	return key_removed(key, node) == 0 ? mirror_find(m, key) : NULL;
}

/* --- Nodes that are there ------------------------------------------------------------------- */

static void copy_node(const struct kube_seen *s, const struct mirror *m, bool pod_cidrs,
		      struct plans *ret)
{
	AUTO_DONE(node_spec_done) struct node_spec ours = { 0 }, theirs = { 0 };
	const struct mirrored *e, *removed = removed_entry(m, s->name);
	struct node_spec both;
	AUTO(free) char *value = NULL;
	char key[KEY_TEXT];
	struct plan *plan;
	bool back;
	int r = read_spec(m, s->name, &ours, &e, key);

	if (r < 0 || node_spec_decode(key, s->spec, strlen(s->spec), &theirs, NULL) < 0)
		return;
	both = ours;
	both.labels = theirs.labels;
	both.kubernetes_uid = theirs.kubernetes_uid;
	if (pod_cidrs)
		both.pod_cidrs = theirs.pod_cidrs;
	back = removed && r > 0 && ours.kubernetes_uid[0] &&
	       strcmp(ours.kubernetes_uid, s->uid) != 0;
	/* As it stands somebody else's words may be in another order: meant is what counts. */
	if (r > 0 && node_spec_equal(&ours, &both) && !back)
		return;
	if (node_spec_encode(&both, &value) < 0) {
		ret->failed = true;
		return;
	}
	plan = plans_add(ret, key);
	plan_if_seen(plan, m, key);
	txn_then(&plan->txn, op_put(key, value));
	plan_says(ret, plan, "node %s: labels and UID copied from Kubernetes", s->name);
	plan->quiet = true;
	if (!back)
		return;
	txn_if(&plan->txn, if_unchanged(removed->kv.key, removed->kv.mod_revision));
	txn_then(&plan->txn, op_delete(removed->kv.key));
	plan->quiet = false;
	plan_says(ret, plan, "node %s has a new Node in Kubernetes: cancelled its removal",
		  s->name);
}

/* --- Nodes that are gone -------------------------------------------------------------------- */

/* Just the Node that etcd remembers, and nobody has removed it yet. */
static bool is_to_go(const struct kube_seen *s, const struct mirror *m)
{
	AUTO_DONE(node_spec_done) struct node_spec spec = { 0 };
	const struct mirrored *e;
	char key[KEY_TEXT];

	return !s->spec && !removed_entry(m, s->name) &&
	       read_spec(m, s->name, &spec, &e, key) > 0 &&
	       strcmp(spec.kubernetes_uid, s->uid) == 0;
}

/* The Node that etcd remembers is there, and an agent of that name has registered. A Node of
 * another cluster is neither, also after its UID was recorded. */
static bool is_known(const struct kube_seen *s, const struct mirror *m)
{
	AUTO_DONE(node_spec_done) struct node_spec spec = { 0 };
	const struct mirrored *e;
	char key[KEY_TEXT];

	return s->spec && key_node(key, s->name) == 0 && mirror_find(m, key) &&
	       read_spec(m, s->name, &spec, &e, key) > 0 &&
	       strcmp(spec.kubernetes_uid, s->uid) == 0;
}

/* So many may go together, of those that are gone and those that are known to be there. */
static size_t may_go(size_t gone, size_t there)
{
	size_t tenth = (gone + there) / 10;

	/* With nobody left, nothing says that this is the right cluster. */
	if (!there)
		return 1;
	return tenth > AT_ONCE ? tenth : AT_ONCE;
}

static void remove_node(const struct kube_seen *s, const struct mirror *m, const char *utc,
			struct plans *ret)
{
	struct node_removed removed = { .by = KUBE_BY };
	AUTO(free) char *value = NULL;
	char key[KEY_TEXT], spec[KEY_TEXT];
	const struct mirrored *e;
	struct plan *plan;

	snprintf(removed.when, sizeof(removed.when), "%s", utc);
	if (key_removed(key, s->name) < 0 || key_spec(spec, s->name) < 0)
		return;
	e = mirror_find(m, spec);
	if (node_removed_encode(&removed, &value) < 0) {
		ret->failed = true;
		return;
	}
	plan = plans_add(ret, key);
	txn_if(&plan->txn, if_unchanged(spec, e->kv.mod_revision));
	txn_if(&plan->txn, if_absent(key));
	txn_then(&plan->txn, op_put(key, value));
	plan_says(ret, plan, "node %s was deleted in Kubernetes (UID %s): marked as removed",
		  s->name, s->uid);
}

static void remove_gone(const struct kube_nodes *k, const struct mirror *m, uint64_t now,
			uint64_t minute, const char *utc, struct plans *ret, struct err *alarm)
{
	size_t gone = 0, there = 0;
	const char *one = "";

	for (size_t i = 0; i < k->n; i++) {
		there += is_known(&k->v[i], m);
		if (!is_to_go(&k->v[i], m))
			continue;
		gone++;
		one = k->v[i].name;
	}
	if (gone > may_go(gone, there)) {
		err_set(alarm, 0,
			"%zu of %zu nodes, for example %s, are gone from Kubernetes at once: none "
			"of them is removed; check that --kubeconfig names the right cluster; if "
			"they are really gone, run roostctl node delete NAME for each",
			gone, gone + there, one);
		return;
	}
	for (size_t i = 0; gone && i < k->n; i++)
		if (is_to_go(&k->v[i], m) && now - k->v[i].since >= minute)
			remove_node(&k->v[i], m, utc, ret);
}

/* --- names ---------------------------------------------------------------------------------- */

/* Agents that are not called as their Nodes are would never be found removed. */
static void compare_names(const struct kube_nodes *k, const struct mirror *m, struct err *alarm)
{
	const char *agent = NULL;
	size_t nodes = 0;

	for (size_t i = 0; i < k->n; i++) {
		char key[KEY_TEXT];

		nodes += k->v[i].spec != NULL;
		if (k->v[i].spec && key_node(key, k->v[i].name) == 0 && mirror_find(m, key))
			return;
	}
	/* Those that hold leases have no agent, and may have any name. */
	MIRROR_EACH(m, e, KEYS_NODE)
		if (!agent && !lease_holder_is(mirrored_name(e)))
			agent = mirrored_name(e);
	if (!nodes || !agent)
		return;
	err_set(alarm, 0,
		"no agent has the name of a Kubernetes Node: an agent is called %s, a Node %s; "
		"start roostd with --node and the Node's name",
		agent, k->v[0].name);
}

void kube_decide(const struct kube_nodes *k, const struct mirror *m, uint64_t now, uint64_t minute,
		 const char *utc, struct plans *ret, struct err *alarm)
{
	*alarm = (struct err){ "" };
	if (!k->in_sync)
		return;
	compare_names(k, m, alarm);
	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].spec)
			copy_node(&k->v[i], m, k->pod_cidrs, ret);
	remove_gone(k, m, now, minute, utc, ret, alarm);
}

void kube_expected(const struct kube_nodes *k, const struct mirror *m,
		   void (*fn)(const char *name, const char *uid, void *arg), void *arg)
{
	MIRROR_EACH(m, e, KEYS_SPEC) {
		AUTO_DONE(node_spec_done) struct node_spec spec = { 0 };
		const struct kube_seen *s = find(k, mirrored_name(e));

		if (s || e->kind != KEY_SPEC ||
		    node_spec_decode(KV_ARGS(&e->kv), &spec, NULL) < 0 || !spec.kubernetes_uid[0])
			continue;
		fn(mirrored_name(e), spec.kubernetes_uid, arg);
	}
}
