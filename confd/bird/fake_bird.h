/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a BIRD on the loop of the test, that says what the test wants and when it wants.
 * It checks on its own that it never has more than one command.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include <cmocka.h>

#include "confd/bird/bird_control.h"
#include "lib/base/clock.h"

struct fake_bird {
	sd_event *event;
	char folder[32], path[64];
	int listener, client;
	sd_event_source *accepts, *reads;
	const char *greeting; /* NULL: none */
	bool busy;            /* has a command and has not answered */
	unsigned clients, commands;
	char heard[4096]; /* all commands, each with LF */
	/* Answers a command; NULL: silence. */
	void (*on_command)(struct fake_bird *f, const char *command);
	void *arg;
};

/* Bytes to the client, as they are; a reply is complete when last. */
static inline void fake_say(struct fake_bird *f, const char *bytes, bool last)
{
	if (last)
		f->busy = false;
	assert_int_equal(send(f->client, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
}

static inline void fake_hang_up(struct fake_bird *f)
{
	f->reads = sd_event_source_disable_unref(f->reads);
	if (f->client >= 0)
		close(f->client);
	f->client = -1;
	f->busy = false;
}

static inline int fake_on_read(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct fake_bird *f = arg;
	char line[2048];
	ssize_t n = read(fd, line, sizeof(line) - 1);

	if (n <= 0) {
		fake_hang_up(f);
		return 0;
	}
	line[n] = '\0';
	/* One command, whole, and none before the last was answered. */
	assert_int_equal(strcspn(line, "\n"), n - 1);
	assert_false(f->busy);
	assert_in_range(strlen(f->heard) + (size_t)n, 0, sizeof(f->heard) - 1);
	strcat(f->heard, line);
	f->busy = true;
	f->commands++;
	line[n - 1] = '\0';
	if (f->on_command)
		f->on_command(f, line);
	return 0;
}

static inline int fake_on_accept(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct fake_bird *f = arg;

	fake_hang_up(f);
	f->client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(f->client >= 0);
	f->clients++;
	assert_true(sd_event_add_io(f->event, &f->reads, f->client, EPOLLIN, fake_on_read, f) >= 0);
	if (f->greeting)
		fake_say(f, f->greeting, true);
	return 0;
}

static inline void fake_listen(struct fake_bird *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(f->listener >= 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->path);
	unlink(f->path);
	assert_int_equal(bind(f->listener, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(f->listener, 8), 0);
	assert_true(sd_event_add_io(f->event, &f->accepts, f->listener, EPOLLIN, fake_on_accept,
				    f) >= 0);
}

/* As SIGKILL does: the socket stays, with nobody behind it. */
static inline void fake_die(struct fake_bird *f)
{
	fake_hang_up(f);
	f->accepts = sd_event_source_disable_unref(f->accepts);
	if (f->listener >= 0)
		close(f->listener);
	f->listener = -1;
}

static inline void fake_new(struct fake_bird *f)
{
	*f = (struct fake_bird){ .folder = "/tmp/roost-bird-XXXXXX",
				 .listener = -1,
				 .client = -1,
				 .greeting = "0001 BIRD 2.0.12 ready.\n" };
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/bird.ctl", f->folder);
	assert_true(sd_event_new(&f->event) >= 0);
}

static inline void fake_free(struct fake_bird *f)
{
	fake_die(f);
	unlink(f->path);
	rmdir(f->folder);
	sd_event_unref(f->event);
}

/* Turns the loop until it is so; a minute is against hangs alone. */
#define RUN_UNTIL(f, condition)                                                                    \
	do {                                                                                       \
		uint64_t limit_ = clock_monotonic_us() + 60000000;                                 \
		while (!(condition)) {                                                             \
			assert_true(clock_monotonic_us() < limit_);                                \
			assert_true(sd_event_run((f)->event, 1000000) >= 0);                       \
		}                                                                                  \
	} while (0)

/* Turns the loop for a while, to see that something does not happen. */
static inline void run_for(struct fake_bird *f, uint64_t ms)
{
	uint64_t end = clock_monotonic_us() + ms * 1000, now;

	while ((now = clock_monotonic_us()) < end)
		assert_true(sd_event_run(f->event, end - now) >= 0);
}
