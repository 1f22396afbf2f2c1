/* SPDX-License-Identifier: Apache-2.0 */
/* Real programs on a real loop. Time limits are against hangs alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/child.h"
#include "lib/base/clock.h"

static sd_event *event;
static struct child_result got;
static char output[70000];
static unsigned ends;

static void on_done(const struct child_result *result, void *arg)
{
	got = *result;
	assert_in_range(result->len, 0, sizeof(output) - 1);
	assert_int_equal(result->output[result->len], '\0');
	memcpy(output, result->output, result->len + 1);
	got.output = output;
	ends++;
}

static int set_up(void **state)
{
	got = (struct child_result){ 0 };
	output[0] = '\0';
	ends = 0;
	return sd_event_new(&event) < 0;
}

/* Nobody is left to be reaped. */
static int tear_down(void **state)
{
	sd_event_unref(event);
	return waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
}

static int start(const struct child_options *options, struct child **ret)
{
	struct child_options o = *options;

	o.on_done = on_done;
	return child_start(event, &o, ret);
}

static void run_to_the_end(const struct child_options *options)
{
	struct child *c = NULL;
	uint64_t limit = clock_monotonic_us() + 60000000;

	assert_int_equal(start(options, &c), 0);
	assert_int_equal(ends, 0);
	while (!ends) {
		assert_true(clock_monotonic_us() < limit);
		assert_true(sd_event_run(event, 1000000) >= 0);
	}
}

static void shell(const char *line)
{
	run_to_the_end(&(struct child_options){ .shell = line });
}

static void expect_sentence(int code, const char *sentence)
{
	struct err err = { "" };

	assert_int_equal(child_verdict(&got, &err), code);
	assert_string_equal(err.text, sentence);
}

static void an_exit_of_zero_is_success_and_the_words_are_kept(void **state)
{
	const char *argv[] = { "printf", "a\\nb\\n", NULL };
	char words[64];

	run_to_the_end(&(struct child_options){ .argv = argv });
	assert_int_equal(got.end, CHILD_EXITED);
	assert_int_equal(got.number, 0);
	assert_string_equal(output, "a\nb\n");
	assert_false(got.cut);
	expect_sentence(0, "");
	assert_string_equal(child_words(&got, words, sizeof(words)), "a; b");
}

static void both_outputs_are_heard(void **state)
{
	shell("echo one; echo two >&2; printf 'thr\\aee' >&2; exit 3");
	expect_sentence(-EINVAL, "exit 3: one; two; thr?ee");
}

static void silence_makes_a_sentence_too(void **state)
{
	shell("exit 1");
	expect_sentence(-EINVAL, "exit 1");
}

static void death_by_a_signal_is_told(void **state)
{
	shell("echo going; kill -SEGV $$");
	assert_int_equal(got.end, CHILD_SIGNALLED);
	assert_int_equal(got.number, SIGSEGV);
	expect_sentence(-EINVAL, "killed by SIGSEGV: going");
}

static void past_the_deadline_the_whole_group_is_killed(void **state)
{
	char folder[] = "/tmp/roost-child-XXXXXX", fifo[64];
	uint64_t limit = clock_monotonic_us() + 60000000;
	int fd;

	/* The grandchild holds the fifo open; when it is dead too, nobody does. */
	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	run_to_the_end(&(struct child_options){
		.folder = folder,
		.shell = "(trap '' TERM; echo x; sleep 1000) > fifo & echo waiting; wait",
		.timeout_ms = 2000 });
	assert_int_equal(got.end, CHILD_TIMED_OUT);
	expect_sentence(-ETIMEDOUT, "still running after 2 s: waiting");
	for (char byte; read(fd, &byte, 1) != 0;) {
		assert_true(clock_monotonic_us() < limit);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	close(fd);
	unlink(fifo);
	rmdir(folder);
}

static void what_stays_in_the_background_does_not_hold_us(void **state)
{
	int pid;

	shell("sleep 1000 & echo $!");
	assert_int_equal(got.number, 0);
	pid = atoi(output);
	assert_in_range(pid, 2, INT32_MAX);
	assert_int_equal(kill(pid, SIGKILL), 0);
}

static void of_much_output_the_end_is_kept(void **state)
{
	size_t n;

	shell("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890; i=$((i+1));"
	      "done; echo the reason; exit 1");
	assert_true(got.cut);
	n = strlen(output);
	assert_int_equal(n, CHILD_OUTPUT_MAX);
	assert_string_equal(output + n - strlen("890\nthe reason\n"), "890\nthe reason\n");

	ends = 0;
	run_to_the_end(&(struct child_options){ .shell = "printf 0123456789", .max_output = 4 });
	assert_string_equal(output, "6789");
	assert_true(got.cut);
}

static void it_starts_with_nothing_of_ours(void **state)
{
	int leak = open("/dev/null", O_RDONLY);
	sigset_t usr1;

	assert_true(leak > 2);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The descriptor of the folder that ls itself reads is the one after the standard three. */
	shell("ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0;"
	      "grep ^SigBlk /proc/self/status | tr -s '\\t' ' '; kill -PIPE $$");
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	close(leak);
	assert_string_equal(output, "0 1 2 3 /dev/null\nSigBlk: 0000000000000000\n");
	assert_int_equal(got.end, CHILD_SIGNALLED);
	assert_int_equal(got.number, SIGPIPE);
}

static void it_runs_in_its_folder(void **state)
{
	run_to_the_end(&(struct child_options){ .shell = "pwd", .folder = "/proc" });
	assert_string_equal(output, "/proc\n");
}

static int speak_of_nothing_of_ours(void *arg)
{
	char link[64] = "";
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	if (readlink("/proc/self/fd/0", link, sizeof(link) - 1) < 0 ||
	    fcntl(*(int *)arg, F_GETFD) >= 0 || sigismember(&blocked, SIGUSR1) ||
	    getpgid(0) != getpid())
		return 1;
	dprintf(STDOUT_FILENO, "out of %s, ", link);
	dprintf(STDERR_FILENO, "and %s", getcwd(link, sizeof(link)));
	*(int *)arg = -1; /* its own copy */
	return 7;
}

static int hang(void *arg)
{
	dprintf(STDOUT_FILENO, "hanging");
	return pause();
}

static void a_function_runs_in_a_process_of_its_own(void **state)
{
	int leak = open("/dev/null", O_RDONLY);
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	run_to_the_end(&(struct child_options){
		.run = speak_of_nothing_of_ours, .run_arg = &leak, .folder = "/proc" });
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	expect_sentence(-EINVAL, "exit 7: out of /dev/null, and /proc");
	assert_true(leak > 2);
	close(leak);
	ends = 0;
	run_to_the_end(&(struct child_options){ .run = hang, .timeout_ms = 1000 });
	expect_sentence(-ETIMEDOUT, "still running after 1 s: hanging");
}

static void what_cannot_be_run_is_told_at_once(void **state)
{
	const char *absent[] = { "/nonexistent/bird", NULL };
	const char *no_program[] = { "/etc/passwd", NULL };
	struct child *c = NULL;

	assert_int_equal(start(&(struct child_options){ .argv = absent }, &c), -ENOENT);
	assert_int_equal(start(&(struct child_options){ .argv = no_program }, &c), -EACCES);
	assert_int_equal(
		start(&(struct child_options){ .shell = "true", .folder = "/nonexistent" }, &c),
		-ENOENT);
	assert_null(c);
}

static void a_cancelled_one_is_dead_and_silent(void **state)
{
	struct child *c = NULL;

	assert_int_equal(start(&(struct child_options){ .shell = "sleep 1000" }, &c), 0);
	child_cancel(c);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(sd_event_run(event, 10000), 0);
	assert_int_equal(ends, 0);
	child_cancel(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_exit_of_zero_is_success_and_the_words_are_kept),
		CASE(both_outputs_are_heard),
		CASE(silence_makes_a_sentence_too),
		CASE(death_by_a_signal_is_told),
		CASE(past_the_deadline_the_whole_group_is_killed),
		CASE(what_stays_in_the_background_does_not_hold_us),
		CASE(of_much_output_the_end_is_kept),
		CASE(it_starts_with_nothing_of_ours),
		CASE(it_runs_in_its_folder),
		CASE(a_function_runs_in_a_process_of_its_own),
		CASE(what_cannot_be_run_is_told_at_once),
		CASE(a_cancelled_one_is_dead_and_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
