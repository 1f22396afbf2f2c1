/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a real loop. Nothing here depends on how much of the processor the test gets: waits have lower bounds
 * only, and "at once" is counted in turns of the loop, not in milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/pass.h"

#define PATIENCE_US 60000000 /* against hangs alone */
#define LIMIT_US    (PASS_LATEST_MS * 1000)
#define SLACK_US    1000 /* how late the pass lets its timer be */

struct loop {
	sd_event *event;
	struct pass *pass;
	sd_event_source *stream;
	int pipe[2];
	unsigned passes, events;
	unsigned late_events;     /* began although the first mark was older than the limit */
	uint64_t marking, marked; /* the first mark since the last pass: before it and behind it */
	uint64_t pass_us;         /* how long a pass takes */
	uint64_t waited[64], began[64], ended[64];
	int result;
	bool mark_inside;
};

/* The pass reads its clock somewhere between the two times. */
static void mark(struct loop *l)
{
	uint64_t now = clock_monotonic_us();

	pass_mark(l->pass);
	if (l->marked)
		return;
	l->marking = now;
	l->marked = clock_monotonic_us();
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
	uint64_t began = clock_monotonic_us();

	if (l->passes < ARRAY_SIZE(l->began)) {
		l->began[l->passes] = began;
		l->waited[l->passes] = l->marked ? began - l->marking : 0;
	}
	l->marked = 0;
	busy(l->pass_us);
	if (l->mark_inside) {
		l->mark_inside = false;
		mark(l);
	}
	if (l->passes < ARRAY_SIZE(l->ended))
		l->ended[l->passes] = clock_monotonic_us();
	l->passes++;
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
	l->late_events += l->marked && clock_monotonic_us() - l->marked > LIMIT_US + SLACK_US;
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

#define RUN_UNTIL(l, condition)                                                                    \
	do {                                                                                       \
		uint64_t end_ = clock_monotonic_us() + PATIENCE_US;                                \
                                                                                                   \
		while (!(condition)) {                                                             \
			assert_true(clock_monotonic_us() < end_);                                  \
			assert_true(sd_event_run((l)->event, 10000) >= 0);                         \
		}                                                                                  \
	} while (0)

/* The next pass comes without a wait: within two turns of the loop, none of which blocks. */
static void expect_pass_at_once(struct loop *l)
{
	unsigned before = l->passes;

	for (int turns = 0; turns < 2 && l->passes == before; turns++)
		assert_true(sd_event_run(l->event, 0) >= 0);
	assert_int_equal(l->passes, before + 1);
}

/* After a pass the loop rests as long as the pass took, which may be long on a busy machine. */
static void let_it_rest(struct loop *l)
{
	run_for(l, pass_stats(l->pass).last_us / 1000 + 1);
}

static sd_event_source *flood(struct loop *l)
{
	sd_event_source *s;

	assert_true(sd_event_add_defer(l->event, &s, on_flood, l) >= 0);
	assert_true(sd_event_source_set_enabled(s, SD_EVENT_ON) >= 0);
	return s;
}

/* As many passes as the limit allows in this time; the first may come at once. */
static unsigned most_since(uint64_t began)
{
	return 1 + (unsigned)((clock_monotonic_us() - began) / LIMIT_US);
}

static void ten_thousand_events_make_a_few_passes(void **state)
{
	struct loop *l = *state;
	static char bytes[10000];
	uint64_t began = clock_monotonic_us();

	pass_open(l->pass, true);
	assert_int_equal(write(l->pipe[1], bytes, sizeof(bytes)), sizeof(bytes));
	RUN_UNTIL(l, l->events == sizeof(bytes) && !pass_stats(l->pass).dirty);
	/* A few, and one more for every 50 ms that a slow machine takes to read them. */
	assert_in_range(l->passes, 1, 8 + most_since(began));
	assert_int_equal(pass_stats(l->pass).marks, sizeof(bytes));
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void a_stream_that_never_rests_does_not_starve_the_pass(void **state)
{
	struct loop *l = *state;
	sd_event_source *s = flood(l);

	pass_open(l->pass, true);
	RUN_UNTIL(l, l->passes == 9);
	sd_event_source_disable_unref(s);
	assert_true(l->events > 100);
	/* One that the loop had taken up when the limit passed. */
	assert_in_range(l->late_events, 0, 2 * l->passes);
	/* Not before the limit, but for one in the rest after a pass that the machine held up. */
	qsort(l->waited, l->passes, sizeof(l->waited[0]), by_size);
	assert_in_range(l->waited[l->passes / 2], LIMIT_US - SLACK_US, PATIENCE_US);
}

static void one_mark_on_an_idle_loop_is_served_at_once(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	for (int i = 0; i < 5; i++) {
		mark(l);
		expect_pass_at_once(l);
		let_it_rest(l);
	}
	assert_int_equal(l->passes, 5);
}

static void an_idle_loop_is_not_woken(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	mark(l);
	RUN_UNTIL(l, l->passes == 1);
	let_it_rest(l);
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
	expect_pass_at_once(l);
	mark(l);
	pass_open(l->pass, false);
	run_for(l, 80);
	assert_int_equal(l->passes, 1);
}

static void a_failed_pass_comes_again_ever_more_slowly(void **state)
{
	struct loop *l = *state;
	uint64_t least = PASS_RETRY_MIN_MS * 1000;

	pass_open(l->pass, true);
	l->result = -EIO;
	mark(l);
	/* At 0, 100, 300, 700 ms; and one that succeeds at 1500 ms. */
	RUN_UNTIL(l, l->passes == 4);
	assert_int_equal(pass_stats(l->pass).failures, 4);
	l->result = 0;
	RUN_UNTIL(l, !pass_stats(l->pass).dirty);
	assert_int_equal(l->passes, 5);
	for (unsigned i = 1; i < 5; i++, least *= 2)
		assert_in_range(l->began[i] - l->ended[i - 1], least, 10 * least);
}

static void a_new_mark_does_not_wait_for_the_retry(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	l->result = -EIO;
	mark(l);
	RUN_UNTIL(l, l->passes == 4);
	l->result = 0;
	/* The retry is 800 ms away, the limit 50. */
	run_for(l, PASS_LATEST_MS + 5);
	mark(l);
	expect_pass_at_once(l);
	assert_false(pass_stats(l->pass).dirty);
}

static void marks_during_a_failing_stretch_do_not_make_it_spin(void **state)
{
	struct loop *l = *state;
	uint64_t began = clock_monotonic_us();
	sd_event_source *s = flood(l);

	pass_open(l->pass, true);
	l->result = -EIO;
	RUN_UNTIL(l, l->passes == 6);
	sd_event_source_disable_unref(s);
	assert_in_range(l->passes, 6, most_since(began));
}

static void a_long_pass_leaves_as_much_time_to_others(void **state)
{
	struct loop *l = *state;
	sd_event_source *s;
	unsigned n;

	pass_open(l->pass, true);
	l->pass_us = 20000;
	l->mark_inside = true;
	mark(l);
	RUN_UNTIL(l, l->passes == 2);
	s = flood(l);
	RUN_UNTIL(l, l->passes == 8);
	sd_event_source_disable_unref(s);
	for (n = 1; n < l->passes; n++) {
		uint64_t took = l->ended[n - 1] - l->began[n - 1];

		assert_in_range(l->began[n] - l->ended[n - 1], took < LIMIT_US ? took : LIMIT_US,
				PATIENCE_US);
	}
}

static void a_mark_inside_the_pass_makes_another_one(void **state)
{
	struct loop *l = *state;

	pass_open(l->pass, true);
	l->mark_inside = true;
	mark(l);
	RUN_UNTIL(l, !pass_stats(l->pass).dirty);
	assert_int_equal(l->passes, 2);
}

/* The flood marks too; what counts is that the pass does not wait for the limit. */
static void what_is_wanted_soon_comes_before_other_work(void **state)
{
	struct loop *l = *state;
	sd_event_source *s = flood(l);
	unsigned events;

	pass_open(l->pass, true);
	assert_true(sd_event_run(l->event, 0) >= 0);
	events = l->events;
	assert_int_equal(l->passes, 0);
	pass_soon(l->pass);
	while (l->passes == 0)
		assert_true(sd_event_run(l->event, 0) >= 0);
	assert_in_range(l->events - events, 0, 2);
	sd_event_source_disable_unref(s);
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
