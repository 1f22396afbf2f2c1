/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_node.h"

#include <errno.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/json/json.h"

void kube_node_done(struct kube_node *n)
{
	free(n->name);
	free(n->uid);
	free(n->labels.v);
	free(n->labels.store);
	free(n->pod_cidrs.v);
	*n = (struct kube_node){ 0 };
}

/* --- reading -------------------------------------------------------------------------------- */

static int read_name(struct json_at at, name_check_fn *check, char **ret)
{
	const char *text = "";
	int r = json_read_text(at, JSON_STRING_MAX, &text);
	struct err why;

	if (r < 0)
		return r;
	if (check(text, &why) < 0)
		return json_wrong(at, "%s", why.text);
	*ret = strdup(text);
	return *ret ? 0 : err_set(at.err, -ENOMEM, "out of memory");
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static bool label_fits(const char *key, struct json_object *value)
{
	return json_object_is_type(value, json_type_string) && label_key_valid(key) &&
	       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value) &&
	       label_value_valid(json_object_get_string(value));
}

static const char *store_text(char **store, const char *text)
{
	char *at = *store;

	*store = stpcpy(at, text) + 1;
	return at;
}

static int read_labels(struct json_at at, struct kube_node *n)
{
	size_t fit = 0, room = 0;
	char *store;
	int r = json_read_object(at);

	if (r <= 0)
		return r;
	json_object_object_foreach(at.value, key, value) {
		if (!label_fits(key, value)) {
			n->labels_left_out++;
			continue;
		}
		fit++;
		room += strlen(key) + strlen(json_object_get_string(value)) + 2;
	}
	n->labels.v = calloc(fit ?: 1, sizeof(*n->labels.v));
	n->labels.store = store = malloc(room ?: 1);
	if (!n->labels.v || !store)
		return err_set(at.err, -ENOMEM, "out of memory");
	json_object_object_foreach(at.value, name, text) {
		if (!label_fits(name, text))
			continue;
		n->labels.v[n->labels.n].key = store_text(&store, name);
		n->labels.v[n->labels.n++].value = store_text(&store, json_object_get_string(text));
	}
	qsort(n->labels.v, n->labels.n, sizeof(*n->labels.v), by_key);
	return 0;
}

static void add_cidr(struct json_at at, struct kube_node *n)
{
	struct prefix prefix;

	at.err = NULL;
	if (json_read_prefix(at, &prefix) > 0)
		n->pod_cidrs.v[n->pod_cidrs.n++] = prefix;
	else
		n->pod_cidrs_left_out++;
}

static int read_cidrs(const struct json_at *spec, struct kube_node *n)
{
	struct json_at list = json_member(spec, "podCIDRs"), single = json_member(spec, "podCIDR");
	size_t count = 0;
	int r = json_read_array(list, &count);

	if (r < 0)
		return r;
	n->pod_cidrs.v = calloc(count + 1, sizeof(*n->pod_cidrs.v));
	if (!n->pod_cidrs.v)
		return err_set(spec->err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		add_cidr(json_element(&list, i), n);
	/* The one of before there were two families; where both are given it is the first. */
	if (count == 0 && single.value)
		add_cidr(single, n);
	return 0;
}

/* Items of a list go without it; in events and as replies they have it. */
static int check_kind(struct json_at kind)
{
	const char *text = "Node";
	int r = json_read_text(kind, JSON_STRING_MAX, &text);

	if (r < 0)
		return r;
	return strcmp(text, "Node") == 0 ? 0 : json_refuse(kind, "is not \"Node\"");
}

int kube_node_read(struct json_object *object, struct kube_node *ret, struct err *err)
{
	struct json_at root = json_root(object, err);
	struct json_at meta = json_need(&root, "metadata"), spec = json_member(&root, "spec");
	struct kube_node n = { 0 };
	int r = check_kind(json_member(&root, "kind"));

	if (r == 0)
		r = json_read_object(meta);
	if (r > 0)
		r = json_read_object(spec);
	if (r >= 0)
		r = read_name(json_need(&meta, "name"), node_name_check, &n.name);
	r = r ?: read_name(json_need(&meta, "uid"), id_check, &n.uid);
	r = r ?: read_labels(json_member(&meta, "labels"), &n);
	r = r ?: (spec.value ? read_cidrs(&spec, &n) : 0);
	n.deleting = json_member(&meta, "deletionTimestamp").value;
	if (r < 0) {
		kube_node_done(&n);
		return r;
	}
	*ret = n;
	return 0;
}

/* --- comparing ------------------------------------------------------------------------------ */

int kube_node_digest(const struct kube_node *n, struct hash *ret)
{
	size_t rows = n->pod_cidrs.n, count = 0;
	AUTO(free) char(*cidrs)[PREFIX_TEXT] = calloc(rows ?: 1, sizeof(*cidrs));
	AUTO(free) const char **texts = calloc(4 + 2 * n->labels.n + rows, sizeof(*texts));

	if (!cidrs || !texts)
		return -ENOMEM;
	texts[count++] = n->name;
	texts[count++] = n->uid;
	texts[count++] = n->deleting ? "deleting" : "";
	for (size_t i = 0; i < rows; i++)
		texts[count++] = prefix_print(&n->pod_cidrs.v[i], cidrs[i]);
	/* No key is empty: this is where the labels begin. */
	texts[count++] = "";
	for (size_t i = 0; i < n->labels.n; i++) {
		texts[count++] = n->labels.v[i].key;
		texts[count++] = n->labels.v[i].value;
	}
	*ret = hash_texts(texts, count);
	return 0;
}
