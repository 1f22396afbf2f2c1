/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/etcd_roles.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* %s is the node; a pattern that ends with '/' is a prefix. In the order of the keys. */
static const char *const writes[ETCD_ROLES][ETCD_PERMISSIONS_MAX] = {
	[ETCD_ROLE_NODE] = { "block/", "extent/", "host/%s/", "node/%s", "recovery",
			     "status/node/%s", "status/static-route/" },
	[ETCD_ROLE_CONTROLLER] = { "block/", "extent/", "host/", "leader/", "node/", "recovery",
				   "removed/", "spec/", "static-route/", "status/node/",
				   "status/pool/", "status/static-route/" },
	/* Repairs reach everything. */
	[ETCD_ROLE_OPERATOR] = { "/" },
	[ETCD_ROLE_VIEWER] = { NULL },
};

static const char *const names[ETCD_ROLES] = {
	[ETCD_ROLE_NODE] = "roost-node-",
	[ETCD_ROLE_CONTROLLER] = "roost-controller",
	[ETCD_ROLE_OPERATOR] = "roost-operator",
	[ETCD_ROLE_VIEWER] = "roost-viewer",
};

int etcd_role_name(enum etcd_role role, const char *node, char text[ETCD_ROLE_TEXT])
{
	bool of_node = role == ETCD_ROLE_NODE;

	if (of_node && node_name_check(node, NULL) < 0)
		return -EINVAL;
	snprintf(text, ETCD_ROLE_TEXT, "%s%s", names[role], of_node ? node : "");
	return 0;
}

/* The part before %s, the node, and the part behind. */
static int fill(const char *pattern, const char *node, struct etcd_permission *p)
{
	const char *at = strstr(pattern, "%s");
	int n = at ? snprintf(p->key, sizeof(p->key), "%.*s%s%s", (int)(at - pattern), pattern,
			      node, at + 2)
		   : snprintf(p->key, sizeof(p->key), "%s", strcmp(pattern, "/") ? pattern : "");

	p->write = true;
	p->prefix = pattern[strlen(pattern) - 1] == '/';
	return n > 0 || p->prefix ? 0 : -EINVAL;
}

int etcd_role_permissions(enum etcd_role role, const char *node,
			  struct etcd_permission ret[ETCD_PERMISSIONS_MAX])
{
	const char *const *pattern = writes[role];
	int n = 0;

	if (role == ETCD_ROLE_NODE && node_name_check(node, NULL) < 0)
		return -EINVAL;
	/* Each role reads all keys; one that writes all keys needs no second permission. */
	if (!*pattern || strcmp(*pattern, "/") != 0)
		ret[n++] = (struct etcd_permission){ .prefix = true };
	for (; *pattern && n < ETCD_PERMISSIONS_MAX; pattern++)
		if (fill(*pattern, node, &ret[n++]) < 0)
			return -EINVAL;
	return n;
}
