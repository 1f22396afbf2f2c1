/* SPDX-License-Identifier: Apache-2.0 */
/* Real files in a folder of their own, real children, a real loop. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "confd/command.h"
#include "confd/pace.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"

struct world {
	sd_event *event;
	int dir;
	char folder[32], path[48];
	struct publish_options o;
	struct publish *publish;
	struct command_text check_text, reload_text;
	struct command *check, *reload;
	char told[1024];
	unsigned n_told;
	const char *next; /* what render() gives */
	char text[1024];
};

static struct world world;

static void on_told(const struct publish_outcome *outcome, void *arg)
{
	struct world *w = arg;

	snprintf(w->told, sizeof(w->told), "%s%s%s", publish_result_name(outcome->result),
		 outcome->reason.text[0] ? ": " : "", outcome->reason.text);
	assert_int_equal(time_check(outcome->when, NULL), 0);
	assert_int_equal(publish_last(w->publish)->result, outcome->result);
	w->n_told++;
}

static int render(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	struct world *w = arg;

	if (!w->next)
		return err_set(err, -EINVAL, "no data");
	*ret = strdup(w->next);
	*ret_len = strlen(w->next);
	return *ret ? 0 : -ENOMEM;
}

/* The newest text is the one that counts. */
static void change_to(struct world *w, const char *text)
{
	snprintf(w->text, sizeof(w->text), "%s", text);
	w->next = w->text;
	publish_changed(w->publish);
}

static int set_up(void **state)
{
	struct world *w = &world;

	*w = (struct world){ .folder = "/tmp/roost-publish-XXXXXX" };
	*state = w;
	if (!mkdtemp(w->folder))
		return -1;
	w->dir = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	strcat(strcpy(w->path, w->folder), "/out.conf");
	w->o = (struct publish_options){
		.target = { w->path, 0640, (uid_t)-1, (gid_t)-1 },
		.render = render,
		.told = on_told,
		.arg = w,
	};
	return w->dir < 0 || sd_event_new(&w->event) < 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char line[128];

	publish_free(w->publish);
	command_free(w->check);
	command_free(w->reload);
	sd_event_unref(w->event);
	close(w->dir);
	snprintf(line, sizeof(line), "rm -r %s", w->folder);
	return system(line);
}

/* Lines for the shell run in the folder; NULL: no such step. */
static void open_publish(struct world *w, const char *check, const char *reload)
{
	w->o.event = w->event;
	if (check) {
		w->check_text.line = check;
		assert_int_equal(command_new(w->event, &w->check_text, 0, &w->check), 0);
		w->o.check = command_step(w->check);
	}
	if (reload) {
		w->reload_text.line = reload;
		assert_int_equal(command_new(w->event, &w->reload_text, 0, &w->reload), 0);
		w->o.reload = command_step(w->reload);
	}
	assert_int_equal(publish_new(&w->o, &w->publish), 0);
}

static void turn_until_told(struct world *w, unsigned n)
{
	uint64_t end = clock_monotonic_us() + 60000000;

	while (w->n_told < n && clock_monotonic_us() < end)
		assert_true(sd_event_run(w->event, 1000000) >= 0);
	assert_int_equal(w->n_told, n);
}

static void put(struct world *w, const char *text)
{
	change_to(w, text);
	turn_until_told(w, w->n_told + 1);
}

static void write_file(struct world *w, const char *name, const char *text, mode_t mode)
{
	int fd = openat(w->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void expect_file(struct world *w, const char *name, const char *want)
{
	AUTO(free) char *text = NULL;
	int r = file_read(w->dir, name, 1 << 20, &text, NULL);

	if (!want) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	assert_int_equal(r, 0);
	assert_string_equal(text, want);
}

static void expect_mode(struct world *w, const char *name, mode_t mode)
{
	struct stat st;

	assert_int_equal(fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

static int count(int dir, const char *name, void *arg)
{
	++*(int *)arg;
	return 0;
}

/* Nothing but these: neither candidates nor previous ones. */
static void expect_left(struct world *w, int visible)
{
	int n = 0;

	assert_int_equal(dir_each(w->dir, count, &n), 0);
	assert_int_equal(n, visible);
	expect_file(w, ".out.conf.new", NULL);
	expect_file(w, ".out.conf.previous", NULL);
}

/* A line that names the folder; lives until the next call. */
static const char *line(const struct world *w, const char *fmt)
{
	static char lines[2][512];
	static int at;

	at = !at;
	snprintf(lines[at], sizeof(lines[at]), "cd %s && %s", w->folder, fmt);
	return lines[at];
}

/* --- the plain way -------------------------------------------------------------------------- */

static void a_text_becomes_a_file_of_the_mode_asked_for(void **state)
{
	struct world *w = *state;

	open_publish(w, NULL, NULL);
	put(w, "hello\n");
	assert_string_equal(w->told, "published");
	expect_file(w, "out.conf", "hello\n");
	expect_mode(w, "out.conf", 0640);
	expect_left(w, 1);
}

static void the_owner_is_set(void **state)
{
	struct world *w = *state;
	struct stat st;

	if (geteuid() != 0)
		skip();
	w->o.target.uid = 65534;
	w->o.target.gid = 65533;
	w->o.target.mode = 02640;
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_int_equal(fstatat(w->dir, "out.conf", &st, 0), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 65533);
	assert_int_equal(st.st_mode & 07777, 02640);
	put(w, "x");
	assert_string_equal(w->told, "unchanged");
}

static void equal_output_is_no_reload(void **state)
{
	struct world *w = *state;

	open_publish(w, NULL, line(w, "echo r >> log"));
	put(w, "a");
	put(w, "a");
	assert_string_equal(w->told, "unchanged");
	put(w, "b");
	put(w, "b");
	expect_file(w, "log", "r\nr\n");
	expect_left(w, 2);
}

static void another_mode_or_owner_is_a_difference(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "a", 0644);
	open_publish(w, NULL, NULL);
	put(w, "a");
	assert_string_equal(w->told, "published");
	expect_mode(w, "out.conf", 0640);
}

static void a_reload_can_be_asked_for(void **state)
{
	struct world *w = *state;

	open_publish(w, NULL, line(w, "echo r >> log"));
	put(w, "a");
	publish_reload(w->publish);
	turn_until_told(w, 2);
	assert_string_equal(w->told, "published");
	expect_file(w, "log", "r\nr\n");
}

/* --- check ---------------------------------------------------------------------------------- */

static void the_check_sees_the_candidate_beside_the_target(void **state)
{
	struct world *w = *state;
	char want[128];

	open_publish(w,
		     line(w, "echo {} > seen && cat {} >> seen && ls out.conf 2>/dev/null; true"),
		     NULL);
	put(w, "text\n");
	assert_string_equal(w->told, "published");
	snprintf(want, sizeof(want), "%s/.out.conf.new\ntext\n", w->folder);
	expect_file(w, "seen", want);
	expect_left(w, 2);
}

static void a_check_that_refuses_leaves_the_old_file_and_says_why(void **state)
{
	struct world *w = *state;

	open_publish(w, line(w, "! grep -n bad {}"), line(w, "echo r >> log"));
	put(w, "good\n");
	put(w, "good\nbad\n");
	assert_string_equal(w->told, "refused: exit 1: 2:bad");
	expect_file(w, "out.conf", "good\n");
	expect_file(w, "log", "r\n");
	expect_left(w, 2);
	put(w, "better\n");
	assert_string_equal(w->told, "published");
	expect_file(w, "out.conf", "better\n");
}

static void a_check_that_cannot_be_run_refuses(void **state)
{
	struct world *w = *state;
	const char *words[] = { "/no/such/program", "{}" };

	w->check_text.words = (struct texts){ words, 2 };
	assert_int_equal(command_new(w->event, &w->check_text, 0, &w->check), 0);
	w->o.check = command_step(w->check);
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_string_equal(w->told, "refused: /no/such/program: No such file or directory");
	expect_left(w, 0);
}

static void a_check_that_hangs_is_ended(void **state)
{
	struct world *w = *state;

	w->check_text.line = "sleep 1000";
	assert_int_equal(command_new(w->event, &w->check_text, 100, &w->check), 0);
	w->o.check = command_step(w->check);
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_non_null(strstr(w->told, "refused: still running after"));
	expect_left(w, 0);
}

/* --- reload --------------------------------------------------------------------------------- */

static void a_refused_reload_puts_the_previous_file_back(void **state)
{
	struct world *w = *state;

	open_publish(w, NULL,
		     line(w, "cat out.conf >> log; ! grep -q bad out.conf || "
			     "{ echo cannot; exit 3; }"));
	put(w, "good\n");
	put(w, "bad\n");
	assert_string_equal(w->told, "not reloaded: exit 3: cannot");
	expect_file(w, "out.conf", "good\n");
	expect_mode(w, "out.conf", 0640);
	expect_file(w, "log", "good\nbad\n");
	expect_left(w, 2);
}

static void if_there_was_none_a_refused_reload_leaves_none(void **state)
{
	struct world *w = *state;

	open_publish(w, NULL, "exit 1");
	put(w, "x");
	assert_string_equal(w->told, "not reloaded: exit 1");
	expect_left(w, 0);
}

static void a_refused_reload_is_tried_again_where_that_is_asked_for(void **state)
{
	struct world *w = *state;

	w->o.retry_reload = true;
	open_publish(w, NULL, line(w, "[ -e works ]"));
	put(w, "x");
	assert_string_equal(w->told, "not reloaded: exit 1");
	turn_until_told(w, 2);
	assert_string_equal(w->told, "not reloaded: exit 1");
	expect_left(w, 0);
	assert_false(publish_busy(w->publish));
	write_file(w, "works", "", 0600);
	turn_until_told(w, 3);
	assert_string_equal(w->told, "published");
	expect_file(w, "out.conf", "x");

	/* Also one that was due although the file is the same. */
	assert_int_equal(unlinkat(w->dir, "works", 0), 0);
	publish_reload(w->publish);
	turn_until_told(w, 4);
	assert_string_equal(w->told, "not reloaded: exit 1");
	expect_file(w, "out.conf", "x");
	write_file(w, "works", "", 0600);
	turn_until_told(w, 5);
	assert_string_equal(w->told, "published");
}

static publish_answer_fn *pending;
static void *pending_arg;
static int cancelled;

static int start_nothing(const char *path, publish_answer_fn *answer, void *answer_arg, void *arg,
			 struct err *err)
{
	struct world *w = arg;

	assert_string_equal(path, w->path);
	pending = answer;
	pending_arg = answer_arg;
	return 0;
}

static void cancel_nothing(void *arg)
{
	cancelled++;
}

static void turn_until_asked(struct world *w)
{
	uint64_t end = clock_monotonic_us() + 60000000;

	while (!pending && clock_monotonic_us() < end)
		assert_true(sd_event_run(w->event, 1000000) >= 0);
	assert_non_null(pending);
}

static void begin_reload(struct world *w, const char *text)
{
	pending = NULL;
	w->o.reload = (struct publish_step){ start_nothing, cancel_nothing, w };
	if (!w->publish)
		open_publish(w, NULL, NULL);
	change_to(w, text);
	turn_until_asked(w);
}

static void where_nobody_listens_the_new_file_stays_and_is_reloaded_later(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "old", 0640);
	begin_reload(w, "new");
	pending(PUBLISH_NOBODY, "no daemon", pending_arg);
	assert_string_equal(w->told, "unheard: no daemon");
	expect_file(w, "out.conf", "new");
	/* Equal now, but nobody has heard of it. */
	begin_reload(w, "new");
	pending(PUBLISH_REJECTED, "no", pending_arg);
	assert_string_equal(w->told, "not reloaded: no");
	expect_file(w, "out.conf", "old");
	expect_left(w, 1);
}

static void an_interrupted_reload_is_done_again_by_the_next_start(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "old", 0640);
	cancelled = 0;
	begin_reload(w, "new");
	publish_free(TAKE(w->publish));
	assert_int_equal(cancelled, 1);
	expect_file(w, "out.conf", "new");
	begin_reload(w, "new");
	pending(PUBLISH_ACCEPTED, "", pending_arg);
	assert_string_equal(w->told, "published");
	expect_left(w, 1);
}

/* What is put back is the last that went well, not the last that was tried. */
static void after_an_interrupted_reload_the_one_before_is_put_back(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "good", 0640);
	begin_reload(w, "unknown");
	publish_free(TAKE(w->publish));
	begin_reload(w, "bad");
	expect_file(w, "out.conf", "bad");
	pending(PUBLISH_REJECTED, "no", pending_arg);
	expect_file(w, "out.conf", "good");
	expect_left(w, 1);
}

static void a_refused_reload_without_a_new_file_puts_nothing_back(void **state)
{
	struct world *w = *state;

	begin_reload(w, "x");
	pending(PUBLISH_ACCEPTED, "", pending_arg);
	pending = NULL;
	publish_reload(w->publish);
	turn_until_asked(w);
	pending(PUBLISH_REJECTED, "no", pending_arg);
	assert_string_equal(w->told, "not reloaded: no");
	expect_file(w, "out.conf", "x");
}

/* --- one at a time -------------------------------------------------------------------------- */

static void a_newer_text_waits_and_replaces_older_ones_that_wait(void **state)
{
	struct world *w = *state;

	begin_reload(w, "1");
	change_to(w, "2");
	change_to(w, "3");
	expect_file(w, "out.conf", "1");
	assert_true(publish_busy(w->publish));
	publish_answer_fn *first = TAKE(pending);

	first(PUBLISH_ACCEPTED, "", pending_arg);
	turn_until_asked(w);
	expect_file(w, "out.conf", "3");
	pending(PUBLISH_ACCEPTED, "", pending_arg);
	assert_int_equal(w->n_told, 2);
	assert_false(publish_busy(w->publish));
}

static void a_burst_is_few_publications_and_the_last_state_wins(void **state)
{
	struct world *w = *state;
	uint64_t began = clock_monotonic_us(), now = began;
	unsigned allowed, n = 0;
	char text[32];

	open_publish(w, NULL, line(w, "echo r >> log"));
	/* Until at least the third is out, however slow the machine. */
	for (; w->n_told < 3; now = clock_monotonic_us()) {
		snprintf(text, sizeof(text), "%u", ++n);
		change_to(w, text);
		assert_true(sd_event_run(w->event, 100) >= 0);
		assert_true(now - began < 60000000);
	}
	allowed = 1 + (unsigned)((now - began) / PACE_PUBLISHED_US);
	assert_in_range(w->n_told, 3, allowed);
	while (publish_busy(w->publish))
		assert_true(sd_event_run(w->event, 1000000) >= 0);
	expect_file(w, "out.conf", text);
}

static void a_rendering_that_fails_leaves_the_file_and_says_why(void **state)
{
	struct world *w = *state;

	w->next = "x";
	open_publish(w, NULL, NULL);
	publish_changed(w->publish);
	publish_changed(w->publish);
	turn_until_told(w, 1);
	expect_file(w, "out.conf", "x");
	w->next = NULL;
	publish_changed(w->publish);
	turn_until_told(w, 2);
	assert_string_equal(w->told, "unrendered: no data");
	expect_file(w, "out.conf", "x");
}

/* --- what is in the way --------------------------------------------------------------------- */

static int render_and_change(char **ret, size_t *ret_len, void *arg, struct err *err)
{
	struct world *w = arg;

	if (w->n_told == 0 && w->next[0] == 'a') {
		w->next = "b\n";
		publish_changed(w->publish);
		*ret = strdup("a\n");
	} else {
		*ret = strdup(w->next);
	}
	*ret_len = strlen(*ret);
	return 0;
}

/* The check is still under way when the time for the next one has come. */
static void what_changes_while_it_is_rendered_comes_after_it(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "before\n", 0640);
	w->o.render = render_and_change;
	w->next = "a\n";
	open_publish(w, "sleep 0.3", NULL);
	publish_changed(w->publish);
	turn_until_told(w, 1);
	expect_file(w, "out.conf", "a\n");
	turn_until_told(w, 2);
	expect_file(w, "out.conf", "b\n");
}

static void a_symbolic_link_is_left_alone(void **state)
{
	struct world *w = *state;

	write_file(w, "real", "r", 0644);
	assert_int_equal(symlinkat("real", w->dir, "out.conf"), 0);
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_non_null(strstr(w->told, "out.conf is a symbolic link and is not replaced"));
	expect_file(w, "real", "r");
}

static void what_is_no_regular_file_is_left_alone(void **state)
{
	struct world *w = *state;

	assert_int_equal(mkdirat(w->dir, "out.conf", 0700), 0);
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_non_null(strstr(w->told, "out.conf is not a regular file and is not replaced"));
}

static void a_missing_folder_is_told(void **state)
{
	struct world *w = *state;

	w->o.target.path = "/tmp/roost-no-such-folder/x";
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_string_equal(w->told, "unwritable: /tmp/roost-no-such-folder/x: its folder: No such "
				     "file or directory");
}

static void what_cannot_be_written_is_tried_again(void **state)
{
	struct world *w = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/later/x", w->folder);
	w->o.target.path = path;
	open_publish(w, NULL, line(w, "echo reloaded >> log"));
	publish_reload(w->publish);
	put(w, "x");
	turn_until_told(w, 2);
	assert_non_null(strstr(w->told, "unwritable: "));
	assert_false(publish_busy(w->publish));
	assert_int_equal(mkdirat(w->dir, "later", 0700), 0);
	turn_until_told(w, 3);
	assert_string_equal(w->told, "published");
	expect_file(w, "later/x", "x");
	expect_file(w, "log", "reloaded\n");
}

/* A symbolic link that somebody put in the candidate's place is not followed. */
static void a_candidate_in_the_way_is_replaced(void **state)
{
	struct world *w = *state;

	write_file(w, "real", "r", 0644);
	assert_int_equal(symlinkat("real", w->dir, ".out.conf.new"), 0);
	open_publish(w, NULL, NULL);
	put(w, "x");
	assert_string_equal(w->told, "published");
	expect_file(w, "real", "r");
	expect_left(w, 2);
}

static bool is_foreign(const char *text, size_t len, void *arg)
{
	return len < 4 || memcmp(text, "ours", 4) != 0;
}

static void what_was_there_before_us_is_kept_once(void **state)
{
	struct world *w = *state;

	write_file(w, "out.conf", "theirs", 0604);
	w->o.is_foreign = is_foreign;
	open_publish(w, NULL, NULL);
	put(w, "ours 1");
	expect_file(w, "out.conf.before-roost", "theirs");
	expect_mode(w, "out.conf.before-roost", 0604);
	write_file(w, "out.conf", "edited by hand", 0640);
	put(w, "ours 2");
	assert_string_equal(w->told, "published");
	expect_file(w, "out.conf", "ours 2");
	expect_file(w, "out.conf.before-roost", "theirs");
	expect_left(w, 2);
}

static void if_it_cannot_be_kept_nothing_is_overwritten(void **state)
{
	struct world *w = *state;

	w->o.is_foreign = is_foreign;
	assert_int_equal(mkdirat(w->dir, "out.conf.before-roost", 0700), 0);
	write_file(w, "out.conf", "theirs", 0644);
	open_publish(w, NULL, NULL);
	put(w, "ours");
	assert_non_null(strstr(w->told,
			       "was not made by roost and is not replaced: it cannot be kept as "
			       "out.conf.before-roost: File exists"));
	expect_file(w, "out.conf", "theirs");
	expect_left(w, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_text_becomes_a_file_of_the_mode_asked_for),
		CASE(the_owner_is_set),
		CASE(equal_output_is_no_reload),
		CASE(another_mode_or_owner_is_a_difference),
		CASE(a_reload_can_be_asked_for),
		CASE(the_check_sees_the_candidate_beside_the_target),
		CASE(a_check_that_refuses_leaves_the_old_file_and_says_why),
		CASE(a_check_that_cannot_be_run_refuses),
		CASE(a_check_that_hangs_is_ended),
		CASE(a_refused_reload_puts_the_previous_file_back),
		CASE(if_there_was_none_a_refused_reload_leaves_none),
		CASE(a_refused_reload_is_tried_again_where_that_is_asked_for),
		CASE(where_nobody_listens_the_new_file_stays_and_is_reloaded_later),
		CASE(an_interrupted_reload_is_done_again_by_the_next_start),
		CASE(after_an_interrupted_reload_the_one_before_is_put_back),
		CASE(a_refused_reload_without_a_new_file_puts_nothing_back),
		CASE(a_newer_text_waits_and_replaces_older_ones_that_wait),
		CASE(a_burst_is_few_publications_and_the_last_state_wins),
		CASE(a_rendering_that_fails_leaves_the_file_and_says_why),
		CASE(what_changes_while_it_is_rendered_comes_after_it),
		CASE(a_symbolic_link_is_left_alone),
		CASE(what_is_no_regular_file_is_left_alone),
		CASE(a_missing_folder_is_told),
		CASE(what_cannot_be_written_is_tried_again),
		CASE(a_candidate_in_the_way_is_replaced),
		CASE(what_was_there_before_us_is_kept_once),
		CASE(if_it_cannot_be_kept_nothing_is_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
