/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/network_plugins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"

static int add(struct network_plugins *p, struct json_at at)
{
	const char *type = "";
	int r = json_read_text(at, JSON_STRING_MAX, &type);

	if (r < 0 || !type[0])
		return r < 0 ? r : 0;
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->v[i].type, type) == 0)
			return 0;
	if (p->n == NETWORK_PLUGINS_MAX)
		return json_wrong(at, "more than %d plugins", NETWORK_PLUGINS_MAX);
	/* It becomes the last part of a path. */
	if (strchr(type, '/'))
		return json_refuse(at, "is not the name of a plugin");
	p->v[p->n++].type = type;
	return 0;
}

static int read_list(struct network_plugins *p, struct err *err)
{
	struct json_at root = json_root(p->json, err), plugins;
	size_t n = 0;
	int r;

	root.as_go = true;
	plugins = json_member(&root, "plugins");
	r = json_read_text(json_member(&root, "cniVersion"), JSON_STRING_MAX, &p->version);

	if (r >= 0)
		r = json_read_texts(json_member(&root, "cniVersions"), JSON_STRING_MAX,
				    &p->versions.v, &p->versions.n);
	if (r >= 0)
		r = json_read_array(plugins, &n);
	if (r >= 0 && n == 0)
		return err_set(err, -EINVAL, "it names no plugins");
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct json_at plugin = json_element(&plugins, i), ipam;

		r = json_read_object(plugin);
		if (r < 0)
			break;
		ipam = json_member(&plugin, "ipam");
		r = add(p, json_member(&plugin, "type"));
		r = r < 0 ? r : json_read_object(ipam);
		r = r <= 0 ? r : add(p, json_member(&ipam, "type"));
	}
	return r < 0 ? r : 0;
}

int network_plugins_read(const char *text, size_t len, struct network_plugins *ret, struct err *err)
{
	int r;

	*ret = (struct network_plugins){ .version = "" };
	r = json_parse(text, len, &ret->json, err);
	r = r ?: read_list(ret, err);
	if (r < 0)
		network_plugins_done(ret);
	return r;
}

void network_plugins_done(struct network_plugins *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].answer);
	}
	free(p->versions.v);
	json_object_put(p->json);
	*p = (struct network_plugins){ .version = "" };
}

/* --- the decision --------------------------------------------------------------------------- */

static bool known(const char *version, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i], version) == 0)
			return true;
	return false;
}

static int check_versions(const struct network_plugins *p, const struct network_plugin *plugin,
			  const char *file, struct err *err)
{
	AUTO(json_put) struct json_object *json = NULL;
	AUTO(free) const char **v = NULL;
	const char *lacks = NULL;
	struct err why = { "" };
	struct json_at root;
	size_t n = 0;

	if (plugin->answer &&
	    json_parse(plugin->answer, strlen(plugin->answer), &json, &why) == 0) {
		root = json_root(json, &why);
		root.as_go = true;
		json_read_texts(json_member(&root, "supportedVersions"), JSON_STRING_MAX, &v, &n);
	}
	if (n == 0)
		return err_set(err, -EINVAL,
			       "the plugin %s, which %s names, does not say which versions it "
			       "knows (CNI_COMMAND=VERSION): it is broken or not a plugin; install "
			       "another, then run roost-install",
			       plugin->path, file);
	if (p->version[0] && !known(p->version, v, n))
		lacks = p->version;
	for (size_t i = 0; i < p->versions.n; i++)
		if (!known(p->versions.v[i], v, n))
			lacks = p->versions.v[i];
	if (!lacks)
		return 0;
	return err_set(err, -EINVAL,
		       "%s offers version %s, which the plugin %s does not know: a runtime with "
		       "libcni 1.2 or later (containerd 2) reports this node as not ready, and its "
		       "pods neither start nor end; run roost-install, which writes only versions "
		       "that all plugins know",
		       file, lacks, plugin->path);
}

int network_plugins_check(const struct network_plugins *p, const char *file, const char *folders,
			  struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n; i++)
		if (!p->v[i].path)
			r = err_set(err, -EINVAL,
				    "%s names the plugin %s, which is not in %s: pods neither "
				    "start nor end; run roost-install, or set --cni-bin-dir to the "
				    "folders in which the container runtime looks",
				    file, p->v[i].type, folders);
	for (size_t i = 0; r == 0 && i < p->n; i++)
		r = check_versions(p, &p->v[i], file, err);
	return r;
}
