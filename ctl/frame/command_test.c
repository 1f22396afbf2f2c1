/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/frame/command.h"
#include "ctl/frame/settings.h"

static int nothing(struct ctl *ctl, struct err *err)
{
	return 0;
}

static const struct command_list a_list = { .watches = (const char *const[]){ "pool/", NULL } };

static const struct command table[] = {
	{ .noun = "pool", .verb = "list", .help = "list pools", .list = &a_list },
	{ .noun = "pool",
	  .verb = "show",
	  .usage = "NAME",
	  .min = 1,
	  .max = 1,
	  .help = "show it",
	  .examples = EXAMPLES("roostctl pool show web"),
	  .run = nothing },
	{ .noun = "pool",
	  .verb = "delete",
	  .usage = "NAME",
	  .min = 1,
	  .max = 1,
	  .help = "delete it",
	  .flags = FLAGS("yes"),
	  .destroys = true,
	  .run = nothing },
	{ .noun = "version", .help = "print the version", .run = nothing },
	{ .noun = "__secret", .help = "nobody's business", .hidden = true, .run = nothing },
	{ .noun = NULL },
};

#define WORDS(...)                                                                                 \
	(const char *const[]){ __VA_ARGS__ },                                                      \
		sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

static const struct command *found(const char *const *words, size_t n, size_t used)
{
	const struct command *c = NULL;
	struct err err = { "" };
	size_t got = 0;

	if (command_find(table, words, n, &c, &got, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(got, used);
	return c;
}

static void refused(const char *sentence, const char *const *words, size_t n)
{
	const struct command *c;
	struct err err = { "" };
	size_t used;

	assert_int_equal(command_find(table, words, n, &c, &used, &err), CTL_USAGE);
	assert_string_equal(err.text, sentence);
}

static void a_command_is_found_by_noun_and_verb(void **unused)
{
	assert_ptr_equal(found(WORDS("pool", "show", "web"), 2), &table[1]);
	assert_ptr_equal(found(WORDS("version", "x"), 1), &table[3]);
}

static void what_is_unknown_is_refused_with_the_nearest(void **unused)
{
	refused("unknown command \"pol\": perhaps \"pool\"? See roostctl --help",
		WORDS("pol", "list"));
	refused("unknown command \"frobnicate\", see roostctl --help", WORDS("frobnicate"));
	refused("unknown verb \"lsit\" of pool: perhaps \"list\"?", WORDS("pool", "lsit"));
	refused("unknown verb \"delte\" of pool, which has: list, show, delete",
		WORDS("pool", "delte"));
	refused("unknown verb \"frobnicate\" of pool, which has: list, show, delete",
		WORDS("pool", "frobnicate"));
	refused("roostctl pool needs a verb: list, show, delete", WORDS("pool"));
	refused("no command given, see roostctl --help", NULL, 0);
}

static void check(const struct command *c, size_t n, struct ctl_settings s, const char *sentence)
{
	struct err err = { "" };

	s.file = s.file ?: "";
	assert_int_equal(command_check(c, n, &s, &err), sentence ? CTL_USAGE : 0);
	assert_string_equal(err.text, sentence ?: "");
}

static void arguments_and_flags_fit_the_command(void **unused)
{
	const struct ctl_settings none = { 0 };

	check(&table[1], 1, none, NULL);
	check(&table[1], 0, none, "missing arguments: roostctl pool show NAME");
	check(&table[1], 2, none, "too many arguments: roostctl pool show NAME");
	check(&table[3], 1, none, "too many arguments: roostctl version takes none");
	check(&table[0], 0, (struct ctl_settings){ .watch = 1 }, NULL);
	check(&table[2], 1, (struct ctl_settings){ .yes = 1 }, NULL);
	check(&table[1], 1, (struct ctl_settings){ .yes = 1 },
	      "--yes is not a flag of \"pool show\", see roostctl pool show --help");
	check(&table[1], 1, (struct ctl_settings){ .file = "x" },
	      "--file is not a flag of \"pool show\", see roostctl pool show --help");
}

static void help_is_for_all_for_a_noun_and_for_one(void **unused)
{
	AUTO(free) char *all = command_help(table, NULL, 0);
	AUTO(free) char *noun = command_help(table, WORDS("pool"));
	AUTO(free) char *one = command_help(table, WORDS("pool", "show"));

	assert_non_null(strstr(all, "  pool show NAME"));
	assert_non_null(strstr(all, "--etcd URL"));
	assert_null(strstr(all, "__secret"));
	assert_null(strstr(all, "--yes"));
	assert_non_null(strstr(noun, "  pool delete NAME"));
	assert_null(strstr(noun, "version"));
	assert_non_null(strstr(one, "Show it.\n"));
	assert_non_null(strstr(one, "Examples:\n  roostctl pool show web\n"));
}

/* The real table: what everything else relies on. */
static void every_command_is_whole(void **unused)
{
	for (const struct command *c = commands; c->noun; c++) {
		char name[COMMAND_TEXT];

		command_name(c, name);
		assert_true(strlen(name) < COMMAND_TEXT - 1);
		if (!c->run == !c->list)
			fail_msg("%s: run or list, one of them", name);
		if (!c->help || !islower((unsigned char)c->help[0]) ||
		    c->help[strlen(c->help) - 1] == '.')
			fail_msg("%s: help is a line from a small letter on", name);
		if (!c->hidden && !(c->examples && c->examples[0]))
			fail_msg("%s: no example", name);
		for (const struct command *d = commands; d < c; d++)
			if (strcmp(c->noun, d->noun) == 0 &&
			    (!c->verb || !d->verb || strcmp(c->verb, d->verb) == 0))
				fail_msg("%s stands there twice", name);
	}
}

static void every_example_is_of_its_command_and_every_flag_exists(void **unused)
{
	for (const struct command *c = commands; c->noun; c++) {
		char name[COMMAND_TEXT];

		command_name(c, name);
		for (size_t i = 0; c->examples && c->examples[i]; i++)
			if (!strstr(c->examples[i], "roostctl ") || !strstr(c->examples[i], name))
				fail_msg("%s: example %s", name, c->examples[i]);
		for (size_t i = 0; c->flags && c->flags[i]; i++) {
			bool known = false;

			for (size_t j = 0; j < ctl_settings_table.n; j++)
				known = known ||
					(ctl_settings_table.defs[j].only_flag &&
					 strcmp(ctl_settings_table.defs[j].name, c->flags[i]) == 0);
			if (!known)
				fail_msg("%s: flag %s is not in settings.c", name, c->flags[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_found_by_noun_and_verb),
		cmocka_unit_test(what_is_unknown_is_refused_with_the_nearest),
		cmocka_unit_test(arguments_and_flags_fit_the_command),
		cmocka_unit_test(help_is_for_all_for_a_noun_and_for_one),
		cmocka_unit_test(every_command_is_whole),
		cmocka_unit_test(every_example_is_of_its_command_and_every_flag_exists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
