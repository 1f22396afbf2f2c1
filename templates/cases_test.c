/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every case: records (cases/NAME.json) -> plan -> templates -> cases/NAME.expect, which every
 * BIRD at hand accepts. ROOST_UPDATE_CASES=1 writes the expected texts anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/bird/desired_bird_world.h"
#include "confd/mustache/mustache.h"

#define FOLDER "templates/"

static const char *birds[8];
static size_t n_birds;

/* --- files and programs --------------------------------------------------------------------- */

static char *read_all(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t len = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &len, '\0', f) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(f);
	if (ret_len)
		*ret_len = strlen(text);
	return text;
}

static void write_all(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int load(const char *name, char **ret_text, size_t *ret_len, void *arg, struct err *err)
{
	char path[256];

	snprintf(path, sizeof(path), FOLDER "%s.mustache", name);
	*ret_text = read_all(path, ret_len);
	return *ret_text ? 0 : err_set(err, -ENOENT, "%s: %m", path);
}

static char *render(struct json_object *tree)
{
	AUTO(mustache_set_free) struct mustache_set *set = NULL;
	const struct mustache_options options = { .strict = true };
	struct err err = { "" };
	char *text = NULL;
	size_t len;

	assert_int_equal(mustache_set_new(load, NULL, &set), 0);
	if (mustache_render(set, "bird.conf", tree, &options, &text, &len, &err) < 0)
		fail_msg("%s", err.text);
	return text;
}

/* bird -p on a file of its own, so that tests may run side by side. */
static void bird_accepts(const char *bird, const char *text)
{
	char path[] = "/tmp/roost-case-XXXXXX", command[512], line[512] = "", more[512];
	int fd = mkstemp(path), status;
	FILE *f;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(command, sizeof(command), "%s -p -c %s 2>&1", bird, path);
	f = popen(command, "re"); // NOLINT(cert-env33-c): both parts are ours
	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	/* A second warning to a closed pipe would end it. */
	while (fgets(more, sizeof(more), f))
		;
	status = pclose(f);
	unlink(path);
	if (status != 0)
		fail_msg("%s refuses: %s\n%s", bird, line, text);
}

static void all_accept(const char *text)
{
	for (size_t i = 0; i < n_birds; i++)
		bird_accepts(birds[i], text);
}

/* The installed one, and what .ci/bird-versions unpacked. */
static int find_birds(void **unused)
{
	static const char *const places[] = { "/usr/sbin/bird",
					      "build/bird-versions/2.17/usr/sbin/bird",
					      "build/bird-versions/3.1/usr/sbin/bird" };
	const char *more = getenv("ROOST_BIRDS");

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			birds[n_birds++] = places[i];
	if (more) {
		char *list = strdup(more);

		for (char *p = strtok(list, " "); p && n_birds < ARRAY_SIZE(birds);
		     p = strtok(NULL, " "))
			birds[n_birds++] = p;
	}
	assert_true(n_birds > 0);
	return 0;
}

/* --- cases ---------------------------------------------------------------------------------- */

static void check_problems(struct world *w, const struct bird_plan *plan)
{
	AUTO(free) char *got = world_problems(plan);
	struct json_object *list = world_get(w, "problems");
	char want[4096] = "";

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		size_t n = strlen(want);

		snprintf(want + n, sizeof(want) - n, "%s\n",
			 json_object_get_string(json_object_array_get_idx(list, i)));
	}
	assert_string_equal(got, want);
}

static void check_text(const char *case_path, const char *text)
{
	AUTO(free) char *want = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%.*s.expect", (int)(strlen(case_path) - strlen(".json")),
		 case_path);
	if (getenv("ROOST_UPDATE_CASES"))
		write_all(path, text);
	want = read_all(path, NULL);
	if (!want)
		fail_msg("there is no %s", path);
	assert_string_equal(text, want);
}

/* What BIRD is told to run is what is compared with `show protocols` later. */
static void check_protocols(const struct bird_plan *plan, const char *text)
{
	size_t told = 0;

	for (const char *p = text; (p = strstr(p, "\nprotocol ")); p++)
		told++;
	assert_int_equal(told, plan->n_protocols);
	for (size_t i = 0; i < plan->n_protocols; i++) {
		char name[BIRD_NAME_TEXT + 2];

		snprintf(name, sizeof(name), " %s ", plan->protocols[i].name);
		if (!strstr(text, name))
			fail_msg("no protocol%sin the text", name);
	}
}

static void one_case(const char *path)
{
	AUTO(free) char *json = read_all(path, NULL), *text = NULL;
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct world w;

	print_message("%s\n", path);
	world_make(&w, json);
	assert_string_equal(w.refused, "");
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	text = render(plan.tree);
	check_text(path, text);
	check_problems(&w, &plan);
	check_protocols(&plan, text);
	if (!w.in.version)
		all_accept(text);
	world_done(&w);
}

static void every_case_renders_as_expected_and_bird_accepts_it(void **unused)
{
	glob_t found;

	assert_int_equal(glob(FOLDER "cases/*.json", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 16);
	for (size_t i = 0; i < found.gl_pathc; i++)
		one_case(found.gl_pathv[i]);
	print_message("%zu cases, %zu BIRDs\n", found.gl_pathc, n_birds);
	globfree(&found);
}

/* --- a thousand peers ----------------------------------------------------------------------- */

static char *thousand(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fputs("{\"self\":\"n0\",\"records\":{\"extent/default/web\":"
	      "{\"cidr\":\"10.244.0.0/16\",\"blockSize\":26}",
	      f);
	for (int i = 0; i <= 1000; i++)
		fprintf(f, ",\"node/n%d\":{\"ipv4\":\"10.0.%d.%d/16\"}", i, i / 250, 1 + i % 250);
	fputs("}}", f);
	fclose(f);
	return text;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others work here too */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_thousand_peers_are_planned_and_rendered(void **unused)
{
	AUTO(free) char *json = thousand(), *text = NULL;
	AUTO_DONE(bird_plan_done) struct bird_plan plan = { 0 };
	struct world w;
	double start, planned;

	world_make(&w, json);
	start = seconds();
	assert_int_equal(desired_bird(&w.in, &plan), 0);
	planned = seconds();
	text = render(plan.tree);
	print_message("1000 peers: plan %.2f ms, render with parsing %.2f ms, %zu bytes\n",
		      (planned - start) * 1e3, (seconds() - planned) * 1e3, strlen(text));
	assert_int_equal(plan.n_sessions, 1000);
	all_accept(text);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_renders_as_expected_and_bird_accepts_it),
		cmocka_unit_test(a_thousand_peers_are_planned_and_rendered),
	};

	return cmocka_run_group_tests(tests, find_birds, NULL);
}
