/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource of roost-confd: which keys of etcd, through which template, into which file.
 *
 *   /etc/roost/confd.d/web.json -> [resource] -> job
 *
 * Pure. JSON, with comments. Every field is checked, an unknown one is refused: a mistyped
 * "check" would be a check that never runs.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "lib/json/json.h"
#include "lib/json/values.h"

#define RESOURCE_TIMEOUT_S 30
enum resource_escape { ESCAPE_NONE, ESCAPE_HTML };

/* Words to execute, or a line for /bin/sh -c; neither: no command. {} in it is the file's path. */
struct command_text {
	struct texts words;
	const char *line;
};
/* text with every {} replaced; free() it. NULL: no memory. */
char *command_fill(const char *text, const char *path);

struct resource {
	char *name;         /* web */
	const char *source; /* a template's name, or the path of one */
	const char *dest;
	mode_t mode;
	const char *owner, *group; /* names or numbers; NULL: ours */
	const char *prefix;        /* NULL: as the program is told */
	struct texts keys, prefixes;
	struct command_text check, reload;
	const char *bird; /* reload by this control socket */
	uint32_t timeout_s;
	enum resource_escape escape;
	bool strict;
	char *text;              /* the file, to see whether it has changed */
	struct json_object *doc; /* what the texts lie in */
};

/* 0, -ENOMEM, or -EINVAL with a sentence without the file's name. */
int resource_read(const char *name, const char *text, size_t len, struct resource *ret,
		  struct err *err);
void resource_done(struct resource *r);

/* All resources of a folder: *.json, in the order of their names. */
struct resources {
	struct resource *v;
	size_t n;
};

/* A resource that is bad: reported and left out. */
typedef void resource_bad_fn(const char *name, const char *sentence, void *arg);

/* only: NULL, or the one to read. 0 or -errno with a sentence about the folder. */
int resources_load(const char *folder, const char *only, resource_bad_fn *bad, void *arg,
		   struct resources *ret, struct err *err);
void resources_done(struct resources *r);
