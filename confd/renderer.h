/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: found by name in folders, parsed once, read again when a file of theirs changes.
 *
 *   data + "bird.conf" -> [renderer] -> mustache -> text
 *
 * The operator's folder goes before the shipped one. A name may have folders in it but never leaves
 * the folder: data can choose a template (Mustache's dynamic names), and data is written by many.
 * Which files were read, and which were looked for in vain, is remembered, so that an edit is seen
 * by looking again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "confd/mustache/mustache.h"
#include "lib/base/err.h"

/* --- one template --------------------------------------------------------------------------- */

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

/* --- the folders ---------------------------------------------------------------------------- */

#define TEMPLATE_SIZE_MAX (1024UL * 1024)
#define TEMPLATE_DIRS_MAX 3

struct template_dir;

/* Up to TEMPLATE_DIRS_MAX folders, the first goes first; one that is missing is skipped. Copied. */
int template_dir_new(const char *const *folders, size_t n, struct template_dir **ret);
void template_dir_free(struct template_dir *t);
AUTO_DEFINE(struct template_dir *, template_dir_free)

/* A mustache_load_fn; arg is the struct template_dir. -ENOENT: no folder has it. */
int template_dir_load(const char *name, char **ret_text, size_t *ret_len, void *arg,
		      struct err *err);

/* Whether anything that was loaded would be different now. Forgets all if so: load anew. */
bool template_dir_changed(struct template_dir *t);

/* 0, or -EINVAL with a sentence. */
int template_name_check(const char *name, struct err *err);
