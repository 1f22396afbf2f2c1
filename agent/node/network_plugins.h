/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the plugins of an installed network configuration fit it.
 *
 *   10-roost.conflist, what each plugin answers to VERSION -> [network_plugins] -> network_config
 *
 * Pure. libcni 1.2 and later chooses the highest version that the list offers, and each plugin
 * that does not know it fails every verb, DEL too. So all versions must be known to all plugins,
 * delegates such as the IPAM plugin included.
 */
#pragma once

#include "lib/json/json.h"
#include "lib/json/values.h"

#define NETWORK_PLUGINS_MAX 16

struct network_plugin {
	const char *type; /* borrowed from the document */
	char *path;       /* where it was found; NULL: nowhere */
	char *answer;     /* to VERSION; NULL: none */
};

struct network_plugins {
	struct json_object *json;
	const char *version;   /* "cniVersion"; "": absent */
	struct texts versions; /* "cniVersions" */
	struct network_plugin v[NETWORK_PLUGINS_MAX];
	size_t n;
};

/* The plugins, each once, without path and answer. 0, or -EINVAL, -E2BIG, -ENOMEM with a sentence.
 */
int network_plugins_read(const char *text, size_t len, struct network_plugins *ret,
			 struct err *err);
void network_plugins_done(struct network_plugins *p);

/* 0, or -EINVAL with the first thing that is wrong, what follows from it, and what to do. */
int network_plugins_check(const struct network_plugins *p, const char *file, const char *folders,
			  struct err *err);
