/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands: one table, from which follow dispatch, help, completion, the man page's check and
 * the test that runs every example.
 *
 *   words -> [command_find] -> command -> run, or list -> out
 *
 * To add a verb: one file with its function, its prototype in verbs.h, one entry in commands.c.
 * Everything here but the functions that entries name is pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/frame/out.h"
#include "lib/base/err.h"

struct ctl;
struct json_object;

/* What one argument is, for completion. */
enum argument {
	ARG_NONE, /* nothing is known of it */
	ARG_POOL,
	ARG_PEER,
	ARG_FILTER,
	ARG_ROUTE,
	ARG_NODE,
	ARG_BLOCK,
	ARG_ADDRESS,
	ARG_KIND,         /* the kinds of get */
	ARG_NAME_OF_KIND, /* a name of the kind that stands before it */
	ARG_FIELD,        /* FIELD=VALUE of the noun's record */
	ARG_LABEL,
	ARG_SHELL
};

/* 0 or a negative errno; arg is the struct ctl, or what was given to ctl_rows(). */
struct ctl_kv;
typedef int command_row_fn(const struct ctl_kv *kv, void *arg, struct json_object *array);

/* A list: read again for each printing, so that --watch comes for free. */
struct command_list {
	/* 0 and an array of objects, or a negative errno with the sentence. */
	int (*read)(struct ctl *ctl, struct json_object **ret, struct err *err);
	/* Or, for a list of what lies below one beginning of keys: adds the row of one, or none. */
	const char *beginning;
	command_row_fn *row;
	const struct out_column *columns;
	/* beginnings of keys, NULL-ended; NULL: beginning, or without one no --watch */
	const char *const *watches;
	const char *none; /* said (in a table) when it is empty: "There are no pools: ..." */
};

struct command {
	const char *noun, *verb;     /* verb NULL: the noun is the whole command */
	const char *usage;           /* of the arguments: "NAME [FIELD=VALUE]..." */
	unsigned min, max;           /* arguments */
	enum argument arguments[2];  /* the last one is that of all that follow */
	const char *help;            /* one line, no full stop */
	const char *more;            /* paragraphs for its --help, or NULL */
	const char *const *examples; /* whole lines; each is run by a test; NULL-ended */
	const char *const *flags;    /* of its own, as in settings.c; NULL-ended, or NULL */
	bool hidden;                 /* neither in help nor completed */
	bool destroys;               /* never offered for a typo */
	/*
	 * One of the two. run: 0; a negative errno with the sentence in err; or a positive exit
	 * code when all has been said.
	 */
	int (*run)(struct ctl *ctl, struct err *err);
	const struct command_list *list;
};

#define ARGUMENTS_ANY ~0U
#define EXAMPLES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define FLAGS(...)    ((const char *const[]){ __VA_ARGS__, NULL })

/* NULL-ended by a command without noun. */
extern const struct command commands[];

/* What a run function returns for wrong usage: exit code 2. */
#define CTL_USAGE (-EBADR)

/*
 * The command of these words; *ret_used are the words of its name. 0, or CTL_USAGE with a sentence
 * that names the nearest one.
 */
int command_find(const struct command *table, const char *const *words, size_t n,
		 const struct command **ret, size_t *ret_used, struct err *err);
/* The number of arguments, and flags that this command does not take. */
struct ctl_settings;
int command_check(const struct command *c, size_t n_arguments, const struct ctl_settings *s,
		  struct err *err);
/* "pool list"; text holds COMMAND_TEXT bytes. */
#define COMMAND_TEXT 48
const char *command_name(const struct command *c, char *text);
bool command_takes(const struct command *c, const char *flag);
struct option_def;
bool command_flag_given(const struct option_def *def, const struct ctl_settings *s);

/* Help for all (no words), for a noun, for a command; free() it. NULL: out of memory. */
char *command_help(const struct command *table, const char *const *words, size_t n);
