/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of commands, and what comes back. */
#include "confd/bird/bird_control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "confd/bird/bird_control_parts.h"

static struct bird_asked *take_first(struct bird_control *c)
{
	struct bird_asked *a = TAILQ_FIRST(&c->asked);

	if (a)
		TAILQ_REMOVE(&c->asked, a, entry);
	c->in_flight = false;
	return a;
}

static void asked_free(struct bird_asked *a)
{
	if (a->release)
		a->release(a->arg);
	free(a);
}

/* --- out ------------------------------------------------------------------------------------ */

/*
 * The socket is empty when a command goes out, so it takes all of it. Whatever goes wrong here
 * shows up as the end of the connection, on the loop, where callbacks may be called.
 */
static void send_next(struct bird_control *c)
{
	struct bird_asked *a = TAILQ_FIRST(&c->asked);
	size_t n;

	if (c->state != BIRD_CONNECTED || c->in_flight || !a)
		return;
	n = strlen(a->command);
	c->in_flight = true;
	bird_timer_in(c, a->timeout_ms);
	if (send(c->fd, a->command, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		shutdown(c->fd, SHUT_RDWR);
}

static int check_command(const char *command)
{
	size_t n = strlen(command);

	if (n > BIRD_COMMAND_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)command[i] < ' ' || command[i] == 127)
			return -EINVAL;
	return n ? 0 : -EINVAL;
}

int bird_ask(struct bird_control *c, const char *command, uint32_t timeout_ms, bird_reply_fn *fn,
	     void *arg, void (*release)(void *arg))
{
	int r = check_command(command);
	struct bird_asked *a;

	if (r < 0)
		return r;
	if (c->state != BIRD_CONNECTED)
		return -ENOTCONN;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	snprintf(a->command, sizeof(a->command), "%s\n", command);
	a->timeout_ms = timeout_ms ?: BIRD_COMMAND_TIMEOUT_MS;
	a->fn = fn;
	a->arg = arg;
	a->release = release;
	TAILQ_INSERT_TAIL(&c->asked, a, entry);
	send_next(c);
	return 0;
}

int bird_command(struct bird_control *c, const char *command, uint32_t timeout_ms,
		 bird_reply_fn *fn, void *arg)
{
	return bird_ask(c, command, timeout_ms, fn, arg, NULL);
}

/* --- in ------------------------------------------------------------------------------------- */

void bird_tell_problem(struct bird_control *c)
{
	if (strcmp(c->problem.text, c->told.text) == 0)
		return;
	c->told = c->problem;
	if (c->handlers.on_disconnected)
		c->handlers.on_disconnected(c->problem.text, c->arg);
}

void bird_lost(struct bird_control *c, int err)
{
	bool in_flight = c->in_flight;
	struct bird_asked *a;

	bird_hang_up(c);
	/* What is asked for from within the callbacks is refused, so this ends. */
	while ((a = take_first(c))) {
		a->fn(in_flight ? err : -ECONNRESET, NULL, a->arg);
		in_flight = false;
		asked_free(a);
	}
	bird_configure_lost(c);
	bird_tell_problem(c);
}

void bird_on_deadline(struct bird_control *c)
{
	const struct bird_asked *a = TAILQ_FIRST(&c->asked);

	if (c->state == BIRD_GREETING)
		err_set(&c->problem, 0, "BIRD did not greet within %g s: it hangs or is very busy",
			BIRD_COMMAND_TIMEOUT_MS / 1000.0);
	else if (a)
		err_set(&c->problem, 0, "BIRD did not answer \"%.*s\" within %g s",
			(int)strcspn(a->command, "\n"), a->command, a->timeout_ms / 1000.0);
	bird_lost(c, -ETIMEDOUT);
}

/* 0, or negative: hang up, c->problem says why. */
static int take_greeting(struct bird_control *c, const struct bird_reply *reply)
{
	if (reply->code != BIRD_READY || bird_version_parse(reply->text, &c->version) < 0)
		return err_set(&c->problem, -EBADMSG, "%s is no BIRD: it said \"%04d %.100s\"",
			       c->path, reply->code, reply->text);
	c->state = BIRD_CONNECTED;
	c->problem.text[0] = c->told.text[0] = '\0';
	sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	bird_arrived(c);
	if (c->handlers.on_connected)
		c->handlers.on_connected(&c->version, c->arg);
	return 0;
}

static int take_reply(struct bird_control *c, const struct bird_reply *reply)
{
	struct bird_asked *a;

	if (c->state == BIRD_GREETING)
		return take_greeting(c, reply);
	if (!c->in_flight)
		return err_set(&c->problem, -EBADMSG, "%s: an answer that nobody asked for: %.100s",
			       c->path, reply->text);
	sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	a = take_first(c);
	a->fn(0, reply, a->arg);
	asked_free(a);
	return 0;
}

static int take_bytes(struct bird_control *c, const char *bytes, size_t n)
{
	while (n) {
		struct bird_reply reply;
		size_t used;
		int r = bird_reader_feed(&c->reader, bytes, n, &used, &reply);

		bytes += used;
		n -= used;
		if (r == 0)
			return 0;
		if (r < 0)
			return err_set(&c->problem, r, "%s: an answer that is not BIRD's: %s",
				       c->path, strerror(-r));
		r = take_reply(c, &reply);
		if (r < 0)
			return r;
		bird_reader_next(&c->reader);
	}
	return 0;
}

void bird_on_bytes(struct bird_control *c, const char *bytes, size_t n)
{
	if (take_bytes(c, bytes, n) < 0)
		bird_lost(c, -ECONNRESET);
	else
		send_next(c);
}

/* --- from its making to its end ------------------------------------------------------------- */

const struct bird_version *bird_control_version(const struct bird_control *c)
{
	return c->state == BIRD_CONNECTED ? &c->version : NULL;
}

const char *bird_control_problem(const struct bird_control *c)
{
	if (c->state == BIRD_CONNECTED)
		return "";
	return c->problem.text[0] ? c->problem.text : "not connected to BIRD yet";
}

int bird_control_new(sd_event *event, const char *path,
		     const struct bird_control_handlers *handlers, void *arg,
		     struct bird_control **ret)
{
	AUTO(bird_control_free) struct bird_control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->arg = arg;
	if (handlers)
		c->handlers = *handlers;
	TAILQ_INIT(&c->asked);
	r = bird_connect_new(c, path);
	r = r ?: bird_configure_new(c);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

void bird_control_free(struct bird_control *c)
{
	struct bird_asked *a;

	if (!c)
		return;
	while ((a = take_first(c)))
		asked_free(a);
	bird_configure_free(c);
	bird_connect_free(c);
	bird_reader_done(&c->reader);
	sd_event_unref(c->event);
	free(c);
}
