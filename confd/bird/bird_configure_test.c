/* SPDX-License-Identifier: Apache-2.0 */
/* One configure at a time, followed to its end, whatever BIRD says and does. */
#include "confd/bird/fake_bird.h"

static struct fake_bird fake;
static struct bird_control *control;
static unsigned outcomes, connects;
static char told[1024];

/* Polls until it is done, once before and once after our own. */
static unsigned busy_before, busy_after, configures;
static const char *answer; /* to configure */

static void on_connected(const struct bird_version *v, void *arg)
{
	connects++;
}

static void on_configured(enum bird_outcome outcome, const char *words, void *arg)
{
	size_t n = strlen(told);

	outcomes++;
	snprintf(told + n, sizeof(told) - n, "%s%s: %s|", (const char *)arg,
		 bird_outcome_name(outcome), words);
}

static void on_command(struct fake_bird *f, const char *command)
{
	unsigned *busy = configures ? &busy_after : &busy_before;

	if (strcmp(command, "configure") == 0) {
		/* The rule that all of this is about. */
		assert_int_equal(busy_before, 0);
		assert_int_equal(configures ? busy_after : 0, 0);
		configures++;
		fake_say(f, "0002-Reading configuration from /etc/bird/bird.conf\n", false);
		if (answer)
			fake_say(f, answer, true);
		return;
	}
	assert_string_equal(command, "configure status");
	if (*busy) {
		(*busy)--;
		fake_say(f, "0004-Reconfiguration in progress\n0000 \n", true);
	} else {
		fake_say(f, "0003-Daemon is up and running\n0000 \n", true);
	}
}

static int set_up(void **state)
{
	static const struct bird_control_handlers handlers = { .on_connected = on_connected };

	outcomes = connects = busy_before = busy_after = configures = 0;
	told[0] = '\0';
	answer = "0003 Reconfigured\n";
	fake_new(&fake);
	fake.on_command = on_command;
	fake_listen(&fake);
	assert_int_equal(bird_control_new(fake.event, fake.path, &handlers, NULL, &control), 0);
	RUN_UNTIL(&fake, connects == 1);
	return 0;
}

static int tear_down(void **state)
{
	bird_control_free(control);
	fake_free(&fake);
	return 0;
}

static void configure(char *who)
{
	assert_int_equal(bird_configure(control, on_configured, who), 0);
}

static char a[] = "a ", b[] = "b ", c[] = "c ";

static void a_good_file_is_done(void **state)
{
	configure(a);
	assert_int_equal(outcomes, 0);
	RUN_UNTIL(&fake, outcomes == 1);
	assert_string_equal(told, "a done: Reconfigured|");
	assert_string_equal(fake.heard, "configure status\nconfigure\n");
	/* And no timer is left. */
	run_for(&fake, 20);
	assert_int_equal(sd_event_run(fake.event, 300000), 0);
}

static void one_in_progress_is_followed_to_its_end(void **state)
{
	answer = "0004 Reconfiguration in progress\n";
	busy_after = 3;
	configure(a);
	RUN_UNTIL(&fake, outcomes == 1);
	assert_string_equal(told, "a done: Daemon is up and running|");
	assert_int_equal(busy_after, 0);
	assert_int_equal(fake.commands, 6);
}

static void one_that_was_queued_is_followed_too(void **state)
{
	answer = "0005 Reconfiguration already in progress, queueing new config\n";
	busy_after = 2;
	configure(a);
	RUN_UNTIL(&fake, outcomes == 1);
	assert_string_equal(told, "a done: Daemon is up and running|");
	assert_int_equal(busy_after, 0);
}

static void that_of_another_is_waited_for(void **state)
{
	busy_before = 3;
	configure(a);
	RUN_UNTIL(&fake, outcomes == 1);
	assert_string_equal(told, "a done: Reconfigured|");
	assert_int_equal(configures, 1);
}

static void a_refusal_has_the_words_of_bird(void **state)
{
	static const struct {
		const char *answer, *want;
	} cases[] = {
		{ "8002 /etc/bird/bird.conf:3:1 syntax error\n",
		  "a refused: /etc/bird/bird.conf:3:1 syntax error|" },
		{ "8007 Access denied\n", "a denied: Access denied|" },
		{ "0006 Reconfiguration ignored, shutting down\n",
		  "a shutdown: Reconfiguration ignored, shutting down|" },
		{ "9001 syntax error\n", "a refused: syntax error|" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		told[0] = '\0';
		answer = cases[i].answer;
		configure(a);
		RUN_UNTIL(&fake, outcomes == i + 1);
		assert_string_equal(told, cases[i].want);
	}
}

static void those_asked_for_meanwhile_share_one_more(void **state)
{
	answer = "0004 Reconfiguration in progress\n";
	busy_after = 2;
	configure(a);
	RUN_UNTIL(&fake, configures == 1);
	configure(b);
	configure(c);
	RUN_UNTIL(&fake, outcomes == 3);
	assert_string_equal(told, "a done: Daemon is up and running|"
				  "b done: Daemon is up and running|"
				  "c done: Daemon is up and running|");
	assert_int_equal(configures, 2);
}

static void one_asked_for_while_bird_reads_comes_after(void **state)
{
	answer = NULL;
	configure(a);
	RUN_UNTIL(&fake, configures == 1);
	configure(b);
	run_for(&fake, 50);
	assert_string_equal(fake.heard, "configure status\nconfigure\n");
	answer = "0003 Reconfigured\n";
	fake_say(&fake, answer, true);
	RUN_UNTIL(&fake, outcomes == 2);
	run_for(&fake, 50);
	assert_string_equal(fake.heard, "configure status\nconfigure\n"
					"configure status\nconfigure\n");
	assert_string_equal(told, "a done: Reconfigured|b done: Reconfigured|");
}

static void three_at_once_are_one(void **state)
{
	configure(a);
	configure(b);
	configure(c);
	RUN_UNTIL(&fake, outcomes == 3);
	assert_int_equal(configures, 1);
}

static void on_configured_again(enum bird_outcome outcome, const char *words, void *arg)
{
	on_configured(outcome, words, arg);
	if (outcomes < 3)
		assert_int_equal(bird_configure(control, on_configured_again, arg), 0);
}

static void another_may_be_asked_for_from_the_outcome(void **state)
{
	assert_int_equal(bird_configure(control, on_configured_again, a), 0);
	RUN_UNTIL(&fake, outcomes == 3);
	assert_int_equal(configures, 3);
}

static void a_loss_while_bird_reads_is_told(void **state)
{
	answer = NULL;
	configure(a);
	RUN_UNTIL(&fake, configures == 1);
	configure(b);
	fake_hang_up(&fake);
	RUN_UNTIL(&fake, outcomes == 2);
	assert_string_equal(told, "a lost: BIRD closed the connection: it stopped or crashed|"
				  "b lost: BIRD closed the connection: it stopped or crashed|");
	assert_int_equal(bird_configure(control, on_configured, a), -ENOTCONN);
	/* And it works again afterwards. */
	RUN_UNTIL(&fake, connects == 2);
	answer = "0003 Reconfigured\n";
	configure(c);
	RUN_UNTIL(&fake, outcomes == 3);
}

static void a_loss_between_two_polls_is_told(void **state)
{
	answer = "0004 Reconfiguration in progress\n";
	busy_after = 1000;
	configure(a);
	RUN_UNTIL(&fake, busy_after == 995);
	fake_hang_up(&fake);
	RUN_UNTIL(&fake, outcomes == 1);
	assert_string_equal(told, "a lost: BIRD closed the connection: it stopped or crashed|");
}

static void the_end_drops_what_is_under_way(void **state)
{
	answer = "0004 Reconfiguration in progress\n";
	busy_after = 1000;
	configure(a);
	RUN_UNTIL(&fake, configures == 1);
	configure(b);
	bird_control_free(control);
	control = NULL;
	run_for(&fake, 50);
	assert_int_equal(outcomes, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_good_file_is_done),
		CASE(one_in_progress_is_followed_to_its_end),
		CASE(one_that_was_queued_is_followed_too),
		CASE(that_of_another_is_waited_for),
		CASE(a_refusal_has_the_words_of_bird),
		CASE(those_asked_for_meanwhile_share_one_more),
		CASE(one_asked_for_while_bird_reads_comes_after),
		CASE(three_at_once_are_one),
		CASE(another_may_be_asked_for_from_the_outcome),
		CASE(a_loss_while_bird_reads_is_told),
		CASE(a_loss_between_two_polls_is_told),
		CASE(the_end_drops_what_is_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
