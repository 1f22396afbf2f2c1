/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read and write which keys, as roles of etcd: least right for each program.
 *
 *   role, node -> [etcd_roles] -> permissions, as `roostctl etcd roles` prints or sets them
 *
 * Pure. etcd grants keys and prefixes, not single fields and no suffixes: so every node may write
 * block/, extent/ and status/static-route/, where nodes meet. docs/SECURITY.md says what follows.
 */
#pragma once

#include "lib/model/keys.h"

enum etcd_role {
	ETCD_ROLE_NODE,       /* the agent of one node */
	ETCD_ROLE_CONTROLLER, /* roost-controller, also as a lease server */
	ETCD_ROLE_OPERATOR,   /* roostctl */
	ETCD_ROLE_VIEWER,     /* roostctl that only shows */
	ETCD_ROLES
};

struct etcd_permission {
	bool write;         /* beside reading */
	bool prefix;        /* all keys that begin so */
	char key[KEY_TEXT]; /* relative; "" with prefix: all of ours */
};
#define ETCD_PERMISSIONS_MAX 16

/* "roost-node-n1", "roost-controller": the name of the role and of its user. */
#define ETCD_ROLE_TEXT (NODE_NAME_TEXT + 16)
int etcd_role_name(enum etcd_role role, const char *node, char text[ETCD_ROLE_TEXT]);
/* Sorted by key. node counts for ETCD_ROLE_NODE alone. The number of permissions, or -EINVAL. */
int etcd_role_permissions(enum etcd_role role, const char *node,
			  struct etcd_permission ret[ETCD_PERMISSIONS_MAX]);
