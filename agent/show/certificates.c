/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/certificates.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/http/certificate_words.h"
#include "lib/store/store_stats.h"

#define HOUR_MS 3600000

struct certificates {
	struct timers *timers;
	struct health *health;
	const struct store *store;
	const char *path;
	struct timer timer;
};

static void tell(struct certificates *c, const char *part, const struct certificate *certificate,
		 const char *what, const char *todo)
{
	enum log_level level = LOG_LEVEL_ERROR;
	struct err text = { "" };

	if (certificate_words(certificate, what, todo, time(NULL), &level, &text))
		health_set(c->health, part, level, "%s", text.text);
	else
		health_clear(c->health, part);
}

static void look_at_ours(struct certificates *c)
{
	static const char part[] = "certificate/client";
	struct certificate ours;
	struct err err = { "" };
	char what[PATH_MAX + 64];

	if (!c->path[0])
		return;
	if (certificate_read(c->path, &ours, &err) < 0) {
		health_set(c->health, part, LOG_LEVEL_ERROR,
			   "the certificate that this agent shows to %s cannot be read: %s",
			   store_server(c->store), err.text);
		return;
	}
	snprintf(what, sizeof(what), "%s, the certificate that this agent shows to %s,", c->path,
		 store_server(c->store));
	tell(c, part, &ours, what, "put a new one there, it is taken with the next connection");
}

static void look_at_theirs(struct certificates *c)
{
	struct store_stats stats;
	char what[512];

	store_stats(c->store, &stats);
	if (!stats.certificate)
		return;
	snprintf(what, sizeof(what), "the certificate of %s (%s)",
		 strcmp(stats.server, "etcd") == 0 ? "etcd's member" : stats.server,
		 stats.certificate->subject);
	tell(c, "certificate/server", stats.certificate, what, "renew it on that machine");
}

void certificates_look(struct certificates *c)
{
	look_at_ours(c);
	look_at_theirs(c);
	timer_set(c->timers, &c->timer, HOUR_MS, HOUR_MS);
}

static void on_timer(void *arg)
{
	certificates_look(arg);
}

int certificates_new(struct timers *timers, struct health *health, const struct store *store,
		     const char *path, struct certificates **ret)
{
	struct certificates *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct certificates){ timers, health, store, path, { .fn = on_timer } };
	c->timer.arg = c;
	certificates_look(c);
	*ret = c;
	return 0;
}

void certificates_free(struct certificates *c)
{
	if (!c)
		return;
	timer_clear(c->timers, &c->timer);
	free(c);
}

void certificates_metrics(const struct certificates *c, struct metrics *m)
{
	struct certificate ours;
	struct store_stats stats;

	store_stats(c->store, &stats);
	metrics_family(m, "roost_etcd_certificate_expiry_timestamp_seconds", METRIC_GAUGE,
		       "Until when the certificates between the agent and etcd are valid.");
	if (c->path[0] && certificate_read(c->path, &ours, NULL) == 0)
		metrics_number(m, LABELS({ "certificate", "client" }), (double)ours.not_after);
	if (stats.certificate)
		metrics_number(m, LABELS({ "certificate", "server" }),
			       (double)stats.certificate->not_after);
}
