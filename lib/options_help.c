/* SPDX-License-Identifier: Apache-2.0 */
/* What a person is told about the options: help, version, the nearest name, rules between them. */
#include <errno.h>
#include <string.h>

#include "lib/options_parts.h"

/* --- the nearest name ----------------------------------------------------------------------- */

#define NEAR_MAX 24 /* longer names are not compared */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters to add, drop or change; the usual table, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NEAR_MAX + 1];
	size_t nb = strlen(b);

	for (unsigned j = 0; j <= nb; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned change = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			row[j] = least(row[j] + 1, row[j - 1] + 1, change);
		}
	}
	return row[nb];
}

const char *option_nearest(const struct option_table *table, const char *name, bool by_field,
			   char *text)
{
	size_t len = strcspn(name, "=");
	char typed[NEAR_MAX + 1], have[OPTION_NAME];
	unsigned best = len < 6 ? 3 : 4; /* further away it is a guess, no help */

	if (len > NEAR_MAX)
		return NULL;
	memcpy(typed, name, len);
	typed[len] = '\0';
	text[0] = '\0';
	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *def = &table->defs[i];
		const char *name_of;
		unsigned d;

		if (by_field && def->not_in_file)
			continue;
		name_of = by_field ? option_field(def, have) : def->name;
		if (strlen(name_of) > NEAR_MAX)
			continue;
		d = distance(typed, name_of);
		if (d < best) {
			best = d;
			memcpy(text, name_of, strlen(name_of) + 1);
		}
	}
	return text[0] ? text : NULL;
}

/* --- help ----------------------------------------------------------------------------------- */

static void print_option(FILE *out, const struct option_def *def)
{
	char variable[OPTION_NAME], field[OPTION_NAME];

	fprintf(out, "  --%s%s%s\n      %s", def->name, def->kind == OPTION_FLAG ? "" : " ",
		def->kind == OPTION_FLAG ? "" : def->argument, def->help);
	if (def->initial && *def->initial)
		fprintf(out, " (default %s)", def->initial);
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
			print_option(out, &table->defs[i]);
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
	if (!*s->cert != !*s->key)
		return err_set(err, -EINVAL,
			       "--etcd-cert and --etcd-key go together: %s is missing",
			       *s->cert ? "--etcd-key" : "--etcd-cert");
	if (!*s->user != !*s->password_file)
		return err_set(err, -EINVAL,
			       "--etcd-user and --etcd-password-file go together: %s is missing",
			       *s->user ? "--etcd-password-file" : "--etcd-user");
	return 0;
}
