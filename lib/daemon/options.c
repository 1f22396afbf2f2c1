/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/endpoint.h"
#include "lib/base/files.h"
#include "lib/base/nearest.h"
#include "lib/json/json.h"
#include "lib/json/json_comments.h"

const char *const log_format_choices[] = { "text", "json", NULL };
static const char *const yes_or_no[] = { "no", "yes", NULL };

/* --- names ---------------------------------------------------------------------------------- */

const char *option_variable(const struct option_def *def, char *text)
{
	size_t n = (size_t)(stpcpy(text, "ROOST_") - text);

	for (const char *p = def->name; *p && n < OPTION_NAME - 1; p++)
		text[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	text[n] = '\0';
	return text;
}

const char *option_field(const struct option_def *def, char *text)
{
	bool raise = false;
	size_t n = 0;

	for (const char *p = def->name; *p && n < OPTION_NAME - 1; p++) {
		if (*p != '-')
			text[n++] = raise ? (char)toupper((unsigned char)*p) : *p;
		raise = *p == '-';
	}
	text[n] = '\0';
	return text;
}

static const struct option_def *option_find(const struct option_table *table, const char *name,
					    size_t len, bool by_field)
{
	char text[OPTION_NAME];

	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *def = &table->defs[i];
		const char *have = by_field ? option_field(def, text) : def->name;

		if (strlen(have) == len && memcmp(have, name, len) == 0 &&
		    !(by_field && (def->not_in_file || def->only_flag)))
			return def;
	}
	return NULL;
}

/* --- values --------------------------------------------------------------------------------- */

static int read_number(const struct option_def *def, const char *text, uint32_t *ret,
		       struct err *err)
{
	size_t n = strspn(text, "0123456789");
	char shown[SHOW_TEXT];
	uint64_t value = 0;

	for (size_t i = 0; i < n && i < 11; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (n == 0 || n > 10 || text[n] || value < def->min || value > def->max)
		return err_set(err, -EINVAL, "\"%s\" is not a number from %u to %u",
			       text_show(text, shown), def->min, def->max);
	*ret = (uint32_t)value;
	return 0;
}

static int read_choice(const char *const *choices, const char *text, unsigned *ret, struct err *err)
{
	char shown[SHOW_TEXT], all[128] = "";

	for (unsigned i = 0; choices[i]; i++) {
		size_t n = strlen(all);

		if (strcmp(choices[i], text) == 0) {
			*ret = i;
			return 0;
		}
		snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", choices[i]);
	}
	return err_set(err, -EINVAL, "\"%s\" is not one of: %s", text_show(text, shown), all);
}

static int read_text(const struct option_def *def, const char *text, const char **ret,
		     struct err *err)
{
	name_check_fn *check = def->kind == OPTION_PATH ? path_check : def->check;
	const char *copy;

	if (*text && check && check(text, err) < 0)
		return -EINVAL;
	copy = strdup(text);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	free((void *)(uintptr_t)*ret);
	*ret = copy;
	return 0;
}

static int option_set(const struct option_def *def, const char *text, void *record, struct err *err)
{
	void *at = (char *)record + def->at;
	char shown[SHOW_TEXT];

	switch (def->kind) {
	case OPTION_NUMBER:
		return read_number(def, text, at, err);
	case OPTION_CHOICE:
		return read_choice(def->choices, text, at, err);
	case OPTION_FLAG:
		return read_choice(yes_or_no, text, at, err);
	case OPTION_LEVEL:
		if (log_level_parse(text, at) == 0)
			return 0;
		return err_set(err, -EINVAL, "\"%s\" is not one of: error, warning, info, debug",
			       text_show(text, shown));
	case OPTION_TEXT:
	case OPTION_PATH:
		break;
	}
	return read_text(def, text, at, err);
}

void options_done(const struct option_table *table, void *record)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->defs[i].kind == OPTION_TEXT || table->defs[i].kind == OPTION_PATH)
			free(*(char **)((char *)record + table->defs[i].at));
	if (table->takes_words)
		free(((struct option_words *)record)->v);
	memset(record, 0, table->size);
}

/* --- the nearest name ----------------------------------------------------------------------- */

static const char *option_nearest(const struct option_table *table, const char *name, bool by_field,
				  char *text)
{
	struct nearest near = nearest_to(name, strcspn(name, "="));

	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *def = &table->defs[i];
		char have[OPTION_NAME];

		if (!(by_field && (def->not_in_file || def->only_flag)))
			nearest_try(&near, by_field ? option_field(def, have) : def->name);
	}
	if (!near.name[0])
		return NULL;
	memcpy(text, near.name, sizeof(near.name));
	return text;
}

/*
 * --- the configuration file: a JSON object with a field for each option ----------------------
 *
 * It may have comments as in C and C++ (lib/json/json_comments.h); everything else is as strict as
 * it is for records.
 */

static int unknown_field(const struct option_table *table, const char *name, struct err *err)
{
	char shown[SHOW_TEXT], near[OPTION_NAME];

	text_show(name, shown);
	if (option_nearest(table, name, true, near))
		return err_set(err, -EINVAL, "unknown field \"%s\": perhaps \"%s\"?", shown, near);
	return err_set(err, -EINVAL, "unknown field \"%s\"", shown);
}

static int one_field(const struct option_def *def, struct json_at at, void *record, struct err *err)
{
	char number[24];
	const char *text;
	bool yes = false;
	int64_t value = 0;
	int r;

	if (def->kind == OPTION_NUMBER) {
		r = json_read_integer(at, def->min, def->max, &value);
		snprintf(number, sizeof(number), "%lld", (long long)value);
		text = number;
	} else if (def->kind == OPTION_FLAG) {
		r = json_read_bool(at, &yes);
		text = yes ? "yes" : "no";
	} else {
		r = json_read_text(at, JSON_STRING_MAX, &text);
	}
	if (r <= 0)
		return r;
	r = option_set(def, text, record, err);
	return r < 0 ? err_wrap(err, r, "field \"%s\"", at.name) : 0;
}

static int read_fields(const struct option_table *table, struct json_object *object, void *record,
		       struct err *err)
{
	struct json_at root = json_root(object, err);

	json_object_object_foreach(object, name, value) {
		const struct option_def *def = option_find(table, name, strlen(name), true);
		int r;

		if (!def && table->borrowed_file)
			continue;
		if (!def)
			return unknown_field(table, name, err);
		r = one_field(def, json_member(&root, name), record, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int options_from_file(const struct option_table *table, const char *text, size_t len,
			     void *record, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL;
	AUTO(free) char *copy = NULL;
	int r;

	if (len > JSON_SIZE_MAX)
		return err_set(err, -E2BIG, "%zu bytes are too many for a configuration file", len);
	copy = malloc(len + 1);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(copy, text, len);
	copy[len] = '\0';

	r = json_blank_comments(copy, len, err);
	r = r ?: json_parse(copy, len, &object, err);
	return r ?: read_fields(table, object, record, err);
}

/* --- the four sources, the weakest first ---------------------------------------------------- */

static int from_defaults(const struct option_table *table, void *record, struct err *err)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *def = &table->defs[i];
		bool text = def->kind == OPTION_TEXT || def->kind == OPTION_PATH;
		int r = 0;

		if (def->initial || text)
			r = option_set(def, def->initial ?: "", record, err);
		if (r < 0)
			return err_wrap(err, r, "default of --%s", def->name);
	}
	return 0;
}

static const char *variable_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static int from_environment(const struct option_table *table, char *const *env, void *record,
			    struct err *err)
{
	char name[OPTION_NAME];

	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *def = &table->defs[i];
		const char *value = variable_value(env, option_variable(def, name));
		int r;

		if (!value || !*value || def->only_flag)
			continue;
		r = option_set(def, value, record, err);
		if (r < 0)
			return err_wrap(err, r, "environment variable %s", name);
	}
	return 0;
}

static int unknown_flag(const struct option_table *table, const char *arg, struct err *err)
{
	char shown[SHOW_TEXT], near[OPTION_NAME];

	text_show(arg, shown);
	if (strncmp(arg, "--", 2) != 0 && !table->takes_words)
		return err_set(err, -EINVAL,
			       "\"%s\" is not understood: %s takes only flags, see --help", shown,
			       table->program);
	if (option_nearest(table, arg + 2, false, near))
		return err_set(err, -EINVAL, "unknown flag \"%s\": perhaps --%s? See --help", shown,
			       near);
	return err_set(err, -EINVAL, "unknown flag \"%s\", see --help", shown);
}

/* The option that a word names, and the value within that word, if there is one. */
static const struct option_def *flag_of(const struct option_table *table, const char *arg,
					const char **ret_value)
{
	size_t len = strcspn(arg, "=");

	*ret_value = NULL;
	if (strncmp(arg, "--", 2) == 0) {
		*ret_value = arg[len] ? arg + len + 1 : NULL;
		return option_find(table, arg + 2, len - 2, false);
	}
	for (size_t i = 0; arg[0] == '-' && arg[1] && i < table->n; i++)
		if (table->defs[i].letter == arg[1]) {
			*ret_value = arg[2] ? arg + 2 : NULL;
			return &table->defs[i];
		}
	return NULL;
}

/* "--name=value", "--name value", "-n value", "-nvalue"; *i goes to the last word used. */
static int one_flag(const struct option_table *table, const struct option_sources *from, int *i,
		    void *record, struct err *err)
{
	const char *arg = from->argv[*i], *value;
	const struct option_def *def = flag_of(table, arg, &value);
	int r;

	if (!def)
		return unknown_flag(table, arg, err);
	if (!value && def->kind == OPTION_FLAG)
		value = "yes";
	else if (!value && *i + 1 < from->argc)
		value = from->argv[++*i];
	if (!value)
		return err_set(err, -EINVAL, "--%s wants a value: --%s %s", def->name, def->name,
			       def->argument);
	r = option_set(def, value, record, err);
	return r < 0 ? err_wrap(err, r, "--%s", def->name) : 0;
}

/* A lone "-" is a word: it stands for standard input. */
static bool is_word(const struct option_table *table, const char *arg)
{
	return table->takes_words && (arg[0] != '-' || !arg[1]);
}

static int from_flags(const struct option_table *table, const struct option_sources *from,
		      void *record, struct err *err)
{
	struct option_words *words = record;
	bool flags = true;

	for (int i = 1; i < from->argc; i++) {
		int r = 0;

		if (!flags || is_word(table, from->argv[i]))
			words->v[words->n++] = from->argv[i];
		else if (table->takes_words && strcmp(from->argv[i], "--") == 0)
			flags = false;
		else
			r = one_flag(table, from, &i, record, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_words(const struct option_table *table, const struct option_sources *from,
		      void *record, struct err *err)
{
	struct option_words *words = record;

	if (!table->takes_words)
		return 0;
	words->v = calloc((size_t)from->argc + 1, sizeof(*words->v));
	return words->v ? 0 : err_set(err, -ENOMEM, "out of memory");
}

/* A question is answered even when other words are wrong. A value is no question. */
static enum options_verb asked(const struct option_table *table, const struct option_sources *from,
			       struct option_words *words)
{
	enum options_verb verb = OPTIONS_RUN;

	for (int i = 1; i < from->argc && verb == OPTIONS_RUN; i++) {
		const char *arg = from->argv[i], *value = NULL;
		const struct option_def *def = NULL;

		if (table->takes_words && strcmp(arg, "--") == 0)
			break;
		if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
			verb = OPTIONS_HELP;
		else if (strcmp(arg, "--version") == 0)
			verb = OPTIONS_VERSION;
		else if (is_word(table, arg))
			words->v[words->n++] = arg;
		else
			def = flag_of(table, arg, &value);
		i += def && !value && def->kind != OPTION_FLAG;
	}
	return verb;
}

int options_parse(const struct option_table *table, const struct option_sources *from, void *record,
		  enum options_verb *ret, struct err *err)
{
	int r = 0;

	memset(record, 0, table->size);
	r = make_words(table, from, record, err);
	if (r < 0)
		return r;
	*ret = asked(table, from, record);
	if (*ret != OPTIONS_RUN)
		return 0;

	if (table->takes_words)
		((struct option_words *)record)->n = 0;
	r = from_defaults(table, record, err);
	if (r == 0 && from->file) {
		r = options_from_file(table, from->file, from->file_len, record, err);
		if (r < 0)
			err_wrap(err, r, "%s", from->file_name);
	}
	if (r == 0)
		r = from_environment(table, from->env, record, err);
	if (r == 0)
		r = from_flags(table, from, record, err);
	if (r < 0)
		options_done(table, record);
	return r;
}

/* --- what two readings differ in ------------------------------------------------------------ */

static bool same(const struct option_def *def, const void *a, const void *b)
{
	const char *x = (const char *)a + def->at, *y = (const char *)b + def->at;

	if (def->kind == OPTION_TEXT || def->kind == OPTION_PATH)
		return strcmp(*(const char *const *)x, *(const char *const *)y) == 0;
	return memcmp(x, y, sizeof(uint32_t)) == 0;
}

const struct option_def *options_differ(const struct option_table *table, const void *a,
					const void *b, const struct option_def *after)
{
	size_t i = after ? (size_t)(after - table->defs) + 1 : 0;

	for (; i < table->n; i++)
		if (!same(&table->defs[i], a, b))
			return &table->defs[i];
	return NULL;
}

/* --- the file itself ------------------------------------------------------------------------ */

int options_load(const struct option_table *table, int argc, char *const *argv, char *const *env,
		 void *record, enum options_verb *ret, struct err *err)
{
	const struct option_def *config = option_find(table, "config", strlen("config"), false);
	struct option_sources from = { .argc = argc, .argv = argv, .env = env };
	AUTO(free) char *text = NULL, *path = NULL;
	bool named;
	int r;

	r = options_parse(table, &from, record, ret, err);
	if (r < 0 || *ret != OPTIONS_RUN || !config || !table->config_path)
		return r;

	path = strdup(*(const char *const *)((char *)record + config->at));
	options_done(table, record);
	named = path && *path;
	if (path && !named) {
		free(path);
		path = strdup(table->config_path);
	}
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	from.file_name = path;
	r = file_read_path(path, JSON_SIZE_MAX, &text, &from.file_len);
	if (r < 0)
		err_set(err, r, "%s: %s", path, r == -EINVAL ? "is not a file" : strerror(-r));
	/* Nobody asked for the usual one. */
	if (r < 0 && (named || (r != -ENOENT && !(table->borrowed_file && r == -EACCES))))
		return r;
	from.file = text;
	return options_parse(table, &from, record, ret, err);
}

/* --- help ----------------------------------------------------------------------------------- */

void option_print(FILE *out, const struct option_def *def)
{
	char variable[OPTION_NAME], field[OPTION_NAME], letter[] = "-?, ";

	letter[1] = def->letter;
	fprintf(out, "  %s--%s%s%s\n      %s", def->letter ? letter : "", def->name,
		def->kind == OPTION_FLAG ? "" : " ", def->kind == OPTION_FLAG ? "" : def->argument,
		def->help);
	if (def->initial && *def->initial)
		fprintf(out, " (default %s)", def->initial);
	if (def->only_flag) {
		fputc('\n', out);
		return;
	}
	fprintf(out, "\n      %s%s", option_variable(def, variable),
		def->kind == OPTION_FLAG ? "=yes" : "");
	if (!def->not_in_file)
		fprintf(out, ", \"%s\"", option_field(def, field));
	fputc('\n', out);
}

static void print_all(FILE *out, const struct option_table *table, bool for_tests)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->defs[i].for_tests == for_tests)
			option_print(out, &table->defs[i]);
}

static bool has_test_options(const struct option_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->defs[i].for_tests)
			return true;
	return false;
}

static void print_help(FILE *out, const struct option_table *table)
{
	fprintf(out, "Usage: %s [--FLAG VALUE]...\n%s\n\n", table->program, table->about);
	fputs("Each flag with its environment variable", out);
	if (table->config_path)
		fprintf(out,
			" and its field in the configuration file\n(%s: JSON, may have comments)",
			table->config_path);
	fputs(". A flag goes before the environment,\nthe environment before the file.\n\n", out);
	print_all(out, table, false);
	fputs("  --help\n  --version\n", out);
	if (has_test_options(table))
		fputs("\nFor tests:\n", out);
	print_all(out, table, true);
}

char *options_help(const struct option_table *table)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool bad;

	if (!out)
		return NULL;
	print_help(out, table);
	bad = ferror(out);
	if (fclose(out) != 0 || bad) {
		free(text);
		return NULL;
	}
	return text;
}

char *options_version(const struct option_table *table)
{
	char *text;

	return asprintf(&text, "%s %s\n", table->program, ROOST_VERSION) < 0 ? NULL : text;
}

/* --- rules that programs share -------------------------------------------------------------- */

int key_prefix_check(const char *text, struct err *err)
{
	size_t n = strlen(text);
	char shown[SHOW_TEXT];

	for (size_t i = 0; i < n; i++)
		if (text[i] <= 0x20 || text[i] > 0x7e)
			n = 0;
	if (n >= 2 && n <= 200 && text[0] == '/' && text[n - 1] == '/')
		return 0;
	return err_set(err, -EINVAL,
		       "\"%s\" is not a prefix of keys: it begins and ends with '/', as /roost/v1/ "
		       "does, and has at most 200 printable characters",
		       text_show(text, shown));
}

int options_check_etcd(const struct etcd_settings *s, struct err *err)
{
	const char *plain;
	size_t len;

	if (!*s->cert != !*s->key)
		return err_set(err, -EINVAL,
			       "--etcd-cert and --etcd-key go together: %s is missing",
			       *s->cert ? "--etcd-key" : "--etcd-cert");
	if (!*s->user != !*s->password_file)
		return err_set(err, -EINVAL,
			       "--etcd-user and --etcd-password-file go together: %s is missing",
			       *s->user ? "--etcd-password-file" : "--etcd-user");
	plain = endpoints_plain(s->endpoints, &len);
	if (*s->user && plain && !s->insecure)
		return err_set(
			err, -EINVAL,
			"--etcd-user: the password would go to %.*s in clear text; use https:// "
			"(docs/SECURITY.md), or --etcd-insecure to accept that",
			(int)len, plain);
	return 0;
}
