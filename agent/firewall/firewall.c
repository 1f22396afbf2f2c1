/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/firewall/firewall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/firewall/firewall_child.h"
#include "agent/kernel/fight.h"
#include "lib/base/log.h"

#define RETRY_MS 30000
#define BUSY_MS  1000
/* In a cluster where nodes come one after the other the table is not all that a node works on. */
#define PAUSE_FACTOR 10
#define PAUSE_MAX_MS 2000

#define TABLE "nftables table inet " FIREWALL_TABLE

struct firewall {
	struct firewall_options options;
	struct pass *pass;
	struct timer look, later;
	struct netlink *events; /* NULL: no table is ours to watch */
	sd_event_source *source;
	struct child *child; /* NULL: none is at work */
	struct firewall_job job;
	struct firewall_news news;
	char *text;             /* as it was asked for last; NULL: nothing was */
	bool fresh;             /* that, and it was not set yet */
	struct hash digest;     /* of its listing when it had just been set */
	bool confirmed;         /* it stood like that when last looked at */
	bool suspect;           /* and has to be looked at again */
	bool lost;              /* events */
	bool found;             /* an earlier agent's table, before this one has set its own */
	uint64_t started, next; /* the child; its text is not changed before */
	char why[256];          /* the last try set not all; "": it did, or there was none */
	struct firewall_drops last, dropped; /* as read last; since the start */
	char by[48];                         /* who touched it; "": not known */
	struct fight fight;                  /* not_before: also after a failure */
	struct firewall_stats stats;
};

/* --- events --------------------------------------------------------------------------------- */

static void suspect(struct firewall *f)
{
	f->suspect = true;
	pass_mark(f->pass);
}

static void drain(struct firewall *f)
{
	if (!f->events || netlink_events_read(f->events, firewall_news_take, &f->news) == 0)
		return;
	f->lost = true;
	f->news.touching = false;
}

static int on_events(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct firewall *f = arg;

	drain(f);
	/* A child's own changes are among them: its end tells which are news. */
	if (!f->child && (f->lost || f->news.touched)) {
		snprintf(f->by, sizeof(f->by), "%s", f->news.touched ? f->news.by : "");
		f->lost = f->news.touched = false;
		suspect(f);
	}
	return 0;
}

static int listen_to_kernel(struct firewall *f)
{
	int r = f->events ? 0 : firewall_events_open(&f->events);

	if (r == 0 && !f->source)
		r = sd_event_add_io(f->options.event, &f->source, netlink_fd(f->events), EPOLLIN,
				    on_events, f);
	return r < 0 ? r : 0;
}

static void stop_listening(struct firewall *f)
{
	f->source = sd_event_source_disable_unref(f->source);
	netlink_close(TAKE(f->events));
	f->news = (struct firewall_news){ 0 };
	timer_clear(f->options.timers, &f->look);
	timer_clear(f->options.timers, &f->later);
}

/* --- reports --------------------------------------------------------------------------------- */

static void report_trouble(struct firewall *f, const char *why)
{
	unsigned missing = f->stats.wanted & ~f->stats.held;

	snprintf(f->why, sizeof(f->why), "%s", why);
	health_set(f->options.health, "firewall", LOG_LEVEL_ERROR,
		   TABLE " cannot be set: %s%s%s%s; the kernel needs nf_tables, nft_masq and "
			 "nft_fib_inet; retried every 30 s",
		   why,
		   missing & FIREWALL_NAT ? "; pods of pools with natOutgoing cannot reach "
					    "addresses outside all pools"
					  : "",
		   missing & FIREWALL_SOURCES
			   ? "; pods can send from IPv6 addresses that are not their own"
			   : "",
		   missing & FIREWALL_PROTECTION
			   ? "; pods can reach this node's tunnel and BGP ports and, with portmap, "
			     "its loopback"
			   : "");
}

static void report_set(const struct firewall *f)
{
	log_info("firewall",
		 TABLE " is set: natOutgoing for %zu of %zu pool prefixes, sources %s, node %s",
		 f->stats.nat, f->stats.pools,
		 f->stats.held & FIREWALL_SOURCES ? "checked" : "not checked",
		 f->stats.held & FIREWALL_PROTECTION ? "protected" : "not protected");
}

static void report_repair(struct firewall *f)
{
	static struct log_limit limit = { .interval_ms = 30000 };
	const char *by = f->by[0] ? f->by : "another program";

	f->stats.repairs++;
	fight_repaired(&f->fight, timers_now(f->options.timers));
	if (f->fight.repairs > FIGHT_LOGGED)
		log_limited(&limit, LOG_LEVEL_WARNING, "firewall",
			    TABLE " was changed again and again, last by %s; restored each time",
			    by);
	else
		log_warning("firewall", TABLE " was changed or removed by %s; restored", by);
}

/* --- the child ------------------------------------------------------------------------------ */

static void wait_for(struct firewall *f, uint64_t ms)
{
	f->fight.not_before = timers_now(f->options.timers) + ms;
}

static void failed(struct firewall *f, const char *why)
{
	f->found = false;
	f->confirmed = false;
	f->stats.held = 0;
	f->stats.failures++;
	wait_for(f, RETRY_MS);
	report_trouble(f, why);
}

static void standing(struct firewall *f, const struct firewall_verdict *v)
{
	f->found = false;
	f->why[0] = '\0';
	f->digest = v->digest;
	f->stats.held = v->parts;
	f->confirmed = true;
	f->suspect = f->lost || firewall_news_since(&f->news, v->generation);
	if (f->job.compare && v->did == FIREWALL_SET)
		report_repair(f);
	else if (f->fresh)
		report_set(f);
	f->fresh = false;
	f->by[0] = '\0';
	if (v->refused.text[0]) {
		wait_for(f, RETRY_MS);
		report_trouble(f, v->refused.text);
	} else {
		health_clear(f->options.health, "firewall");
	}
	timer_set(f->options.timers, &f->look, 10ULL * f->options.minute, f->options.minute);
}

static void on_done(const struct child_result *result, void *arg)
{
	struct firewall *f = arg;
	struct firewall_verdict v;
	struct err err = { "" };
	uint64_t now = timers_now(f->options.timers), pause = PAUSE_FACTOR * (now - f->started);

	f->child = NULL;
	f->next = now + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
	drain(f);
	if (firewall_verdict(result, &v, &err) < 0) {
		failed(f, err.text);
	} else if (v.did == FIREWALL_BUSY) {
		/* It stands, but who looked at it cannot tell whether as it was set. */
		f->confirmed = false;
		f->stats.held = v.parts;
		wait_for(f, BUSY_MS);
	} else {
		standing(f, &v);
	}
	f->lost = f->news.touched = false;
	firewall_job_done(&f->job);
	pass_mark(f->pass);
	f->options.changed(f->options.arg);
}

static int start_child(struct firewall *f)
{
	struct child_options o = {
		.run = firewall_child,
		.run_arg = &f->job,
		.on_done = on_done,
		.arg = f,
	};
	int r;

	/* Its counters start from zero. */
	firewall_drops(f);
	f->started = timers_now(f->options.timers);
	r = child_start(f->options.event, &o, &f->child);
	if (r < 0) {
		struct err err = { "" };

		firewall_job_done(&f->job);
		err_set(&err, r, "cannot start a child process: %s", strerror(-r));
		failed(f, err.text);
	}
	return r;
}

/* --- the pass ------------------------------------------------------------------------------- */

static int add_text(struct firewall_job *j, const struct firewall_wants *wants, unsigned parts)
{
	int r = desired_firewall(wants, parts, &j->texts[j->n]);

	if (r == 0)
		j->parts[j->n++] = parts;
	return r;
}

static int set_table(struct firewall *f, const struct firewall_wants *wants, unsigned parts)
{
	struct firewall_job *j = &f->job;
	int r;

	*j = (struct firewall_job){ .library = f->options.library,
				    .compare = f->confirmed && f->stats.held == parts,
				    .expect = f->digest };
	r = 0;
	/* What one part needs the kernel may not have: the others stand without it. */
	for (unsigned some = parts; r == 0 && some; some = (some - 1) & parts)
		r = add_text(j, wants, some);
	if (r < 0) {
		firewall_job_done(j);
		return r;
	}
	f->suspect = false;
	return start_child(f);
}

/* 0: it is time. */
static bool put_off(struct firewall *f, uint64_t not_before)
{
	uint64_t now = timers_now(f->options.timers);

	if (not_before <= now)
		return false;
	timer_set(f->options.timers, &f->later, not_before - now, 100);
	return true;
}

static int update_table(struct firewall *f, const struct firewall_wants *wants, unsigned parts)
{
	AUTO(free) char *text = NULL;
	struct err err = { "" };
	int r = desired_firewall(wants, parts, &text);
	bool same = r == 0 && f->text && strcmp(text, f->text) == 0;

	if (r < 0 || (same && f->confirmed && !f->suspect && f->stats.held == parts))
		return r;
	if (put_off(f, same ? f->fight.not_before : f->next))
		return 0;
	if (!same) {
		free(f->text);
		f->text = TAKE(text);
		f->fresh = true;
		f->confirmed = false;
	}
	/* Before the child: of what it cannot have seen there is an event. */
	r = listen_to_kernel(f);
	if (r == 0)
		return set_table(f, wants, parts);
	err_set(&err, r, "netlink of netfilter: %s", strerror(-r));
	failed(f, err.text);
	return r;
}

static int pass(void *arg)
{
	struct firewall *f = arg;
	struct firewall_wants wants = { 0 };
	unsigned parts;
	int r;

	/* Its end comes back here. */
	if (f->child)
		return 0;
	r = f->options.desire(&wants, f->options.arg);
	if (r < 0)
		return r;
	firewall_wants_sort(&wants);
	parts = firewall_parts(&wants);
	f->stats.wanted = parts;
	f->stats.nat = wants.nat.n;
	f->stats.pools = wants.pools.n;
	r = update_table(f, &wants, parts);
	free(wants.nat.v);
	free(wants.pools.v);
	free(wants.nodes.v);
	return r;
}

/* --- life ----------------------------------------------------------------------------------- */

static void on_look(void *arg)
{
	suspect(arg);
}

static void on_later(void *arg)
{
	pass_mark(((struct firewall *)arg)->pass);
}

/* A kernel without netfilter has no table. */
static bool is_there(void)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct err err = { "" };

	return netlink_open(NETLINK_NETFILTER, &k) == 0 && firewall_table_there(k, &err) > 0;
}

int firewall_new(const struct firewall_options *options, struct firewall **ret)
{
	AUTO(firewall_free) struct firewall *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->options = *options;
	f->look = (struct timer){ .fn = on_look, .arg = f };
	f->later = (struct timer){ .fn = on_later, .arg = f };
	r = pass_new(options->event, pass, f, &f->pass);
	if (r < 0)
		return r;
	f->found = is_there();
	f->stats.wanted = FIREWALL_ALWAYS;
	*ret = TAKE(f);
	return 0;
}

void firewall_free(struct firewall *f)
{
	if (!f)
		return;
	stop_listening(f);
	child_cancel(f->child);
	firewall_job_done(&f->job);
	pass_free(f->pass);
	free(f->text);
	free(f);
}

void firewall_open(struct firewall *f)
{
	pass_mark(f->pass);
	pass_open(f->pass, true);
}

void firewall_mark(struct firewall *f)
{
	pass_mark(f->pass);
}

struct firewall_stats firewall_stats(const struct firewall *f)
{
	return f->stats;
}

const char *firewall_lacks(const struct firewall *f)
{
	if (f->found || (f->stats.held & FIREWALL_ALWAYS) == FIREWALL_ALWAYS)
		return NULL;
	return f->why[0] ? f->why : "the agent has not set it yet";
}

struct firewall_drops firewall_drops(struct firewall *f)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct firewall_drops now;
	struct err err = { "" };

	if (netlink_open(NETLINK_NETFILTER, &k) < 0 || firewall_read_drops(k, &now, &err) < 0)
		return f->dropped;
	/* A table that was set again counts from zero. */
	for (size_t i = 0; i < FIREWALL_DROPS; i++)
		f->dropped.packets[i] += now.packets[i] >= f->last.packets[i]
						 ? now.packets[i] - f->last.packets[i]
						 : now.packets[i];
	f->last = now;
	return f->dropped;
}

struct pass_stats firewall_passes(const struct firewall *f)
{
	return pass_stats(f->pass);
}
