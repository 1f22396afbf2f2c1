/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/daemon/options.h"

struct told {
	struct etcd_settings etcd;
	const char *config;
	enum log_level log_level;
	unsigned log_format;
	uint32_t workers;
	uint32_t quiet;
	const char *machine_id;
};

static const struct option_def defs[] = {
	OPTIONS_ETCD(told),
	OPTIONS_LOG(told),
	{ OPTION(told, config, "config", PATH), .argument = "FILE", .help = "the file",
	  .not_in_file = true },
	{ OPTION(told, workers, "workers", NUMBER), .initial = "4", .min = 1, .max = 64,
	  .argument = "N", .help = "how many" },
	{ OPTION(told, quiet, "quiet", FLAG), .help = "say nothing" },
	{ OPTION(told, machine_id, "machine-id", TEXT), .argument = "ID",
	  .help = "instead of the machine's", .check = id_check, .for_tests = true },
};
static const struct option_table table = {
	.program = "prog",
	.about = "A program.",
	.config_path = "/nowhere/prog.json",
	.defs = defs,
	.n = ARRAY_SIZE(defs),
	.size = sizeof(struct told),
};

/* Literals are const, what main() is given is not; nobody writes. */
#define WORDS(...) ((char *const *)(uintptr_t)(const char *[]){ __VA_ARGS__ })
#define NO_FLAGS   .argc = 1, .argv = WORDS("prog")
#define ENV(...)   .env = WORDS(__VA_ARGS__, NULL)
#define FLAGS(...)                                                                                 \
	.argc = sizeof((const char *[]){ "prog", __VA_ARGS__ }) / sizeof(char *),                  \
	.argv = WORDS("prog", __VA_ARGS__)
#define FILE_TEXT(text) .file = (text), .file_len = strlen(text), .file_name = "/etc/prog.json"

static void told_done_auto(struct told *t)
{
	options_done(&table, t);
}

#define PARSE(t, ...)                                                                              \
	AUTO(told_done) struct told t = { 0 };                                                     \
	do {                                                                                       \
		const struct option_sources from_ = { __VA_ARGS__ };                               \
		enum options_verb verb_;                                                           \
		struct err err_ = { "" };                                                          \
		if (options_parse(&table, &from_, &t, &verb_, &err_) < 0)                          \
			fail_msg("%s", err_.text);                                                 \
		assert_int_equal(verb_, OPTIONS_RUN);                                              \
	} while (0)

#define REFUSED(sentence, ...)                                                                     \
	do {                                                                                       \
		const struct option_sources from_ = { __VA_ARGS__ };                               \
		struct told t_, zero_ = { 0 };                                                     \
		enum options_verb verb_;                                                           \
		struct err err_ = { "" };                                                          \
		assert_int_equal(options_parse(&table, &from_, &t_, &verb_, &err_), -EINVAL);      \
		assert_string_equal(err_.text, sentence);                                          \
		assert_memory_equal(&t_, &zero_, sizeof(t_));                                      \
	} while (0)

static void nothing_given_means_the_defaults(void **unused)
{
	PARSE(t, NO_FLAGS);
	assert_string_equal(t.etcd.endpoints, "http://127.0.0.1:2379");
	assert_string_equal(t.etcd.prefix, "/roost/v1/");
	assert_string_equal(t.etcd.cacert, "");
	assert_int_equal(t.log_level, LOG_LEVEL_INFO);
	assert_int_equal(t.log_format, LOG_FORMAT_TEXT);
	assert_int_equal(t.workers, 4);
}

static void a_flag_goes_before_the_environment_and_that_before_the_file(void **unused)
{
	const char *file = "{\"etcd\":\"http://file:1\",\"etcdUser\":\"file\",\"workers\":7}";

	PARSE(t, FLAGS("--etcd", "http://flag:1"),
	      ENV("ROOST_ETCD=http://env:1", "ROOST_ETCD_USER=env", "HOME=/x"), FILE_TEXT(file));
	assert_string_equal(t.etcd.endpoints, "http://flag:1");
	assert_string_equal(t.etcd.user, "env");
	assert_int_equal(t.workers, 7);
}

static void a_flag_takes_its_value_from_the_next_word_or_behind_an_equals_sign(void **unused)
{
	PARSE(t, FLAGS("--workers=9", "--log-level", "debug", "--etcd-cacert=/a=b"));
	assert_int_equal(t.workers, 9);
	assert_int_equal(t.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(t.etcd.cacert, "/a=b");
}

static void a_flag_that_takes_no_value_leaves_the_next_word_alone(void **unused)
{
	PARSE(no, NO_FLAGS);
	assert_int_equal(no.quiet, 0);
	PARSE(yes, FLAGS("--quiet", "--workers", "9"));
	assert_int_equal(yes.quiet, 1);
	assert_int_equal(yes.workers, 9);
	PARSE(env, NO_FLAGS, ENV("ROOST_QUIET=yes"));
	assert_int_equal(env.quiet, 1);
	PARSE(file, FLAGS("--quiet=no"), FILE_TEXT("{\"quiet\":true}"));
	assert_int_equal(file.quiet, 0);
	REFUSED("--quiet: \"maybe\" is not one of: no, yes", FLAGS("--quiet=maybe"));
	REFUSED("\"x\" is not understood: prog takes only flags, see --help",
		FLAGS("--quiet", "x"));
}

static void the_last_of_equal_flags_wins(void **unused)
{
	PARSE(t, FLAGS("--workers", "9", "--workers", "10"));
	assert_int_equal(t.workers, 10);
}

static void an_empty_variable_counts_as_unset(void **unused)
{
	PARSE(t, NO_FLAGS, ENV("ROOST_WORKERS=", "ROOST_ETCD="));
	assert_int_equal(t.workers, 4);
	assert_string_equal(t.etcd.endpoints, "http://127.0.0.1:2379");
}

static void variables_that_are_not_ours_are_ignored(void **unused)
{
	PARSE(t, NO_FLAGS,
	      ENV("ROOST_PORT=tcp://10.0.0.1:80", "ROOST_ETCD_PORT=tcp://10.0.0.2:2379",
		  "XROOST_WORKERS=5"));
	assert_int_equal(t.workers, 4);
	assert_string_equal(t.etcd.endpoints, "http://127.0.0.1:2379");
}

static void the_file_may_have_comments_of_both_kinds(void **unused)
{
	const char *file = "// first\n{ /* \"workers\": 1, */ \"workers\": 8, // why\n"
			   "  \"etcd\": \"http://a//b/*c*/\" /* end */ }\n// last";

	PARSE(t, NO_FLAGS, FILE_TEXT(file));
	assert_int_equal(t.workers, 8);
	assert_string_equal(t.etcd.endpoints, "http://a//b/*c*/");
}

static void a_quote_inside_a_string_does_not_end_it(void **unused)
{
	PARSE(t, NO_FLAGS, FILE_TEXT("{\"etcdUser\":\"a\\\"//b\"}"));
	assert_string_equal(t.etcd.user, "a\"//b");
}

static void a_null_in_the_file_counts_as_absent(void **unused)
{
	PARSE(t, NO_FLAGS, FILE_TEXT("{\"workers\":null,\"etcd\":null}"));
	assert_int_equal(t.workers, 4);
	assert_string_equal(t.etcd.endpoints, "http://127.0.0.1:2379");
}

static void an_unknown_flag_is_refused_with_the_nearest_one(void **unused)
{
	REFUSED("unknown flag \"--etdc\": perhaps --etcd? See --help", FLAGS("--etdc", "x"));
	REFUSED("unknown flag \"--log-leve=debug\": perhaps --log-level? See --help",
		FLAGS("--log-leve=debug"));
	REFUSED("unknown flag \"--frobnicate\", see --help", FLAGS("--frobnicate"));
	REFUSED("unknown flag \"--\", see --help", FLAGS("--"));
}

static void a_word_that_is_no_flag_is_refused(void **unused)
{
	REFUSED("\"start\" is not understood: prog takes only flags, see --help", FLAGS("start"));
	REFUSED("\"-v\" is not understood: prog takes only flags, see --help", FLAGS("-v"));
	REFUSED("\"\" is not understood: prog takes only flags, see --help", FLAGS(""));
}

static void a_flag_without_its_value_is_refused(void **unused)
{
	REFUSED("--workers wants a value: --workers N", FLAGS("--workers"));
}

static void a_wrong_value_is_refused_with_its_source_and_the_rule(void **unused)
{
	REFUSED("--workers: \"65\" is not a number from 1 to 64", FLAGS("--workers", "65"));
	REFUSED("--workers: \"4294967297\" is not a number from 1 to 64",
		FLAGS("--workers", "4294967297"));
	REFUSED("--workers: \"+5\" is not a number from 1 to 64", FLAGS("--workers", "+5"));
	REFUSED("--workers: \"\" is not a number from 1 to 64", FLAGS("--workers="));
	REFUSED("environment variable ROOST_LOG_LEVEL: \"loud\" is not one of: error, warning, "
		"info, debug",
		NO_FLAGS, ENV("ROOST_LOG_LEVEL=loud"));
	REFUSED("--log-format: \"xml\" is not one of: text, json", FLAGS("--log-format", "xml"));
	REFUSED("--etcd-key: \"key.pem\" is not a path: it begins with '/', has no control "
		"characters and at most 1023 bytes",
		FLAGS("--etcd-key", "key.pem"));
	REFUSED("--prefix: \"/roost\" is not a prefix of keys: it begins and ends with '/', as "
		"/roost/v1/ does, and has at most 200 printable characters",
		FLAGS("--prefix", "/roost"));
}

static void a_wrong_value_is_refused_even_if_another_overrules_it(void **unused)
{
	REFUSED("environment variable ROOST_WORKERS: \"many\" is not a number from 1 to 64",
		FLAGS("--workers", "3"), ENV("ROOST_WORKERS=many"));
}

static void what_is_wrong_in_the_file_is_told_with_its_place(void **unused)
{
#define IN_FILE(text) NO_FLAGS, FILE_TEXT(text)
	REFUSED("/etc/prog.json: unknown field \"etcdPaswordFile\": perhaps \"etcdPasswordFile\"?",
		IN_FILE("{\"etcdPaswordFile\":\"/x\"}"));
	REFUSED("/etc/prog.json: unknown field \"etcd-cacert\": perhaps \"etcdCacert\"?",
		IN_FILE("{\"etcd-cacert\":\"/x\"}"));
	REFUSED("/etc/prog.json: unknown field \"config\"", IN_FILE("{\"config\":\"/x\"}"));
	REFUSED("/etc/prog.json: field \"workers\": 65 is not between 1 and 64",
		IN_FILE("{\"workers\":65}"));
	REFUSED("/etc/prog.json: field \"logLevel\": \"x\" is not one of: error, warning, info, "
		"debug",
		IN_FILE("{\"logLevel\":\"x\"}"));
	REFUSED("/etc/prog.json: the comment at byte 3 has no end", IN_FILE("{ /* }"));
	REFUSED("/etc/prog.json: not valid JSON at byte 27: quoted object property name expected",
		IN_FILE("{ /* is a comment */      workers: 3 }"));
	REFUSED("/etc/prog.json: not a whole JSON object: ends at byte 0", IN_FILE(""));
}

static void help_and_version_are_answered_whatever_else_is_said(void **unused)
{
	char *const *const lines[] = { WORDS("prog", "--nonsense", "--help"),
				       WORDS("prog", "--workers=0", "-h") };
	enum options_verb verb;
	struct told t;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct option_sources from = { .argc = 3, .argv = lines[i] };

		assert_int_equal(options_parse(&table, &from, &t, &verb, NULL), 0);
		assert_int_equal(verb, OPTIONS_HELP);
	}
	const struct option_sources from = { FLAGS("--quiet", "--version") };

	assert_int_equal(options_parse(&table, &from, &t, &verb, NULL), 0);
	assert_int_equal(verb, OPTIONS_VERSION);
}

static void a_value_that_looks_like_a_question_is_a_value(void **unused)
{
	PARSE(t, FLAGS("--etcd-user", "--help"));
	assert_string_equal(t.etcd.user, "--help");
}

static void the_help_names_each_flag_with_variable_field_and_default(void **unused)
{
	AUTO(free) char *help = options_help(&table);
	AUTO(free) char *version = options_version(&table);
	const char *tests;

	assert_non_null(help);
	assert_non_null(strstr(help, "Usage: prog [--FLAG VALUE]...\nA program.\n"));
	assert_non_null(strstr(help, "/nowhere/prog.json"));
	assert_non_null(strstr(help, "  --workers N\n      how many (default 4)\n"
				     "      ROOST_WORKERS, \"workers\"\n"));
	assert_non_null(strstr(help, "ROOST_ETCD_PASSWORD_FILE, \"etcdPasswordFile\"\n"));
	assert_non_null(strstr(help, "      ROOST_CONFIG\n"));
	assert_non_null(
		strstr(help, "  --quiet\n      say nothing\n      ROOST_QUIET=yes, \"quiet\"\n"));
	tests = strstr(help, "For tests:\n");
	assert_non_null(tests);
	assert_non_null(strstr(tests, "--machine-id ID"));
	assert_string_equal(version, "prog " ROOST_VERSION "\n");
}

static void two_readings_differ_where_they_differ(void **unused)
{
	PARSE(a, FLAGS("--workers", "3", "--etcd", "http://a:1"));
	PARSE(b, FLAGS("--workers", "5", "--etcd", "http://a:1", "--log-level", "debug"));
	const struct option_def *d = options_differ(&table, &a, &b, NULL);

	assert_string_equal(d->name, "log-level");
	d = options_differ(&table, &a, &b, d);
	assert_string_equal(d->name, "workers");
	assert_null(options_differ(&table, &a, &b, d));
}

#define ETCD(c, k, u, p)                                                                           \
	(&(struct etcd_settings){ .endpoints = "https://a:1",                                      \
				  .cert = (c),                                                     \
				  .key = (k),                                                      \
				  .user = (u),                                                     \
				  .password_file = (p) })

static void halves_of_a_pair_are_refused(void **unused)
{
	struct err err;

	assert_int_equal(options_check_etcd(ETCD("", "", "", ""), &err), 0);
	assert_int_equal(options_check_etcd(ETCD("/c", "/k", "u", "/p"), &err), 0);
	assert_int_equal(options_check_etcd(ETCD("/c", "", "", ""), &err), -EINVAL);
	assert_string_equal(err.text,
			    "--etcd-cert and --etcd-key go together: --etcd-key is missing");
	assert_int_equal(options_check_etcd(ETCD("", "", "", "/p"), &err), -EINVAL);
	assert_string_equal(
		err.text,
		"--etcd-user and --etcd-password-file go together: --etcd-user is missing");
}

static void a_password_goes_nowhere_in_clear_text(void **unused)
{
	struct etcd_settings s = { .endpoints = "https://a:1,http://10.0.0.1:2379",
				   .cert = "",
				   .key = "",
				   .user = "u",
				   .password_file = "/p" };
	static const char *const fine[] = { "https://a:1", "http://127.0.0.1:2379,https://b:1",
					    "http://localhost:1", "http://[::1]:1",
					    "unix:///run/etcd.sock" };
	struct err err;

	assert_int_equal(options_check_etcd(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "would go to http://10.0.0.1:2379 in clear text"));
	s.insecure = true;
	assert_int_equal(options_check_etcd(&s, &err), 0);
	s.insecure = false;
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		s.endpoints = fine[i];
		assert_int_equal(options_check_etcd(&s, &err), 0);
	}
	s.endpoints = "http://10.0.0.1:2379";
	s.user = s.password_file = "";
	assert_int_equal(options_check_etcd(&s, &err), 0);
}

/* --- the loader ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/roost-options-XXXXXX";

static void write_file(const char *name, const char *text, char *path)
{
	FILE *f;

	sprintf(path, "%s/%s", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int load(char *flag, char *path, struct told *t, struct err *err)
{
	char *argv[] = { (char *)(uintptr_t) "prog", flag, path };
	enum options_verb verb;

	return options_load(&table, flag ? 3 : 1, argv, NULL, t, &verb, err);
}

static void the_named_file_is_read_and_must_be_there(void **unused)
{
	AUTO(told_done) struct told t = { 0 };
	char path[128], missing[] = "/tmp/roost-no-such-file", flag[] = "--config";
	struct err err = { "" };

	write_file("good.json", "{\"workers\": 11} // yes", path);
	assert_int_equal(load(flag, path, &t, &err), 0);
	assert_int_equal(t.workers, 11);
	options_done(&table, &t);

	assert_int_equal(load(flag, missing, &t, &err), -ENOENT);
	assert_string_equal(err.text, "/tmp/roost-no-such-file: No such file or directory");
	assert_int_equal(load(flag, folder, &t, &err), -EINVAL);

	write_file("bad.json", "{\"workers\": 111}", path);
	assert_int_equal(load(flag, path, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bad.json: field \"workers\""));
}

static void the_usual_file_may_be_missing(void **unused)
{
	AUTO(told_done) struct told t = { 0 };
	struct err err = { "" };

	assert_int_equal(load(NULL, NULL, &t, &err), 0);
	assert_int_equal(t.workers, 4);
}

/* --- a tool with verbs ---------------------------------------------------------------------- */

struct tool {
	struct option_words words;
	const char *output, *config;
	uint32_t yes;
};
static const struct option_def tool_defs[] = {
	{ OPTION(tool, output, "output", TEXT), .letter = 'o', .argument = "FORMAT",
	  .help = "how" },
	{ OPTION(tool, config, "config", PATH), .argument = "FILE", .help = "the file",
	  .not_in_file = true },
	{ OPTION(tool, yes, "yes", FLAG), .letter = 'y', .only_flag = true, .help = "do not ask" },
};
static const struct option_table tool_table = {
	.program = "tool",
	.about = "A tool.",
	.config_path = "/nowhere/tool.json",
	.defs = tool_defs,
	.n = ARRAY_SIZE(tool_defs),
	.size = sizeof(struct tool),
	.takes_words = true,
	.borrowed_file = true,
};

static void tool_done_auto(struct tool *t)
{
	options_done(&tool_table, t);
}

/* The words with a '|' behind each, then the output. */
#define TOOL(want_verb, want, ...)                                                                 \
	do {                                                                                       \
		AUTO(tool_done) struct tool t_ = { 0 };                                            \
		const struct option_sources from_ = { __VA_ARGS__ };                               \
		enum options_verb verb_;                                                           \
		struct err err_ = { "" };                                                          \
		char got_[128] = "";                                                               \
		if (options_parse(&tool_table, &from_, &t_, &verb_, &err_) < 0)                    \
			fail_msg("%s", err_.text);                                                 \
		assert_int_equal(verb_, want_verb);                                                \
		for (size_t i_ = 0; i_ < t_.words.n; i_++)                                         \
			strcat(strcat(got_, t_.words.v[i_]), "|");                                 \
		strcat(strcat(got_, t_.output ?: "none"), t_.yes ? "!" : "");                      \
		assert_string_equal(got_, want);                                                   \
	} while (0)

static void words_stand_before_between_and_behind_flags(void **unused)
{
	TOOL(OPTIONS_RUN, "pool|list|", FLAGS("pool", "list"));
	TOOL(OPTIONS_RUN, "pool|list|json", FLAGS("-o", "json", "pool", "list"));
	TOOL(OPTIONS_RUN, "pool|x|json!", FLAGS("pool", "-y", "x", "-ojson"));
	TOOL(OPTIONS_RUN, "pool|json!", FLAGS("pool", "--yes", "--output=json"));
	TOOL(OPTIONS_RUN, "apply|-|", FLAGS("apply", "-"));
	TOOL(OPTIONS_RUN, "a|--yes|--help|", FLAGS("a", "--", "--yes", "--help"));
	TOOL(OPTIONS_HELP, "pool|none", FLAGS("pool", "--frobnicate", "--help", "list"));
	TOOL(OPTIONS_HELP, "pool|list|none", FLAGS("-o", "x", "pool", "list", "-h"));
}

static void what_is_only_a_flag_is_nothing_in_file_and_environment(void **unused)
{
	TOOL(OPTIONS_RUN, "", NO_FLAGS, ENV("ROOST_YES=yes"));
	/* A file that is another program's may have fields of any kind. */
	TOOL(OPTIONS_RUN, "json", NO_FLAGS,
	     FILE_TEXT("{\"yes\":true,\"x\":1,\"output\":\"json\"}"));
}

static void a_tools_unknown_flag_is_refused_too(void **unused)
{
	const struct option_sources from = { FLAGS("pool", "-x") };
	AUTO(tool_done) struct tool t = { 0 };
	enum options_verb verb;
	struct err err = { "" };

	assert_int_equal(options_parse(&tool_table, &from, &t, &verb, &err), -EINVAL);
	assert_string_equal(err.text, "unknown flag \"-x\", see --help");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_stand_before_between_and_behind_flags),
		cmocka_unit_test(what_is_only_a_flag_is_nothing_in_file_and_environment),
		cmocka_unit_test(a_tools_unknown_flag_is_refused_too),
		cmocka_unit_test(nothing_given_means_the_defaults),
		cmocka_unit_test(a_flag_goes_before_the_environment_and_that_before_the_file),
		cmocka_unit_test(
			a_flag_takes_its_value_from_the_next_word_or_behind_an_equals_sign),
		cmocka_unit_test(a_flag_that_takes_no_value_leaves_the_next_word_alone),
		cmocka_unit_test(the_last_of_equal_flags_wins),
		cmocka_unit_test(an_empty_variable_counts_as_unset),
		cmocka_unit_test(variables_that_are_not_ours_are_ignored),
		cmocka_unit_test(the_file_may_have_comments_of_both_kinds),
		cmocka_unit_test(a_quote_inside_a_string_does_not_end_it),
		cmocka_unit_test(a_null_in_the_file_counts_as_absent),
		cmocka_unit_test(an_unknown_flag_is_refused_with_the_nearest_one),
		cmocka_unit_test(a_word_that_is_no_flag_is_refused),
		cmocka_unit_test(a_flag_without_its_value_is_refused),
		cmocka_unit_test(a_wrong_value_is_refused_with_its_source_and_the_rule),
		cmocka_unit_test(a_wrong_value_is_refused_even_if_another_overrules_it),
		cmocka_unit_test(what_is_wrong_in_the_file_is_told_with_its_place),
		cmocka_unit_test(help_and_version_are_answered_whatever_else_is_said),
		cmocka_unit_test(a_value_that_looks_like_a_question_is_a_value),
		cmocka_unit_test(the_help_names_each_flag_with_variable_field_and_default),
		cmocka_unit_test(two_readings_differ_where_they_differ),
		cmocka_unit_test(halves_of_a_pair_are_refused),
		cmocka_unit_test(a_password_goes_nowhere_in_clear_text),
		cmocka_unit_test(the_named_file_is_read_and_must_be_there),
		cmocka_unit_test(the_usual_file_may_be_missing),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) == 0 ? failed : 1;
}
