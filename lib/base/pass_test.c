/* SPDX-License-Identifier: Apache-2.0 */
/* On a real loop. Upper bounds of time are generous: two cores, and others use them too. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/pass.h"

struct loop {
	sd_event *event;
	struct pass *pass;
	sd_event_source *stream;
	int pipe[2];
	unsigned passes, events;
	uint64_t marked, worst_us; /* first mark since the last pass, longest wait */
	uint64_t pass_us;          /* how long a pass takes */
	int result;
	bool mark_inside;
};

static void mark(struct loop *l)
{
	if (!l->marked)
		l->marked = clock_monotonic_us();
	pass_mark(l->pass);
}

static void busy(uint64_t us)
{
	uint64_t end = clock_monotonic_us() + us;

	while (clock_monotonic_us() < end)
		;
}

static int on_pass(void *arg)
{
	struct loop *l = arg;
	uint64_t waited = l->marked ? clock_monotonic_us() - l->marked : 0;

	l->passes++;
	if (waited > l->worst_us)
		l->worst_us = waited;
	l->marked = 0;
	busy(l->pass_us);
	if (l->mark_inside) {
		l->mark_inside = false;
		mark(l);
	}
	return l->result;
}

/* One byte is one event. */
static int on_byte(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct loop *l = arg;
	char byte;

	if (read(fd, &byte, 1) == 1)
		l->events++;
	mark(l);
	return 0;
}

/* A stream that never rests: the source is always ready. */
static int on_flood(sd_event_source *s, void *arg)
{
	struct loop *l = arg;

	l->events++;
	mark(l);
	busy(50);
	return 0;
}

static struct loop loop;
static int set_up(void **state)
{
	struct loop *l = &loop;

	*l = (struct loop){ 0 };
	*state = l;
	return sd_event_new(&l->event) < 0 || pipe2(l->pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
	       sd_event_add_io(l->event, &l->stream, l->pipe[0], 1 /* EPOLLIN */, on_byte, l) < 0 ||
	       pass_new(l->event, on_pass, l, &l->pass) < 0;
}

static int done(void **state)
{
	struct loop *l = *state;

	pass_free(l->pass);
	sd_event_source_disable_unref(l->stream);
	sd_event_unref(l->event);
	close(l->pipe[0]);
	close(l->pipe[1]);
	return 0;
}

static void run_for(struct loop *l, uint64_t ms)
{
	uint64_t end = clock_monotonic_us() + ms * 1000, now;

	while ((now = clock_monotonic_us()) < end)
		assert_true(sd_event_run(l->event, end - now) >= 0);
}

static void ten_thousand_events_make_a_few_passes(void **state)
{
	struct loop *l = *state;
	static char bytes[10000];

	pass_open(l->pass, true);
	assert_int_equal(write(l->pipe[1], bytes, sizeof(bytes)), sizeof(bytes));
	run_for(l, 300);
	assert_int_equal(l->events, sizeof(bytes));
	/* One, and one more for every 50 ms that a slow machine takes to read them. */
	assert_in_range(l->passes, 1, 8);
	assert_int_equal(pass_stats(l->pass).marks, sizeof(bytes));
	assert_false(pass_stats(l->pass).dirty);
}

static void a_stream_that_never_rests_does_not_starve_the_pass(void **state)
{
	struct loop *l = *state;
	sd_event_source *flood;

	pass_open(l->pass, true);
	assert_true(sd_event_add_defer(l->event, &flood, on_flood, l) >= 0);
	assert_true(sd_event_source_set_enabled(flood, SD_EVENT_ON) >= 0);
	run_for(l, 600);
	sd_event_source_disable_unref(flood);
	assert_true(l->events > 100);
	assert_in_range(l->passes, 6, 14);
	assert_in_range(l->worst_us, 45000, 80000);
}

static void one_mark_on_an_idle_loop_is_served_at_once(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	for (int i = 0; i < 5; i++) {
		mark(l);
		run_for(l, 20);
	}
	assert_int_equal(l->passes, 5);
	assert_in_range(l->worst_us, 0, 15000);
}

static void an_idle_loop_is_not_woken(void **state)
{
	struct loop *l = *state;
	uint64_t turns;

	pass_open(l->pass, true);
	mark(l);
	run_for(l, 20);
	assert_int_equal(sd_event_get_iteration(l->event, &turns), 0);
	assert_int_equal(sd_event_run(l->event, 150000), 0);
	assert_int_equal(l->passes, 1);
}

static void closed_it_keeps_the_mark_and_does_nothing(void **state)
{
	struct loop *l = *state;

	mark(l);
	run_for(l, 80);
	assert_int_equal(l->passes, 0);
	assert_int_equal(pass_now(l->pass), 0);
	assert_true(pass_stats(l->pass).dirty);
	pass_open(l->pass, true);
	run_for(l, 20);
	assert_int_equal(l->passes, 1);
	mark(l);
	pass_open(l->pass, false);
	run_for(l, 80);
	assert_int_equal(l->passes, 1);
}

static void a_failed_pass_comes_again_ever_more_slowly(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	l->result = -EIO;
	mark(l);
	/* At 0, 100, 300, 700, 1500 ms. */
	run_for(l, 1000);
	assert_in_range(l->passes, 3, 4);
	assert_int_equal(pass_stats(l->pass).failures, l->passes);
	l->result = 0;
	run_for(l, 900);
	assert_false(pass_stats(l->pass).dirty);
	assert_in_range(l->passes, 4, 5);
}

static void a_new_mark_does_not_wait_for_the_retry(void **state)
{
	struct loop *l = *state;
	unsigned before;

	pass_open(l->pass, true);
	l->result = -EIO;
	mark(l);
	run_for(l, 800);
	before = l->passes;
	l->result = 0;
	mark(l);
	run_for(l, 70);
	assert_int_equal(l->passes, before + 1);
	assert_false(pass_stats(l->pass).dirty);
}

static void marks_during_a_failing_stretch_do_not_make_it_spin(void **state)
{
	struct loop *l = *state;
	sd_event_source *flood;

	pass_open(l->pass, true);
	l->result = -EIO;
	assert_true(sd_event_add_defer(l->event, &flood, on_flood, l) >= 0);
	assert_true(sd_event_source_set_enabled(flood, SD_EVENT_ON) >= 0);
	run_for(l, 500);
	sd_event_source_disable_unref(flood);
	assert_in_range(l->passes, 3, 12);
}

static void a_long_pass_leaves_as_much_time_to_others(void **state)
{
	struct loop *l = *state;
	sd_event_source *flood;

	pass_open(l->pass, true);
	l->pass_us = 20000;
	l->mark_inside = true;
	mark(l);
	run_for(l, 30);
	/* The second waits 20 ms after the first has ended. */
	assert_int_equal(l->passes, 1);
	run_for(l, 60);
	assert_int_equal(l->passes, 2);
	assert_true(sd_event_add_defer(l->event, &flood, on_flood, l) >= 0);
	assert_true(sd_event_source_set_enabled(flood, SD_EVENT_ON) >= 0);
	run_for(l, 500);
	sd_event_source_disable_unref(flood);
	assert_in_range(l->passes, 5, 15);
}

static void a_mark_inside_the_pass_makes_another_one(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	l->mark_inside = true;
	mark(l);
	run_for(l, 30);
	assert_int_equal(l->passes, 2);
	assert_false(pass_stats(l->pass).dirty);
}

/* The flood marks too; what counts is that the pass does not wait for the limit. */
static void what_is_wanted_soon_comes_before_other_work(void **state)
{
	struct loop *l = *state;
	sd_event_source *flood;
	unsigned events;

	pass_open(l->pass, true);
	assert_true(sd_event_add_defer(l->event, &flood, on_flood, l) >= 0);
	assert_true(sd_event_source_set_enabled(flood, SD_EVENT_ON) >= 0);
	assert_true(sd_event_run(l->event, 0) >= 0);
	events = l->events;
	assert_int_equal(l->passes, 0);
	pass_soon(l->pass);
	while (l->passes == 0)
		assert_true(sd_event_run(l->event, 0) >= 0);
	assert_in_range(l->events - events, 0, 2);
	sd_event_source_disable_unref(flood);
}

static void it_can_be_run_now(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	mark(l);
	l->result = -EBUSY;
	assert_int_equal(pass_now(l->pass), -EBUSY);
	l->result = 0;
	assert_int_equal(pass_now(l->pass), 0);
	assert_int_equal(pass_now(l->pass), 0);
	assert_int_equal(l->passes, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ten_thousand_events_make_a_few_passes),
		CASE(a_stream_that_never_rests_does_not_starve_the_pass),
		CASE(one_mark_on_an_idle_loop_is_served_at_once),
		CASE(an_idle_loop_is_not_woken),
		CASE(closed_it_keeps_the_mark_and_does_nothing),
		CASE(a_failed_pass_comes_again_ever_more_slowly),
		CASE(a_new_mark_does_not_wait_for_the_retry),
		CASE(marks_during_a_failing_stretch_do_not_make_it_spin),
		CASE(a_long_pass_leaves_as_much_time_to_others),
		CASE(a_mark_inside_the_pass_makes_another_one),
		CASE(what_is_wanted_soon_comes_before_other_work),
		CASE(it_can_be_run_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
