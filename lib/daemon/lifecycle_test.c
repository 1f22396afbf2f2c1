/* SPDX-License-Identifier: Apache-2.0 */
/* Real signals, and a socket in systemd's place. Also the timers on a real loop. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/timers.h"
#include "lib/daemon/lifecycle.h"

struct life {
	sd_event *event;
	struct lifecycle *lifecycle;
	int systemd;
	char story[256];
};

static void on_stop(const char *why, void *arg)
{
	struct life *l = arg;

	strcat(strcat(l->story, "stop by "), why);
}

static void on_reload(void *arg)
{
	struct life *l = arg;

	strcat(l->story, "reload ");
}

static struct life life;
static int set_up(void **state)
{
	static const struct lifecycle_handlers handlers = { on_stop, on_reload };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[80];
	struct life *l = &life;

	*l = (struct life){ 0 };
	*state = l;
	snprintf(name, sizeof(name), "@roost-notify-%d", getpid());
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", name + 1);
	l->systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(l->systemd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))) < 0)
		return -1;
	setenv("NOTIFY_SOCKET", name, 1);
	return sd_event_new(&l->event) < 0 ||
	       lifecycle_new(l->event, &handlers, l, &l->lifecycle) < 0;
}

static int done(void **state)
{
	struct life *l = *state;

	lifecycle_free(l->lifecycle);
	sd_event_unref(l->event);
	close(l->systemd);
	unsetenv("NOTIFY_SOCKET");
	return 0;
}

/* All that systemd was told, one datagram after the other, without the changing numbers. */
static void expect_told(struct life *l, const char *want)
{
	char text[512] = "";
	ssize_t n;

	for (;;) {
		size_t have = strlen(text);
		char *number;

		n = recv(l->systemd, text + have, sizeof(text) - have - 2, 0);
		if (n < 0)
			break;
		text[have + (size_t)n] = '\0';
		number = strstr(text + have, "\nMONOTONIC_USEC=");
		if (number)
			*number = '\0';
		strcat(text, "|");
	}
	assert_string_equal(text, want);
}

static void turn(struct life *l)
{
	assert_true(sd_event_run(l->event, 100000) >= 0);
}

static void sigterm_asks_to_stop_and_the_end_is_clean(void **state)
{
	struct life *l = *state;

	lifecycle_ready(l->lifecycle);
	lifecycle_ready(l->lifecycle);
	expect_told(l, "READY=1|");
	kill(getpid(), SIGTERM);
	turn(l);
	assert_string_equal(l->story, "stop by SIGTERM");
	expect_told(l, "STOPPING=1|");
	lifecycle_stopped(l->lifecycle);
	assert_int_equal(sd_event_loop(l->event), 0);
}

static void a_second_signal_ends_it_at_once(void **state)
{
	struct life *l = *state;
	uint64_t began = clock_monotonic_us();

	kill(getpid(), SIGINT);
	turn(l);
	kill(getpid(), SIGTERM);
	assert_int_equal(sd_event_loop(l->event), 0);
	assert_string_equal(l->story, "stop by SIGINT");
	assert_true(clock_monotonic_us() - began < LIFECYCLE_STOP_MS * 1000 / 2);
}

static void a_stop_that_never_ends_is_ended(void **state)
{
	struct life *l = *state;
	uint64_t began = clock_monotonic_us();

	kill(getpid(), SIGTERM);
	assert_int_equal(sd_event_loop(l->event), 0);
	assert_in_range(clock_monotonic_us() - began, LIFECYCLE_STOP_MS * 1000 - 100000,
			LIFECYCLE_STOP_MS * 10000);
}

static void sighup_reloads_and_tells_systemd_so(void **state)
{
	struct life *l = *state;

	kill(getpid(), SIGHUP);
	turn(l);
	expect_told(l, "");
	lifecycle_ready(l->lifecycle);
	kill(getpid(), SIGHUP);
	turn(l);
	assert_string_equal(l->story, "reload reload ");
	expect_told(l, "READY=1|RELOADING=1|READY=1|");
}

static void no_reload_while_stopping(void **state)
{
	struct life *l = *state;

	kill(getpid(), SIGTERM);
	turn(l);
	kill(getpid(), SIGHUP);
	turn(l);
	assert_string_equal(l->story, "stop by SIGTERM");
}

static void a_status_is_told_once_and_is_one_line(void **state)
{
	struct life *l = *state;

	lifecycle_status(l->lifecycle, "waiting for %s", "etcd\nREADY=1");
	lifecycle_status(l->lifecycle, "waiting for %s", "etcd\nREADY=1");
	expect_told(l, "STATUS=waiting for etcd READY=1|");
}

static void a_peer_that_hangs_up_does_not_end_us(void **state)
{
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(pipes[0]);
	assert_int_equal(write(pipes[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(pipes[1]);
}

/* --- timers on the loop --------------------------------------------------------------------- */

static void exit_loop(void *arg)
{
	sd_event_exit(arg, 7);
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void timers_fire_on_the_loop_within_their_slack(void **state)
{
	struct life *l = *state;
	struct timers *timers;
	int early = 0, late = 0;
	struct timer a = { .fn = count, .arg = &early }, b = { .fn = exit_loop, .arg = l->event },
		     c = { .fn = count, .arg = &late };
	uint64_t began = clock_monotonic_us();

	assert_int_equal(timers_loop_new(l->event, &timers), 0);
	timer_set(timers, &c, 60000, 0);
	timer_set(timers, &a, 10, 5000);
	timer_set(timers, &b, 100, 50);
	assert_int_equal(sd_event_loop(l->event), 7);
	assert_in_range(clock_monotonic_us() - began, 99000, 1500000);
	assert_int_equal(early, 1);
	assert_int_equal(late, 0);
	timer_clear(timers, &c);
	timers_loop_free(timers);
}

/* The loop wakes for something else while ours is due but could still wait. */
static int on_other(sd_event_source *s, uint64_t usec, void *arg)
{
	return 0;
}

static void a_wake_up_for_another_reason_serves_what_is_due(void **state)
{
	struct life *l = *state;
	sd_event_source *other;
	struct timers *timers;
	struct timer a = { .fn = exit_loop, .arg = l->event };
	uint64_t began = clock_monotonic_us();

	assert_int_equal(timers_loop_new(l->event, &timers), 0);
	assert_true(sd_event_add_time_relative(l->event, &other, CLOCK_MONOTONIC, 100000, 1,
					       on_other, NULL) >= 0);
	timer_set(timers, &a, 50, 60000);
	assert_int_equal(sd_event_loop(l->event), 7);
	assert_in_range(clock_monotonic_us() - began, 50000, 2000000);
	sd_event_source_disable_unref(other);
	timers_loop_free(timers);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(sigterm_asks_to_stop_and_the_end_is_clean),
		CASE(a_second_signal_ends_it_at_once),
		CASE(a_stop_that_never_ends_is_ended),
		CASE(sighup_reloads_and_tells_systemd_so),
		CASE(no_reload_while_stopping),
		CASE(a_status_is_told_once_and_is_one_line),
		CASE(a_peer_that_hangs_up_does_not_end_us),
		CASE(timers_fire_on_the_loop_within_their_slack),
		CASE(a_wake_up_for_another_reason_serves_what_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
