/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/daemon/options_parts.h"

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

const struct option_def *option_find(const struct option_table *table, const char *name, size_t len,
				     bool by_field)
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

int option_set(const struct option_def *def, const char *text, void *record, struct err *err)
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
