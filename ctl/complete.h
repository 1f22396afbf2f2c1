/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may stand last on a command line, from the table of commands.
 *
 *   words as typed -> [complete_find] -> what is wanted -> [complete_print], names from etcd
 *
 * Pure. A candidate is a line: the word, a tab, what it is.
 */
#pragma once

#include <stdio.h>

#include "ctl/frame/command.h"
#include "lib/daemon/options.h"

enum completing {
	COMPLETE_NOTHING, /* the shell's own: file names */
	COMPLETE_NOUN,
	COMPLETE_VERB,
	COMPLETE_FLAG,
	COMPLETE_VALUE,   /* of flag */
	COMPLETE_ARGUMENT /* of command */
};

struct completion {
	enum completing what;
	const char *current; /* what is there of the last word */
	const char *noun;
	const struct command *command; /* NULL: not known yet */
	const struct option_def *flag;
	enum argument argument;
	const char *kind; /* of ARG_NAME_OF_KIND */
};

/* words are without the program; the last is the one to complete, perhaps "". */
struct completion complete_find(const struct command *table, const char *const *words, size_t n);

/* Everything that is known without etcd. */
void complete_print(FILE *out, const struct command *table, const struct completion *c);
/* One candidate, if it begins as the current word does; about may be NULL. */
void complete_offer(FILE *out, const struct completion *c, const char *word, const char *about);
/* The beginning of the keys whose names are wanted, or NULL. */
const char *complete_keys(const struct completion *c);
