/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another program removed routes of BIRD's. BIRD does not listen for that and finds it by its
 * next scan, so the agent, which hears it from the kernel, asks BIRD to export again.
 *
 *   kernel: removed by a socket not known as BIRD's ─> [routing_refeed] ─> show route ─> reload out
 *
 * One route is looked at for all: if BIRD still exports it and the kernel does not have it,
 * another program was at work. Else the socket is BIRD's own and heard no more, so a full table
 * that changes costs one question.
 */
#include <string.h>

#include "agent/bird/routing_parts.h"

/* BIRD may replace a route by removing and adding it; and a flush takes its time. */
#define SETTLE_MS 100

static struct bird_control *control(const struct routing *r)
{
	return bird_step_control(r->step);
}

static int digit(const struct routing *r)
{
	return r->lost.address.family == AF_INET6 ? 6 : 4;
}

static void on_fed(int err, const struct bird_reply *reply, void *arg)
{
	if (err == 0 && bird_reply_failed(reply))
		log_warning("bird", "routes cannot be exported again: %s", reply->text);
}

static void feed(struct routing *r)
{
	static struct log_limit limit = { .interval_ms = 30000 };
	const struct bird_version *version = bird_control_version(control(r));
	char command[64], text[PREFIX_TEXT];

	if (!version)
		return;
	holding_repaired(&r->refeeds, timers_now(r->o.timers));
	log_limited(&limit, LOG_LEVEL_WARNING, "bird",
		    "route %s of BIRD, and maybe others, was removed by another program (netlink "
		    "port %u); BIRD exports its routes again",
		    prefix_print(&r->lost, text), r->lost_by);
	snprintf(command, sizeof(command), "reload %sout kernel%d",
		 version->major >= 3 ? "filters " : "", digit(r));
	bird_command(control(r), command, 0, on_fed, r);
}

static bool shows_route(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };

	while (bird_line_next(reply, &line))
		if (line.code == BIRD_ROUTE)
			return true;
	return false;
}

static void on_shown(int err, const struct bird_reply *reply, void *arg)
{
	struct routing *r = arg;

	if (err == 0 && shows_route(reply) && !r->o.in_kernel(&r->lost, r->o.arg))
		feed(r);
	else if (err == 0)
		r->o.is_birds(r->lost_by, r->o.arg);
	r->lost_by = 0;
}

static void on_refeed(void *arg)
{
	struct routing *r = arg;
	char command[64 + PREFIX_TEXT], text[PREFIX_TEXT];

	snprintf(command, sizeof(command), "show route %s export kernel%d",
		 prefix_print(&r->lost, text), digit(r));
	/* A BIRD that is away reads the kernel at its start. */
	if (bird_command(control(r), command, 0, on_shown, r) < 0)
		r->lost_by = 0;
}

void routing_route_lost(struct routing *r, const struct prefix *dst, uint32_t port)
{
	uint64_t now = timers_now(r->o.timers), due = now + SETTLE_MS;

	if (r->lost_by)
		return;
	r->lost = *dst;
	r->lost_by = port;
	due = r->refeeds.not_before > due ? r->refeeds.not_before : due;
	timer_set(r->o.timers, &r->refeed, due - now, SETTLE_MS);
}

void routing_refeed_new(struct routing *r)
{
	r->refeed = (struct timer){ .fn = on_refeed, .arg = r };
}

void routing_refeed_done(struct routing *r)
{
	timer_clear(r->o.timers, &r->refeed);
}
