/* SPDX-License-Identifier: Apache-2.0 */
/* In a network namespace of its own making. */
#include "agent/kernel/reaper.h"

#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cni/pod_link.h"

static bool have_namespace;

#define need_namespace()                                                                           \
	do {                                                                                       \
		if (!have_namespace)                                                               \
			skip();                                                                    \
	} while (0)

PRINTF_LIKE(1, 2)
static void ip(const char *fmt, ...)
{
	char command[256] = "ip ";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command + 3, sizeof(command) - 3, fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static bool there(const char *name)
{
	return if_nametoindex(name) != 0;
}

static void make(const char *name, const char *peer, uint32_t group)
{
	ip("link add %s group %u type veth peer name %s", name, group, peer);
}

static void only_doomed_links_of_ours_go(void **unused)
{
	struct reaped reaped;

	need_namespace();
	make("roost0000000001", "a1", DOOMED_GROUP);
	make("roost0000000002", "a2", 0);
	make("stranger", "a3", DOOMED_GROUP);
	reap(&reaped);
	assert_int_equal(reaped.result, 0);
	assert_int_equal(reaped.destroyed, 1);
	assert_false(there("roost0000000001"));
	assert_true(there("roost0000000002"));
	assert_true(there("stranger"));
	ip("link del roost0000000002");
	ip("link del stranger");
}

/* Somebody uses the very number by which a group is deleted: then one by one. */
static void a_stranger_in_the_group_stays(void **unused)
{
	struct reaped reaped;

	need_namespace();
	make("roost0000000001", "a1", DOOMED_GROUP);
	make("roost0000000002", "a2", DOOMED_GROUP + 1);
	make("stranger", "a3", DOOMED_GROUP + 1);
	reap(&reaped);
	assert_int_equal(reaped.result, 0);
	assert_int_equal(reaped.destroyed, 2);
	assert_false(there("roost0000000001"));
	assert_false(there("roost0000000002"));
	assert_true(there("stranger"));
	ip("link del stranger");
}

static void many_go_in_several_rounds(void **unused)
{
	struct reaped reaped;
	unsigned destroyed = 0, rounds = 0;
	char name[IF_NAME_TEXT], peer[IF_NAME_TEXT];

	need_namespace();
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "roost%010x", (unsigned)i);
		snprintf(peer, sizeof(peer), "p%d", i);
		make(name, peer, DOOMED_GROUP);
	}
	do {
		reap(&reaped);
		assert_int_equal(reaped.result, 0);
		destroyed += reaped.destroyed;
		rounds++;
	} while (reaped.more);
	assert_int_equal(destroyed, 40);
	assert_true(rounds > 1);
	assert_false(there("roost0000000000"));
	assert_false(there("roost0000000027"));
}

/* --- the child ------------------------------------------------------------------------------ */

static uint64_t clock_ms;
static uint64_t now(const struct timers *t)
{
	return clock_ms;
}

static void wait_for(sd_event *event, const struct reaper *r, uint64_t destroyed)
{
	for (int i = 0; i < 600 && reaper_stats(r).destroyed < destroyed; i++)
		assert_true(sd_event_run(event, 100000) >= 0);
	assert_int_equal(reaper_stats(r).destroyed, destroyed);
}

static void the_child_works_for_its_agent_and_is_made_again(void **unused)
{
	AUTO(reaper_free) struct reaper *r = NULL;
	AUTO(health_free) struct health *health = NULL;
	struct timers timers = { .now = now };
	sd_event *event = NULL;

	need_namespace();
	assert_int_equal(health_new(NULL, NULL, &health), 0);
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(reaper_new(&r), 0);
	make("roost0000000001", "a1", DOOMED_GROUP);
	/* What was there before is found without being told. */
	assert_int_equal(reaper_start(r, event, &timers, health), 0);
	wait_for(event, r, 1);

	assert_int_equal(kill(reaper_pid(r), SIGKILL), 0);
	make("roost0000000002", "a2", DOOMED_GROUP);
	reaper_kick(r);
	wait_for(event, r, 2);
	assert_null(health_reason(health, "links"));

	/* In the middle of a request it is a problem until the next one is answered. */
	assert_int_equal(kill(reaper_pid(r), SIGSTOP), 0);
	make("roost0000000003", "a3", DOOMED_GROUP);
	reaper_kick(r);
	assert_int_equal(kill(reaper_pid(r), SIGKILL), 0);
	while (!health_reason(health, "links"))
		assert_true(sd_event_run(event, 100000) >= 0);
	clock_ms += 2000;
	timers_run(&timers);
	wait_for(event, r, 3);
	assert_null(health_reason(health, "links"));

	/* While it is idle nothing is left undone. */
	assert_int_equal(kill(reaper_pid(r), SIGKILL), 0);
	while (reaper_pid(r))
		assert_true(sd_event_run(event, 100000) >= 0);
	assert_null(health_reason(health, "links"));
	make("roost0000000004", "a4", DOOMED_GROUP);
	reaper_kick(r);
	wait_for(event, r, 4);
	reaper_free(TAKE(r));
	sd_event_unref(event);
}

/* Between two groups whoever is being added goes first, but not for ever. */
static void a_pod_that_is_being_added_goes_first(void **unused)
{
	AUTO(reaper_free) struct reaper *r = NULL;
	AUTO(health_free) struct health *health = NULL;
	struct timers timers = { .now = now };
	sd_event *event = NULL;

	need_namespace();
	assert_int_equal(health_new(NULL, NULL, &health), 0);
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(reaper_new(&r), 0);
	assert_int_equal(reaper_start(r, event, &timers, health), 0);
	while (reaper_stats(r).rounds < 1)
		assert_true(sd_event_run(event, 100000) >= 0);

	make("roost0000000001", "a1", DOOMED_GROUP);
	reaper_adding(r);
	reaper_kick(r);
	assert_int_equal(sd_event_run(event, 50000), 0);
	assert_true(there("roost0000000001"));
	reaper_added(r);
	wait_for(event, r, 1);

	/* One after the other is added, or one never is: a group waits no longer than this. */
	make("roost0000000002", "a2", DOOMED_GROUP);
	reaper_adding(r);
	reaper_kick(r);
	assert_int_equal(sd_event_run(event, 50000), 0);
	assert_true(there("roost0000000002"));
	clock_ms += 39;
	reaper_adding(r);
	timers_run(&timers);
	assert_int_equal(sd_event_run(event, 50000), 0);
	assert_true(there("roost0000000002"));
	clock_ms += 6; /* the first would have had its time */
	timers_run(&timers);
	assert_int_equal(sd_event_run(event, 50000), 0);
	assert_true(there("roost0000000002"));
	clock_ms += 15;
	timers_run(&timers);
	wait_for(event, r, 2);
	reaper_free(TAKE(r));
	sd_event_unref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_doomed_links_of_ours_go),
		cmocka_unit_test(a_stranger_in_the_group_stays),
		cmocka_unit_test(many_go_in_several_rounds),
		cmocka_unit_test(the_child_works_for_its_agent_and_is_made_again),
		cmocka_unit_test(a_pod_that_is_being_added_goes_first),
	};

	have_namespace = unshare(CLONE_NEWNET) == 0;
	if (!have_namespace)
		print_message("no right to make a network namespace: skipped\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
