/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/records/kind.h"

#include <errno.h>
#include <string.h>

#include "ctl/frame/command.h"
#include "lib/base/nearest.h"
#include "lib/json/tree.h"

const struct kind kinds[] = {
	{ "config", KEY_CONFIG, "config", true, NULL },
	{ "pool", KEY_POOL, KEYS_POOL, true, name_check },
	{ "peer", KEY_PEER, KEYS_PEER, true, name_check },
	{ "filter", KEY_FILTER, KEYS_FILTER, true, name_check },
	{ "route", KEY_STATIC_ROUTE, KEYS_STATIC_ROUTE, true, name_check },
	{ "spec", KEY_SPEC, KEYS_SPEC, true, node_name_check },
	{ "node", KEY_NODE, KEYS_NODE, false, node_name_check },
	{ "removed", KEY_REMOVED, KEYS_REMOVED, false, node_name_check },
	{ "extent", KEY_EXTENT, KEYS_EXTENT, false, NULL },
	{ "block", KEY_BLOCK, KEYS_BLOCK, false, NULL },
	{ "address", KEY_ADDRESS, KEYS_HOST, false, NULL },
	{ NULL, KEY_KINDS, NULL, false, NULL },
};

const struct kind *kind_find(const char *name)
{
	for (const struct kind *k = kinds; k->name; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

int kind_need(const char *name, const struct kind **ret, struct err *err)
{
	struct nearest near = nearest_to(name, strlen(name));
	char shown[SHOW_TEXT], all[160] = "";
	size_t n = 0;

	*ret = kind_find(name);
	if (*ret)
		return 0;
	for (const struct kind *k = kinds; k->name; k++) {
		nearest_try(&near, k->name);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", k->name);
	}
	text_show(name, shown);
	if (near.name[0])
		return err_set(err, CTL_USAGE, "unknown kind \"%s\": perhaps \"%s\"?", shown,
			       near.name);
	return err_set(err, CTL_USAGE, "unknown kind \"%s\", known are: %s", shown, all);
}

bool kind_is_single(const struct kind *kind)
{
	return kind->key == KEY_CONFIG;
}

int kind_key(const struct kind *kind, const char *name, char *text, struct err *err)
{
	char shown[SHOW_TEXT];
	struct key key;
	int n;

	if (kind->check && kind->check(name, err) < 0)
		return err_wrap(err, -EINVAL, "%s", kind->name);
	n = snprintf(text, KEY_TEXT, "%s%s", kind->beginning, name);
	if (n < KEY_TEXT && key_parse(text, &key) == 0 && key.kind == kind->key)
		return 0;
	return err_set(err, -EINVAL, "%s: \"%s\" is not a name: its keys have the form %s",
		       kind->name, text_show(name, shown), key_pattern(kind->key));
}

const char *kind_name(const struct kind *kind, const char *key)
{
	struct key parsed;

	if (key_parse(key, &parsed) < 0 || parsed.kind != kind->key)
		return NULL;
	return key + strlen(kind->beginning);
}

int kind_object(const struct kind *kind, const char *key, const char *json, size_t len,
		struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *stored = NULL, *object = json_object_new_object();
	int r = json_parse(json, len, &stored, err);

	if (r < 0)
		return err_wrap(err, r, "%s", key);
	if (!object)
		return -ENOMEM;
	json_object_object_add(object, "kind", json_object_new_string(kind->name));
	if (!kind_is_single(kind))
		json_object_object_add(object, "name",
				       json_object_new_string(key + strlen(kind->beginning)));
	tree_merge(object, stored);
	*ret = TAKE(object);
	return 0;
}
