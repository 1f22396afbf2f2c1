/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program is told at its start, from one table: flags, environment,
 * configuration file, defaults.
 *
 *   argv, environ, file text, defaults -> [options] -> the program's own struct
 *
 * A line of the table names the flag; the rest follows from the name:
 * --etcd-cacert, ROOST_ETCD_CACERT, "etcdCacert" in the file. A flag goes
 * before the environment, that before the file, that before the default. Every
 * value that is given is checked, also one that another overrules: a mistake
 * should not wait for the day when the other is taken away. An unknown flag or
 * field is refused with the nearest known one. An unknown variable is ignored:
 * Kubernetes sets ROOST_PORT for a service called roost. An empty variable
 * counts as unset.
 *
 * A tool that has verbs takes words too, before, between and behind its flags; "--"
 * ends the flags. A single letter may stand for a flag: -o json, -ojson.
 *
 * options_parse() and what it needs are pure; options_load() is the thin part
 * that reads the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/names.h"

enum option_kind {
	OPTION_TEXT,   /* const char *, never NULL; .check */
	OPTION_PATH,   /* the same, an absolute path */
	OPTION_NUMBER, /* uint32_t, .min to .max */
	OPTION_CHOICE, /* unsigned, any enum: the words of .choices in its order */
	OPTION_LEVEL,  /* enum log_level */
	OPTION_FLAG    /* uint32_t, 0 or 1: the flag alone says yes; .argument is not used */
};

struct option_def {
	const char *name; /* without the dashes: "etcd-cacert" */
	enum option_kind kind;
	size_t at;                   /* in the program's struct */
	const char *initial;         /* the default as it would be typed; NULL: "" for texts */
	const char *argument, *help; /* "URL[,URL]", one sentence */
	name_check_fn *check;        /* text: never called for "", which is "not given" */
	const char *const *choices;  /* NULL-ended */
	uint32_t min, max;
	char letter;      /* -o for --output; 0: none */
	bool not_in_file; /* flag and environment only: --config itself */
	bool only_flag;   /* neither in the file nor in the environment: --yes */
	bool live;        /* SIGHUP takes a new value; the others need a restart */
	bool for_tests;   /* listed apart in --help */
};

/* { OPTION(settings, run_dir, "run-dir", PATH), .initial = ... }; a member of another size stops.
 */
#define OPTION(record, member, flag, KIND)                                                         \
	.name = (flag), .kind = OPTION_##KIND,                                                     \
	.at = offsetof(struct record, member) +                                                    \
	      0 * sizeof(char[sizeof(((struct record *)0)->member) == sizeof(option_c_##KIND)      \
				      ? 1                                                          \
				      : -1])
typedef const char *option_c_TEXT;
typedef const char *option_c_PATH;
typedef uint32_t option_c_NUMBER;
typedef unsigned option_c_CHOICE;
typedef enum log_level option_c_LEVEL;
typedef uint32_t option_c_FLAG;

/* The words that are no flags, in the argv that was given. */
struct option_words {
	const char **v;
	size_t n;
};

/* A program: what --help says of it, and its table. */
struct option_table {
	const char *program;     /* "roostd" */
	const char *about;       /* one sentence */
	const char *config_path; /* the file that is read if it is there; NULL: no file at all */
	const struct option_def *defs;
	size_t n;
	size_t size; /* of the struct */
	/* The struct begins with a struct option_words. --help then has them too, but nothing else.
	 */
	bool takes_words;
	/* The file is another program's: fields that are not ours are its own, and when it may not
	 * be read it counts as missing. */
	bool borrowed_file;
};

enum options_verb { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

struct option_sources {
	int argc;
	char *const *argv; /* with the program's name in front */
	char *const *env;  /* as environ; NULL: none */
	const char *file;  /* the file's text; NULL: none */
	size_t file_len;
	const char *file_name; /* for messages */
};

/*
 * Fills *record (zeroed before). 0, -ENOMEM, or -EINVAL with the sentence. After --help or
 * --version nothing else is looked at. On failure *record holds nothing.
 */
int options_parse(const struct option_table *table, const struct option_sources *from, void *record,
		  enum options_verb *ret, struct err *err);
void options_done(const struct option_table *table, void *record);

/*
 * The same with the file read: the one that --config or ROOST_CONFIG names must be there,
 * that of the table may be missing.
 */
int options_load(const struct option_table *table, int argc, char *const *argv, char *const *env,
		 void *record, enum options_verb *ret, struct err *err);

/* The first line after "after" (NULL: from the start) whose values differ; NULL: no more. */
const struct option_def *options_differ(const struct option_table *table, const void *a,
					const void *b, const struct option_def *after);

/* Texts for people; free() them. NULL when out of memory. */
char *options_help(const struct option_table *table);
char *options_version(const struct option_table *table);
/* One option as options_help() shows it. */
void option_print(FILE *out, const struct option_def *def);

/* The names that follow from a flag's. OPTION_NAME bytes each; they return text. */
#define OPTION_NAME 64
const char *option_variable(const struct option_def *def, char *text); /* ROOST_ETCD_CACERT */
const char *option_field(const struct option_def *def, char *text);    /* etcdCacert */

/* --- what all programs that reach etcd share ------------------------------------------------ */

/* The prefix of all keys: printable, begins and ends with '/', at most 200 bytes. */
name_check_fn key_prefix_check;

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
extern const char *const log_format_choices[];

/* How to reach etcd, and where in it we live. store_open() makes the store of it. */
struct etcd_settings {
	const char *endpoints, *cacert, *cert, *key, *user, *password_file;
	const char *prefix;
	uint32_t insecure;
};

/* The program's struct has a "struct etcd_settings etcd". */
#define OPTIONS_ETCD(record)                                                                       \
	{ OPTION(record, etcd.endpoints, "etcd", TEXT), .initial = "http://127.0.0.1:2379",        \
	  .argument = "URL[,URL]",                                                                 \
	  .help = "etcd's members: http://HOST:PORT, https://HOST:PORT or unix:///PATH" },         \
		{ OPTION(record, etcd.cacert, "etcd-cacert", PATH), .argument = "FILE",            \
		  .help = "PEM file with the authorities that sign etcd's certificate" },          \
		{ OPTION(record, etcd.cert, "etcd-cert", PATH), .argument = "FILE",                \
		  .help = "PEM file with our certificate; together with --etcd-key" },             \
		{ OPTION(record, etcd.key, "etcd-key", PATH), .argument = "FILE",                  \
		  .help = "PEM file with its private key" },                                       \
		{ OPTION(record, etcd.user, "etcd-user", TEXT), .argument = "NAME",                \
		  .check = word_check,                                                             \
		  .help = "etcd's user; together with --etcd-password-file" },                     \
		{ OPTION(record, etcd.password_file, "etcd-password-file", PATH),                  \
		  .argument = "FILE", .help = "its password, in a file that others cannot read" }, \
		{ OPTION(record, etcd.insecure, "etcd-insecure", FLAG),                            \
		  .help = "accept http:// to other machines: no warning, and a password may be "   \
			  "sent" },                                                                \
	{                                                                                          \
		OPTION(record, etcd.prefix, "prefix", TEXT),                                       \
			.initial = "/roost/v1/", .argument = "PREFIX", .check = key_prefix_check,  \
			.help = "what all keys begin with"                                         \
	}
#define OPTIONS_LOG(record)                                                                        \
	{ OPTION(record, log_level, "log-level", LEVEL), .initial = "info", .argument = "LEVEL",   \
	  .live = true, .help = "error, warning, info or debug" },                                 \
	{                                                                                          \
		OPTION(record, log_format, "log-format", CHOICE),                                  \
			.initial = "text", .argument = "FORMAT", .choices = log_format_choices,    \
			.help = "text or json; without it the journal is used where there is one"  \
	}
/* -EINVAL when one of a pair is given without the other, or a password would be readable on its way. */
int options_check_etcd(const struct etcd_settings *s, struct err *err);
