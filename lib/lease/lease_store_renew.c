/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/endpoint.h"
#include "lib/lease/lease_store_parts.h"

#define SPREAD 256

static int64_t now_utc(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

static void plan_renewal(struct lease_store *s);

static void wake_in(struct lease_store *s, uint64_t ms)
{
	sd_event_source_set_time_relative(s->renew, ms * 1000);
	sd_event_source_set_enabled(s->renew, SD_EVENT_ONESHOT);
}

/* Of several the one that ends first; NULL: none that ends. */
static const struct lease *ends_first(const struct lease_store *s)
{
	const struct lease *first = NULL;

	for (const struct lease *l = NULL; (l = lease_mirror_own(&s->mirror, l));)
		if (l->expires && (!first || l->expires < first->expires))
			first = l;
	return first;
}

void lease_store_mirrored(struct lease_store *s, bool changed)
{
	if (changed)
		memory_changed(&s->memory);
	plan_renewal(s);
}

static void on_renewed(const struct lease_answer *answer, void *arg)
{
	struct lease_store *s = arg;
	struct err err = { "" };
	struct lease lease;

	s->renewing = NULL;
	if (answer->status == 200 && lease_read(answer->body, answer->len, &lease, &err) == 0) {
		lease.holder = s->attrs.holder;
		lease.mac = s->attrs.mac;
		lease_store_granted(s, &lease, answer->sent);
		return;
	}
	s->overdue = true;
	/* Whose it is now, the list tells; if it is ours after all: again. */
	lease_client_look(s->client);
	wake_in(s, s->minute_ms);
}

int lease_store_ask(struct lease_store *s, const char *method, const struct lease *lease,
		    lease_answer_fn *fn, struct lease_ask **ret)
{
	char path[64] = "/leases", subnet[PREFIX_TEXT];
	AUTO(free) char *body = NULL;
	int r = 0;

	if (lease->subnet.address.family)
		snprintf(path, sizeof(path), "/leases/%s",
			 prefix_print_key(&lease->subnet, subnet));
	if (strcmp(method, "PUT") == 0)
		r = lease_print(lease, s->mirror.cut.vni, &body);
	else if (strcmp(method, "POST") == 0)
		r = lease_attrs_print(lease, s->mirror.cut.vni, &body);
	return r ?: lease_client_ask(s->client, method, path, body, fn, s, ret);
}

int lease_store_renew(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lease_store *s = arg;
	const struct lease *lease = ends_first(s) ?: lease_mirror_own(&s->mirror, NULL);
	struct lease renewed;

	if (!lease || s->renewing || !s->acquired)
		return 0;
	renewed = s->attrs;
	renewed.subnet = lease->subnet;
	renewed.expires = lease->expires;
	if (lease_store_ask(s, "PUT", &renewed, on_renewed, &s->renewing) < 0)
		wake_in(s, s->minute_ms);
	return 0;
}

void lease_store_assert(struct lease_store *s)
{
	if (s->acquired)
		wake_in(s, 0);
}

/*
 * At the half of what is left, so that the server's clock and ours may differ by hours; a bit
 * earlier by our name, so that nodes which came together do not renew together.
 */
static void plan_renewal(struct lease_store *s)
{
	const struct lease *lease = ends_first(s);
	int64_t left, wait;

	if (!lease || s->renewing || !s->acquired)
		return;
	if (prefix_compare(&s->planned.subnet, &lease->subnet) == 0 &&
	    s->planned.expires == lease->expires)
		return;
	s->planned = *lease;
	left = lease->expires - now_utc();
	wait = left / 2 - left / 8 * (int64_t)endpoints_start(s->node, SPREAD) / SPREAD;
	/* Never faster than each minute, whatever the clocks say. */
	wake_in(s, wait < 60 ? s->minute_ms : (uint64_t)wait * s->minute_ms / 60);
}

/* --- is it still ours? ---------------------------------------------------------------------- */

static void on_checked(const struct lease_answer *answer, void *arg)
{
	AUTO_DONE(lease_changes_done) struct lease_changes changes = { 0 };
	struct lease_store *s = arg;

	s->checking = NULL;
	if (answer->status != 200 || s->overdue ||
	    lease_changes_read(answer->body, answer->len, &changes, NULL) < 0)
		return;
	for (size_t i = 0; i < changes.n; i++)
		if (!changes.v[i].removed &&
		    address_compare(&changes.v[i].lease.holder, &s->attrs.holder) == 0 &&
		    answer->sent > s->confirmed)
			s->confirmed = answer->sent;
}

/*
 * A lease of a day is renewed after half a day: until then the server is asked whether it stands,
 * at a third of the time for which an answer counts (reclaimAfter less ten minutes,
 * agent/addresses/authority.h). Where the lease may end within that time, only a renewal confirms it.
 */
int lease_store_check(sd_event_source *source, uint64_t usec, void *arg)
{
	struct lease_store *s = arg;
	const struct lease *own = lease_mirror_own(&s->mirror, NULL);
	const struct lease *first = ends_first(s);
	int64_t counts = (int64_t)s->mirror.reclaim_after - 600; /* s */
	int64_t third = counts * s->minute_ms / 60 / 3;
	char path[64], subnet[PREFIX_TEXT];

	sd_event_source_set_time_relative(s->check, s->minute_ms * 1000ULL);
	sd_event_source_set_enabled(s->check, SD_EVENT_ONESHOT);
	if (!own || !s->acquired || s->checking || s->renewing || s->overdue ||
	    (first && first->expires - now_utc() < counts) ||
	    (int64_t)clock_boottime_ns() - s->confirmed < third * 1000000)
		return 0;
	snprintf(path, sizeof(path), "/leases/%s", prefix_print_key(&own->subnet, subnet));
	lease_client_ask(s->client, "GET", path, NULL, on_checked, s, &s->checking);
	return 0;
}

void lease_store_granted(struct lease_store *s, const struct lease *lease, int64_t sent)
{
	bool changed = lease_mirror_self(&s->mirror, &lease->holder);

	s->confirmed = sent;
	s->overdue = false;
	changed |= lease_mirror_put(&s->mirror, lease);
	if (lease->expires)
		changed |= lease_mirror_lasts(&s->mirror, lease->expires - now_utc());
	s->planned = (struct lease){ 0 };
	lease_store_mirrored(s, changed);
}
