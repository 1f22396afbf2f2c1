/* SPDX-License-Identifier: Apache-2.0 */
/* What a person is told about the options: help, version, the nearest name, rules between them. */
#include <errno.h>
#include <string.h>

#include "lib/base/nearest.h"
#include "lib/daemon/options_parts.h"

/* --- the nearest name ----------------------------------------------------------------------- */

const char *option_nearest(const struct option_table *table, const char *name, bool by_field,
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
