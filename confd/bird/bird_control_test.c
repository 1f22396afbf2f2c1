/* SPDX-License-Identifier: Apache-2.0 */
/* Against a BIRD that misbehaves; the real ones are in the whole-system tests. */
/* Looks at its timer. */
#include "confd/bird/bird_control.c" /* NOLINT(bugprone-suspicious-include) */
#include "confd/bird/bird_show.h"
#include "confd/bird/fake_bird.h"

static struct fake_bird fake;
static struct bird_control *control;

static unsigned connects, disconnects, replies;
static char reason[512], said[4096];
static int last_err;
static struct bird_version version;

static void on_connected(const struct bird_version *v, void *arg)
{
	connects++;
	version = *v;
}

static void on_disconnected(const char *text, void *arg)
{
	disconnects++;
	snprintf(reason, sizeof(reason), "%s", text);
	/* Refused from here, so that nothing goes in circles. */
	assert_int_equal(bird_command(control, "show status", 0, NULL, NULL), -ENOTCONN);
}

static const struct bird_control_handlers handlers = { on_connected, on_disconnected };

/* "code text|" of each reply's last line, or "errno|". */
static void on_reply(int err, const struct bird_reply *reply, void *arg)
{
	size_t n = strlen(said);

	replies++;
	last_err = err;
	if (err)
		snprintf(said + n, sizeof(said) - n, "%s|", strerrorname_np(-err));
	else
		snprintf(said + n, sizeof(said) - n, "%04d %s|", reply->code, reply->text);
}

static int set_up(void **state)
{
	connects = disconnects = replies = 0;
	last_err = 0;
	reason[0] = said[0] = '\0';
	control = NULL;
	fake_new(&fake);
	return 0;
}

static int tear_down(void **state)
{
	bird_control_free(control);
	fake_free(&fake);
	return 0;
}

static void start(void)
{
	assert_int_equal(bird_control_new(fake.event, fake.path, &handlers, NULL, &control), 0);
}

static void start_connected(void)
{
	fake_listen(&fake);
	start();
	RUN_UNTIL(&fake, connects == 1);
}

static void ask(const char *command)
{
	assert_int_equal(bird_command(control, command, 0, on_reply, NULL), 0);
}

static void echo(struct fake_bird *f, const char *command)
{
	char bytes[BIRD_COMMAND_MAX + 8];

	snprintf(bytes, sizeof(bytes), "0000 %s\n", command);
	fake_say(f, bytes, true);
}

/* --- connecting ----------------------------------------------------------------------------- */

static void the_greeting_tells_the_version(void **state)
{
	fake.greeting = "0001 BIRD 3.1.7 ready.\n";
	start();
	assert_null(bird_control_version(control));
	assert_string_equal(bird_control_problem(control), "not connected to BIRD yet");
	assert_int_equal(bird_command(control, "show status", 0, on_reply, NULL), -ENOTCONN);
	fake_listen(&fake);
	RUN_UNTIL(&fake, connects == 1);
	assert_int_equal(version.major, 3);
	assert_int_equal(version.minor, 1);
	assert_int_equal(version.patch, 7);
	assert_int_equal(bird_control_version(control)->patch, 7);
	assert_string_equal(bird_control_problem(control), "");
	assert_int_equal(disconnects, 0);
}

static void a_missing_and_a_stale_socket_have_sentences_of_their_own(void **state)
{
	char want[512];

	start();
	RUN_UNTIL(&fake, disconnects == 1);
	snprintf(want, sizeof(want),
		 "%s does not exist: BIRD does not run, or its socket is elsewhere", fake.path);
	assert_string_equal(reason, want);
	assert_string_equal(bird_control_problem(control), want);

	fake_listen(&fake);
	fake_die(&fake);
	RUN_UNTIL(&fake, disconnects == 2);
	snprintf(want, sizeof(want), "%s has no listener: it is left over from a BIRD that crashed",
		 fake.path);
	assert_string_equal(reason, want);
	/* Told once, however often it is tried. */
	run_for(&fake, 400);
	assert_int_equal(disconnects, 2);
}

static void a_socket_that_appears_is_connected_to_at_once(void **state)
{
	uint64_t began;

	start();
	RUN_UNTIL(&fake, disconnects == 1);
	/* Long enough for a retry by time to be far away. */
	run_for(&fake, 300);
	fake_listen(&fake);
	began = clock_monotonic_us();
	RUN_UNTIL(&fake, connects == 1);
	/* By time alone it would be a minute. */
	assert_in_range(clock_monotonic_us() - began, 0, 20000000);
}

static void a_folder_that_comes_later_is_found(void **state)
{
	assert_int_equal(rmdir(fake.folder), 0);
	start();
	RUN_UNTIL(&fake, disconnects == 1);
	assert_int_equal(mkdir(fake.folder, 0700), 0);
	fake_listen(&fake);
	RUN_UNTIL(&fake, connects == 1);
}

static void a_folder_made_anew_is_watched_anew(void **state)
{
	start();
	RUN_UNTIL(&fake, disconnects == 1);
	run_for(&fake, 20);
	assert_int_equal(rmdir(fake.folder), 0);
	run_for(&fake, 20);
	assert_int_equal(mkdir(fake.folder, 0700), 0);
	fake_listen(&fake);
	RUN_UNTIL(&fake, connects == 1);
}

static void somebody_else_behind_the_socket_is_told(void **state)
{
	fake.greeting = "HTTP/1.1 400 Bad Request\n";
	fake_listen(&fake);
	start();
	RUN_UNTIL(&fake, fake.clients == 2);
	assert_int_equal(disconnects, 1);
	assert_non_null(strstr(reason, "an invalid reply"));

	fake.greeting = "0001 FRR ready.\n";
	RUN_UNTIL(&fake, disconnects == 2);
	assert_non_null(
		strstr(reason, "is not a control socket of BIRD: it sent \"0001 FRR ready.\""));
	fake.greeting = "0001 BIRD 2.17.5 ready.\n";
	RUN_UNTIL(&fake, connects == 1);
}

static void paths_that_cannot_be_are_refused(void **state)
{
	char long_path[200] = "/";

	memset(long_path + 1, 'x', sizeof(long_path) - 2);
	assert_int_equal(bird_control_new(fake.event, long_path, NULL, NULL, &control),
			 -ENAMETOOLONG);
	assert_int_equal(bird_control_new(fake.event, "bird.ctl", NULL, NULL, &control), -EINVAL);
	assert_null(control);
}

/* --- commands ------------------------------------------------------------------------------- */

static void commands_go_out_one_by_one_and_in_order(void **state)
{
	fake.on_command = echo;
	start_connected();
	ask("show a");
	ask("show b");
	ask("show c");
	RUN_UNTIL(&fake, replies == 3);
	assert_string_equal(said, "0000 show a|0000 show b|0000 show c|");
	assert_string_equal(fake.heard, "show a\nshow b\nshow c\n");
}

/* The fake itself insists on one command at a time. */
static void hundreds_of_commands_are_never_pipelined(void **state)
{
	fake.on_command = echo;
	start_connected();
	for (int i = 0; i < 300; i++)
		assert_int_equal(bird_command(control, "show x", 0, on_reply, NULL), 0);
	RUN_UNTIL(&fake, replies == 300);
	assert_int_equal(fake.commands, 300);
}

static void a_command_has_at_most_512_bytes_and_no_control_bytes(void **state)
{
	char command[BIRD_COMMAND_MAX + 2];

	fake.on_command = echo;
	start_connected();
	memset(command, 'x', sizeof(command));
	command[BIRD_COMMAND_MAX + 1] = '\0';
	assert_int_equal(bird_command(control, command, 0, on_reply, NULL), -E2BIG);
	command[BIRD_COMMAND_MAX] = '\0';
	ask(command);
	RUN_UNTIL(&fake, replies == 1);
	assert_int_equal(strlen(fake.heard), BIRD_COMMAND_MAX + 1);
	assert_int_equal(bird_command(control, "", 0, on_reply, NULL), -EINVAL);
	assert_int_equal(bird_command(control, "a\nb", 0, on_reply, NULL), -EINVAL);
	assert_int_equal(bird_command(control, "a\rb", 0, on_reply, NULL), -EINVAL);
}

static void a_reply_in_pieces_with_others_between_is_one(void **state)
{
	static const char bytes[] = "+Config timeout expired, starting undo\n1007-a\n b\n+x\n"
				    "0014 Total\n";
	char piece[2] = "";

	start_connected();
	fake_say(&fake, "+nobody asked\n", true);
	ask("show route count");
	RUN_UNTIL(&fake, fake.commands == 1);
	for (size_t i = 0; i < strlen(bytes); i++) {
		piece[0] = bytes[i];
		fake_say(&fake, piece, i + 1 == strlen(bytes));
		run_for(&fake, 1);
	}
	RUN_UNTIL(&fake, replies == 1);
	assert_string_equal(said, "0014 Total|");
	assert_int_equal(disconnects, 0);
}

static void ask_again(int err, const struct bird_reply *reply, void *arg)
{
	on_reply(err, reply, arg);
	if (!err && replies < 5)
		assert_int_equal(bird_command(control, "show again", 0, ask_again, NULL), 0);
}

static void commands_may_be_given_from_a_reply(void **state)
{
	fake.on_command = echo;
	start_connected();
	assert_int_equal(bird_command(control, "show first", 0, ask_again, NULL), 0);
	RUN_UNTIL(&fake, replies == 5);
}

static void a_loss_in_mid_reply_tells_everybody_and_mends_itself(void **state)
{
	start_connected();
	ask("show a");
	ask("show b");
	RUN_UNTIL(&fake, fake.commands == 1);
	fake_say(&fake, "1007-half a rep", false);
	run_for(&fake, 5);
	fake_hang_up(&fake);
	RUN_UNTIL(&fake, disconnects == 1);
	assert_string_equal(said, "ECONNRESET|ECONNRESET|");
	assert_string_equal(reason, "BIRD closed the connection: it stopped or crashed");
	RUN_UNTIL(&fake, connects == 2);
	/* Nothing of the half reply is left. */
	fake.on_command = echo;
	ask("show c");
	RUN_UNTIL(&fake, replies == 3);
	assert_string_equal(said, "ECONNRESET|ECONNRESET|0000 show c|");
}

static void silence_costs_the_connection(void **state)
{
	start_connected();
	assert_int_equal(bird_command(control, "show silence", 50, on_reply, NULL), 0);
	ask("show b");
	RUN_UNTIL(&fake, disconnects == 1);
	assert_string_equal(said, "ETIMEDOUT|ECONNRESET|");
	assert_string_equal(reason, "BIRD did not answer \"show silence\" within 0.05 s");
	RUN_UNTIL(&fake, connects == 2);
}

static void an_answer_that_nobody_asked_for_costs_it_too(void **state)
{
	start_connected();
	fake_say(&fake, "0000 surprise\n", true);
	RUN_UNTIL(&fake, disconnects == 1);
	assert_non_null(strstr(reason, "an unexpected reply: surprise"));
	RUN_UNTIL(&fake, connects == 2);
}

static void two_answers_to_one_command_cost_it(void **state)
{
	start_connected();
	ask("show a");
	RUN_UNTIL(&fake, fake.commands == 1);
	fake_say(&fake, "0000 one\n0000 two\n", true);
	RUN_UNTIL(&fake, disconnects == 1);
	assert_string_equal(said, "0000 one|");
}

static void bird_that_dies_and_comes_back_is_found(void **state)
{
	start_connected();
	for (unsigned i = 0; i < 3; i++) {
		fake_die(&fake);
		RUN_UNTIL(&fake, disconnects >= 2 * i + 2);
		assert_non_null(strstr(reason, "has no listener"));
		fake_listen(&fake);
		RUN_UNTIL(&fake, connects == i + 2);
	}
}

static void expect_no_timer(void)
{
	int enabled = SD_EVENT_ON;

	assert_true(sd_event_source_get_enabled(control->timer, &enabled) >= 0);
	assert_int_equal(enabled, SD_EVENT_OFF);
}

static void connected_and_idle_the_loop_is_not_woken(void **state)
{
	fake.on_command = echo;
	start_connected();
	expect_no_timer();
	ask("show a");
	RUN_UNTIL(&fake, replies == 1);
	expect_no_timer();
	run_for(&fake, 20);
	assert_int_equal(sd_event_run(fake.event, 400000), 0);
}

static void without_a_socket_the_loop_is_not_woken_either(void **state)
{
	start();
	RUN_UNTIL(&fake, disconnects == 1);
	run_for(&fake, 20);
	assert_int_equal(sd_event_run(fake.event, 400000), 0);
}

static void the_end_drops_what_is_under_way(void **state)
{
	start_connected();
	ask("show a");
	ask("show b");
	RUN_UNTIL(&fake, fake.commands == 1);
	bird_control_free(control);
	control = NULL;
	run_for(&fake, 5);
	assert_int_equal(replies, 0);
	assert_int_equal(disconnects, 0);
}

/* --- views ---------------------------------------------------------------------------------- */

static void on_answer(struct bird_answer *a, void *arg)
{
	size_t n = strlen(said);

	replies++;
	if (a->err)
		snprintf(said + n, sizeof(said) - n, "%s %s|", strerrorname_np(-a->err), a->words);
	else
		snprintf(said + n, sizeof(said) - n, "%zu|", a->counts.n);
}

static void show_counts(void)
{
	assert_int_equal(bird_show(control, BIRD_VIEW_ROUTE_COUNT, on_answer, NULL), 0);
	RUN_UNTIL(&fake, fake.busy);
}

static void a_view_is_read_or_told(void **state)
{
	start_connected();
	show_counts();
	fake_say(&fake, "1007-1 of 1 routes for 1 networks in table master4\n0000 \n", true);
	RUN_UNTIL(&fake, replies == 1);
	show_counts();
	fake_say(&fake, "8004 Stopped due to reconfiguration\n", true);
	RUN_UNTIL(&fake, replies == 2);
	show_counts();
	fake_say(&fake, "1007-lots\n0000 \n", true);
	RUN_UNTIL(&fake, replies == 3);
	show_counts();
	fake_hang_up(&fake);
	RUN_UNTIL(&fake, replies == 4);
	assert_string_equal(said, "1|EREMOTEIO Stopped due to reconfiguration|EBADMSG Bad message|"
				  "ECONNRESET BIRD closed the connection: it stopped or crashed|");
	assert_int_equal(bird_show(control, BIRD_VIEW_STATUS, on_answer, NULL), -ENOTCONN);
	RUN_UNTIL(&fake, connects == 2);
	/* Dropped with the control, and nothing leaks. */
	assert_int_equal(bird_show(control, BIRD_VIEW_STATUS, on_answer, NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_greeting_tells_the_version),
		CASE(a_missing_and_a_stale_socket_have_sentences_of_their_own),
		CASE(a_socket_that_appears_is_connected_to_at_once),
		CASE(a_folder_that_comes_later_is_found),
		CASE(a_folder_made_anew_is_watched_anew),
		CASE(somebody_else_behind_the_socket_is_told),
		CASE(paths_that_cannot_be_are_refused),
		CASE(commands_go_out_one_by_one_and_in_order),
		CASE(hundreds_of_commands_are_never_pipelined),
		CASE(a_command_has_at_most_512_bytes_and_no_control_bytes),
		CASE(a_reply_in_pieces_with_others_between_is_one),
		CASE(commands_may_be_given_from_a_reply),
		CASE(a_loss_in_mid_reply_tells_everybody_and_mends_itself),
		CASE(silence_costs_the_connection),
		CASE(an_answer_that_nobody_asked_for_costs_it_too),
		CASE(two_answers_to_one_command_cost_it),
		CASE(bird_that_dies_and_comes_back_is_found),
		CASE(connected_and_idle_the_loop_is_not_woken),
		CASE(without_a_socket_the_loop_is_not_woken_either),
		CASE(the_end_drops_what_is_under_way),
		CASE(a_view_is_read_or_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
