/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One template, ready to be rendered: parsed once, read anew when a file of its changes.
 *
 *   data + template_dir -> [renderer] -> mustache -> text
 */
#pragma once

#include <stdbool.h>

#include "confd/mustache/mustache.h"

struct renderer;

/*
 * source: a name in folder, or the path of a template, which then finds its partials beside
 * itself first. 0 or -ENOMEM; nothing is read yet.
 */
int renderer_new(const char *source, const char *folder, struct renderer **ret);
void renderer_free(struct renderer *r);
AUTO_DEFINE(struct renderer *, renderer_free)

/* As mustache_render(), with edits of the templates taken up. */
int renderer_run(struct renderer *r, struct json_object *data, const struct mustache_options *o,
		 char **ret, size_t *ret_len, struct err *err);
