/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a plugin: environment and stdin in, one JSON value or nothing out.
 *
 *   main -> [cni_main] -> verb -> [cni_main] -> stdout, exit code
 *
 * Does what is the same for every plugin and verb: the order of checks, VERSION, the
 * text for somebody who just typed the plugin's name, errors as JSON on stdout. Nothing
 * else ever writes to stdout; stderr stays silent, since runtimes copy it to their own.
 */
#pragma once

#include "lib/cni/cni_conf.h"
#include "lib/cni/cni_env.h"
#include "lib/cni/cni_io.h"

/* After an ADD that failed, its deadline passed or not: 10 s are promised for both together. */
#define CNI_UNDO_MS 1000U

struct cni_call {
	const char *program;
	struct cni_env env;
	struct cni_conf conf;
	char *input; /* stdin as it came, for a delegate */
	size_t input_len;
	struct deadline deadline; /* for all that the verb does */
};

/* 0, with *ret_output to print or NULL for nothing; or negative with e filled. */
typedef int cni_verb_fn(const struct cni_call *call, char **ret_output, struct cni_error *e);

/* What a verb has for all that it does, in ms. */
unsigned cni_time_ms(enum cni_verb verb);

/* verbs: by enum cni_verb, without VERSION. Returns the exit code. */
int cni_main(const char *program, cni_verb_fn *const verbs[CNI_VERBS]);

/* Only with ROOST_DEBUG=1, or where more is true: a line on stderr. */
void cni_debug(const struct cni_call *call, bool more, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A line on stderr in any case. */
void cni_complain(const struct cni_call *call, const char *fmt, ...) PRINTF_LIKE(2, 3);
