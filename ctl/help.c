/* SPDX-License-Identifier: Apache-2.0 */
/* What --help prints for all commands, for a noun, and for one command; version. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/record_fields.h"
#include "lib/json/tree.h"

#define WIDTH 90

/* Wrapped, with an empty line before each paragraph; in the text "\n\n" separates them. */
static void print_paragraphs(FILE *out, const char *text)
{
	size_t column = 0;

	fputc('\n', out);
	for (size_t n; *text; text += n + strspn(text + n, " ")) {
		n = strcspn(text, " \n");
		if (*text == '\n') {
			n = strspn(text, "\n");
			fputs("\n\n", out);
			column = 0;
			continue;
		}
		if (column)
			fputc(column + 1 + n > WIDTH ? '\n' : ' ', out);
		column = column && column + 1 + n <= WIDTH ? column + 1 + n : n;
		fprintf(out, "%.*s", (int)n, text);
	}
	fputc('\n', out);
}

static void print_line(FILE *out, const struct command *c)
{
	char name[COMMAND_TEXT], whole[128];

	snprintf(whole, sizeof(whole), "%s%s%s", command_name(c, name), c->usage ? " " : "",
		 c->usage ?: "");
	fprintf(out, "  %-38s%s%s\n", whole,
		strlen(whole) >= 38 ? "\n                                        " : "", c->help);
}

static void print_commands(FILE *out, const struct command *table, const char *noun)
{
	for (const struct command *c = table; c->noun; c++)
		if (!c->hidden && (!noun || strcmp(c->noun, noun) == 0))
			print_line(out, c);
}

static void print_common(FILE *out)
{
	fputs("\nFlags, before or after the words, each with its environment variable and its "
	      "field in\n"
	      "the agent's configuration file, which is read if it exists:\n\n",
	      out);
	for (size_t i = 0; i < ctl_settings_table.n; i++)
		if (!ctl_settings_table.defs[i].only_flag)
			option_print(out, &ctl_settings_table.defs[i]);
	fputs("  -h, --help\n  --version\n", out);
}

static void print_all(FILE *out, const struct command *table)
{
	fprintf(out, "Usage: roostctl NOUN VERB [ARGUMENT]... [--FLAG VALUE]...\n%s\n\n",
		ctl_settings_table.about);
	print_commands(out, table, NULL);
	print_common(out);
	fputs("\nExit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 etcd or the agent "
	      "cannot be\n"
	      "reached, 4 not found. `roostctl NOUN VERB --help` has examples.\n",
	      out);
}

static void print_noun(FILE *out, const struct command *table, const char *noun)
{
	fprintf(out, "Usage: roostctl %s VERB [ARGUMENT]... [--FLAG VALUE]...\n\n", noun);
	print_commands(out, table, noun);
	fputs("\nSee also roostctl --help for the flags of all commands.\n", out);
}

static void print_fields(FILE *out, const struct command *c)
{
	AUTO(free) char *fields = NULL;

	if (c->arguments[0] != ARG_FIELD && c->arguments[1] != ARG_FIELD)
		return;
	fields = fields_text(c->noun);
	if (fields)
		fprintf(out, "\nFields:\n%s", fields);
}

static void print_command(FILE *out, const struct command *c)
{
	char name[COMMAND_TEXT];
	bool any = false;

	fprintf(out, "Usage: roostctl %s%s%s [--FLAG VALUE]...\n\n%c%s.\n", command_name(c, name),
		c->usage ? " " : "", c->usage ?: "", c->help[0] - 'a' + 'A', c->help + 1);
	if (c->more)
		print_paragraphs(out, c->more);
	print_fields(out, c);
	for (size_t i = 0; i < ctl_settings_table.n; i++) {
		const struct option_def *def = &ctl_settings_table.defs[i];

		if (!def->only_flag || !command_takes(c, def->name))
			continue;
		fputs(any ? "" : "\nFlags, in addition to those of roostctl --help:\n", out);
		option_print(out, def);
		any = true;
	}
	fputs(c->examples && c->examples[0] ? "\nExamples:\n" : "", out);
	for (size_t i = 0; c->examples && c->examples[i]; i++)
		fprintf(out, "  %s\n", c->examples[i]);
}

static void print_help(FILE *out, const struct command *table, const char *const *words, size_t n)
{
	const struct command *c = NULL;
	struct err err;
	size_t used;

	if (n > 0 && command_find(table, words, n, &c, &used, &err) == 0) {
		print_command(out, c);
		return;
	}
	for (c = table; n > 0 && c->noun; c++)
		if (strcmp(c->noun, words[0]) == 0) {
			print_noun(out, table, words[0]);
			return;
		}
	print_all(out, table);
}

char *command_help(const struct command *table, const char *const *words, size_t n)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool bad;

	if (!out)
		return NULL;
	print_help(out, table, words, n);
	bad = ferror(out);
	if (fclose(out) != 0 || bad) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- version, and the hidden __examples ------------------------------------------------------- */

int version_run(struct ctl *ctl, struct err *err)
{
	AUTO(json_put) struct json_object *object = NULL, *status = NULL;
	struct tree t = tree_new();
	unsigned code;
	int r;

	tree_text(&t, "roostctl", ROOST_VERSION);
	/* Not every machine with roostctl has an agent. */
	if (ctl_agent(ctl, "GET", "/v1/status", NULL, &code, &status, NULL) == 0)
		tree_share(&t, "roostd", out_at(status, "version"));
	r = tree_end(&t, &object);
	return r < 0 ? r : out_show(&ctl->out, object);
}

int examples_run(struct ctl *ctl, struct err *err)
{
	for (const struct command *c = commands; c->noun; c++)
		for (size_t i = 0; c->examples && c->examples[i]; i++)
			fprintf(ctl->out.to, "%s\n", c->examples[i]);
	return 0;
}
