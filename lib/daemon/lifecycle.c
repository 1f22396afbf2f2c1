/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/lifecycle.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "lib/base/clock.h"

struct lifecycle {
	sd_event *event;
	sd_event_source *sources[3], *deadline;
	const struct lifecycle_handlers *handlers;
	void *arg;
	bool ready, stopping;
	char status[256];
};

static int on_deadline(sd_event_source *s, uint64_t usec, void *arg)
{
	struct lifecycle *l = arg;

	lifecycle_stopped(l);
	return 0;
}

static int on_stop(sd_event_source *s, const struct signalfd_siginfo *info, void *arg)
{
	struct lifecycle *l = arg;

	if (l->stopping) {
		lifecycle_stopped(l);
		return 0;
	}
	l->stopping = true;
	sd_notify(false, "STOPPING=1");
	/* Without the timer nothing bounds the stop, so then it is short. */
	if (sd_event_add_time_relative(l->event, &l->deadline, CLOCK_MONOTONIC,
				       LIFECYCLE_STOP_MS * 1000, 10000, on_deadline, l) < 0)
		lifecycle_stopped(l);
	l->handlers->stop(info->ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT", l->arg);
	return 0;
}

static int on_reload(sd_event_source *s, const struct signalfd_siginfo *info, void *arg)
{
	struct lifecycle *l = arg;

	if (l->stopping)
		return 0;
	/* Before we are ready systemd waits for that, and READY=1 would be a lie. */
	if (l->ready)
		sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu",
			   (unsigned long long)clock_monotonic_us());
	l->handlers->reload(l->arg);
	if (l->ready)
		sd_notify(false, "READY=1");
	return 0;
}

static int add_signals(struct lifecycle *l)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;
	int r = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&set, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && r >= 0; i++)
		r = sd_event_add_signal(l->event, &l->sources[i], numbers[i],
					numbers[i] == SIGHUP ? on_reload : on_stop, l);
	return r;
}

int lifecycle_new(sd_event *event, const struct lifecycle_handlers *handlers, void *arg,
		  struct lifecycle **ret)
{
	AUTO(lifecycle_free) struct lifecycle *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->event = sd_event_ref(event);
	l->handlers = handlers;
	l->arg = arg;
	r = add_signals(l);
	/* Nothing happens unless systemd asks for it by WATCHDOG_USEC. */
	if (r >= 0)
		r = sd_event_set_watchdog(event, true);
	if (r < 0)
		return r;
	*ret = TAKE(l);
	return 0;
}

void lifecycle_free(struct lifecycle *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(l->sources); i++)
		sd_event_source_disable_unref(l->sources[i]);
	sd_event_source_disable_unref(l->deadline);
	sd_event_unref(l->event);
	free(l);
}

void lifecycle_ready(struct lifecycle *l)
{
	if (!l->ready)
		sd_notify(false, "READY=1");
	l->ready = true;
}

void lifecycle_status(struct lifecycle *l, const char *fmt, ...)
{
	char text[sizeof(l->status)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* A line feed would begin another assignment. */
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	if (strcmp(text, l->status) == 0)
		return;
	memcpy(l->status, text, sizeof(text));
	sd_notifyf(false, "STATUS=%s", text);
}

void lifecycle_stopped(struct lifecycle *l)
{
	sd_event_exit(l->event, 0);
}
