/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mustache: a template and a tree of data become text.
 *
 *   data (json-c) + templates by name -> [mustache] -> text -> publish
 *
 * The whole language of the public specification but lambdas, which C has not: variables,
 * sections, inverted sections, comments, partials, set delimiters, dotted names, the implicit
 * iterator, dynamic names, parents and blocks, with the rules for lines and indentation.
 * docs/TEMPLATES.md describes it for those who write templates.
 *
 * Pure: where a template's text comes from is the caller's affair. A template is loaded and
 * parsed when it is first named and never again; a new set reads it anew. What templates and
 * data can demand is bounded in depth, output and work, so neither has to be trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/base/auto.h"
#include "lib/base/err.h"

#define MUSTACHE_MAX_OUTPUT (16U * 1024 * 1024)
#define MUSTACHE_MAX_DEPTH  64U

struct mustache_set; /* named templates, each loaded and parsed once, rendered many times */

/* Text of a template or partial; -ENOENT: there is none of that name. free() the text. */
typedef int mustache_load_fn(const char *name, char **ret_text, size_t *ret_len, void *arg,
			     struct err *err);

int mustache_set_new(mustache_load_fn *load, void *arg, struct mustache_set **ret);
void mustache_set_free(struct mustache_set *s);
AUTO_DEFINE(struct mustache_set *, mustache_set_free)

struct mustache_options {
	bool html;   /* {{x}} is HTML-escaped, as the specification says; else verbatim */
	bool strict; /* a name or partial that does not exist is an error, never an empty string;
			so is a variable that is null, a list or an object */
	size_t max_output;  /* 0: MUSTACHE_MAX_OUTPUT; bounds the work too */
	unsigned max_depth; /* 0: MUSTACHE_MAX_DEPTH; of sections, partials, parents together;
			       at most 1024 */
};

/*
 * 0, the text with a NUL behind it; free() it. -EINVAL with "template:line:column: sentence" in
 * err; -EFBIG for too much output or work, -ELOOP for depth, likewise; -ENOMEM; -ENOENT: no
 * template of that name. What load returns otherwise is returned too.
 */
int mustache_render(struct mustache_set *s, const char *name, struct json_object *data,
		    const struct mustache_options *o, char **ret_text, size_t *ret_len,
		    struct err *err);

/*
 * Parses without rendering, partials and parents that are named statically included: what can be
 * known to be wrong beforehand. Results as of mustache_render(); a partial that does not exist
 * is -EINVAL.
 */
int mustache_check(struct mustache_set *s, const char *name, struct err *err);
