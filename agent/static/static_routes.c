/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/static/static_routes.h"

#include <errno.h>
#include <string.h>

#include "agent/static/static_decide.h"
#include "agent/static/static_report.h"
#include "agent/static/static_status.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/model/keys.h"

/* So many are named; the rest is counted. */
#define TOLD_AT_ONCE 10
#define ASK_AGAIN_MS 1000
#define TIMEOUT_MS   8000

struct static_routes {
	struct static_routes_options o;
	struct static_entries entries;
	struct prefixes protect;
	struct address probes[2];
	struct record_want *records, *spec;
	const struct registration *registration; /* NULL: not registered yet */
	bool pools_known;
	/* The cluster did not know this node when it came: then what is in the kernel and in no
	 * record is not taken for withdrawn. */
	bool unknown_here, strays_known;
	struct kroute *strays;
	size_t n_strays;
	/* The last decision, and of what moment of the view it is. */
	bool dirty;
	uint64_t decided_ways, decided_statics, told_statics;
	struct kroute *routes;
	size_t n_routes;
	struct static_report *report;
	struct store_call *asking; /* whether etcd still knows us */
	struct timer ask_again;
	char node_key[KEY_FULL_TEXT];
};

static const struct kernel_view *view_of(const struct static_routes *s)
{
	return kernel_seen(s->o.kernel);
}

static void mark(struct static_routes *s)
{
	s->dirty = true;
	kernel_mark(s->o.kernel);
}

/* Whether enough is known to add; to withdraw takes more. */
static bool may_add(const struct static_routes *s)
{
	return records_listed(s->records) && records_listed(s->spec) && s->pools_known;
}

static bool may_withdraw(const struct static_routes *s)
{
	return may_add(s) && s->registration && !static_report_reading(s->report);
}

/* --- the decision --------------------------------------------------------------------------- */

static int look_up(struct static_routes *s, const struct static_input *in)
{
	struct addresses ways = { 0 };
	int r = static_ways(&s->entries, in, &ways);

	for (size_t i = 0; r == 0 && i < ways.n; i++)
		r = kernel_look_up(s->o.kernel, &ways.v[i]);
	free(ways.v);
	return r;
}

static int decide(struct static_routes *s)
{
	struct static_input in = { .protect = s->protect,
				   .endpoints = s->o.endpoints,
				   .table = s->o.table,
				   .view = view_of(s) };
	const struct node_spec *spec = records_find(s->o.records, KEY_SPEC, s->o.node);
	AUTO(free) struct prefix *pools = NULL;
	int r;

	if (spec)
		in.labels = (struct labels){ spec->labels.v, spec->labels.n };
	memcpy(in.probes, s->probes, sizeof(in.probes));
	r = s->o.pools(&pools, &in.pools.n, s->o.arg);
	in.pools.v = pools;
	r = r ?: look_up(s, &in);
	return r ?: static_decide(&s->entries, &in);
}

static int find_strays(struct static_routes *s)
{
	if (s->strays_known || !may_withdraw(s))
		return 0;
	s->strays_known = true;
	return s->unknown_here ? static_held(view_of(s), &s->strays, &s->n_strays) : 0;
}

static int refresh(struct static_routes *s)
{
	const struct kernel_view *view = view_of(s);
	char now[TIME_TEXT];
	int r;

	if (!s->dirty && view->ways == s->decided_ways && view->statics == s->decided_statics)
		return 0;
	r = decide(s);
	if (r < 0)
		return r;
	static_watch(&s->entries, view, clock_utc_text(now));
	free(TAKE(s->routes));
	s->n_routes = 0;
	r = find_strays(s);
	r = r
		    ?: static_routes_wanted(&s->entries, view, s->strays, &s->n_strays, &s->routes,
					    &s->n_routes);
	if (r < 0)
		return r;
	s->dirty = false;
	s->decided_ways = view->ways;
	s->decided_statics = view->statics;
	s->told_statics = UINT64_MAX;
	return 0;
}

int static_routes_desire(struct static_routes *s, struct kernel_wants *ret)
{
	int r;

	if (!may_add(s))
		return 0;
	r = refresh(s);
	if (r < 0)
		return r;
	ret->routes = calloc(s->n_routes + 1, sizeof(*ret->routes));
	if (!ret->routes)
		return -ENOMEM;
	if (s->n_routes)
		memcpy(ret->routes, s->routes, s->n_routes * sizeof(*ret->routes));
	ret->n_routes = s->n_routes;
	ret->statics_known = may_withdraw(s);
	return 0;
}

void static_routes_restored(struct static_routes *s, const struct kroute *r)
{
	char now[TIME_TEXT];

	static_restored(&s->entries, r, clock_utc_text(now));
	s->told_statics = UINT64_MAX;
}

/* --- what came of it ------------------------------------------------------------------------ */

static void tell_lost(struct static_routes *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->entries.n && n < TOLD_AT_ONCE; i++) {
		char part[HEALTH_PART];

		if (s->entries.v[i]->life != STATIC_LOST)
			continue;
		n++;
		snprintf(part, sizeof(part), KEYS_STATIC_ROUTE "%s", s->entries.v[i]->name);
		health_set(s->o.health, part, LOG_LEVEL_WARNING,
			   "the record vanished with etcd's data; its route stays until it is "
			   "written again, or until roostd is restarted");
	}
	health_sweep(s->o.health, KEYS_STATIC_ROUTE);
}

/* One sentence for all: there may be thousands, and their statuses tell of each. */
static void tell_refused(struct static_routes *s)
{
	const struct static_entry *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->entries.n; i++)
		if (s->entries.v[i]->selected && s->entries.v[i]->why) {
			first = first ?: s->entries.v[i];
			n++;
		}
	if (first)
		health_set(s->o.health, "static-routes", LOG_LEVEL_WARNING,
			   "%zu static route%s cannot be as the record says, the first: %s: %s; "
			   "`roostctl route list` tells of all",
			   n, n == 1 ? "" : "s", first->name, first->why);
	else
		health_clear(s->o.health, "static-routes");
}

static void tell_health(struct static_routes *s)
{
	tell_lost(s);
	tell_refused(s);
	if (s->n_strays)
		health_set(s->o.health, "static-routes-kept", LOG_LEVEL_WARNING,
			   "%zu static routes are in the kernel that no record tells of, and etcd "
			   "did not know this node: they stay, in case etcd lost its data; write "
			   "their records again, or remove them with ip route flush proto %u",
			   s->n_strays, static_route_protocol);
	else
		health_clear(s->o.health, "static-routes-kept");
}

static bool detects(const struct static_routes *s)
{
	for (size_t i = 0; i < s->entries.n; i++)
		if (s->entries.v[i]->wanted && s->entries.v[i]->now &&
		    s->entries.v[i]->now->gateways.n == 0)
			return true;
	return false;
}

void static_routes_passed(struct static_routes *s)
{
	const struct kernel_view *view = view_of(s);
	char now[TIME_TEXT];

	if (!may_add(s) || s->told_statics == view->statics)
		return;
	if (static_status(&s->entries, view, s->o.node, clock_utc_text(now)) < 0) {
		log_error("static-routes", "out of memory");
		return;
	}
	s->told_statics = view->statics;
	tell_health(s);
	/* Our own routes may lead elsewhere what is detected. */
	if (view->statics != s->decided_statics && detects(s))
		kernel_mark(s->o.kernel);
	static_report_kick(s->report);
	s->o.changed(s->o.arg);
}

/* --- whether a deletion was meant ----------------------------------------------------------- */

static void ask(struct static_routes *s);

static void settle_doubt(struct static_routes *s, int64_t revision, int64_t known_since)
{
	for (size_t i = 0; i < s->entries.n; i++) {
		struct static_entry *e = s->entries.v[i];

		if (e->life != STATIC_DOUBTED || e->deleted_at > revision)
			continue;
		if (known_since && known_since < e->deleted_at) {
			e->life = STATIC_GONE;
		} else {
			e->life = STATIC_LOST;
			e->unread = true;
		}
	}
	mark(s);
}

/* Who deletes a record leaves the rest: a cluster that lost its data has lost this node, too. */
static void on_asked(const struct store_reply *reply, void *arg)
{
	struct static_routes *s = arg;
	const struct store_op_reply *op = reply->n_ops ? &reply->ops[0] : NULL;

	s->asking = NULL;
	if (reply->err == -ECANCELED)
		return;
	if (reply->err)
		timer_set(s->o.timers, &s->ask_again, ASK_AGAIN_MS, ASK_AGAIN_MS);
	else
		settle_doubt(s, reply->revision, op && op->n ? op->kvs[0].create_revision : 0);
}

static void ask(struct static_routes *s)
{
	if (!s->asking &&
	    store_get(s->o.store, s->node_key, TIMEOUT_MS, on_asked, s, &s->asking) < 0)
		timer_set(s->o.timers, &s->ask_again, ASK_AGAIN_MS, ASK_AGAIN_MS);
}

static void on_ask_again(void *arg)
{
	ask(arg);
}

/* --- records -------------------------------------------------------------------------------- */

static void on_put(struct static_routes *s, const struct record_event *e)
{
	struct static_entry *entry = NULL;

	if (static_take(&s->entries, e->key, e->kv, e->entry, &entry) < 0) {
		log_error("static-routes", "out of memory at %s", e->key);
		return;
	}
	if (!records_listed(s->records))
		entry->unread = true;
}

static void on_deleted(struct static_routes *s, const struct record_event *event)
{
	struct static_entry *e = static_find(&s->entries, event->parsed->name);

	if (!e)
		return;
	e->deleted_at = event->revision;
	if (static_is_deleting(e)) {
		e->life = STATIC_GONE;
	} else if (!records_in_sync(s->records)) {
		e->life = STATIC_LOST;
		e->unread = true;
	} else {
		e->life = STATIC_DOUBTED;
		ask(s);
	}
}

static void on_record(const struct record_event *e, void *arg)
{
	struct static_routes *s = arg;

	if (e->news == RECORD_PUT)
		on_put(s, e);
	else if (e->news == RECORD_GONE)
		on_deleted(s, e);
	else if (e->news == RECORD_LISTED)
		static_report_kick(s->report);
	mark(s);
}

static void on_spec(const struct record_event *e, void *arg)
{
	if (e->changed)
		mark(arg);
}

/* --- from the other parts ------------------------------------------------------------------- */

void static_routes_registered(struct static_routes *s, const struct registration *registration)
{
	const struct fence *fence = register_fence(registration);

	if (!s->registration)
		s->unknown_here = fence && fence->create_revision == fence->mod_revision;
	s->registration = registration;
	mark(s);
	static_report_kick(s->report);
}

void static_routes_notice(struct static_routes *s, enum store_notice notice)
{
	if (notice == STORE_CLUSTER_CHANGED || notice == STORE_REVISION_WENT_BACK) {
		static_report_forget(s->report);
	} else if (notice == STORE_WATCHING) {
		static_report_retry(s->report);
		static_report_kick(s->report);
	}
}

void static_routes_retry(struct static_routes *s)
{
	static_report_retry(s->report);
}

void static_routes_pools_known(struct static_routes *s)
{
	s->pools_known = true;
	mark(s);
}

void static_routes_pools_changed(struct static_routes *s)
{
	if (s->pools_known)
		mark(s);
}

static const struct fence *fence_of(void *arg)
{
	struct static_routes *s = arg;

	return records_listed(s->records) && s->registration ? register_fence(s->registration)
							     : NULL;
}

static void statuses_read(void *arg)
{
	mark(arg);
}

static void over(struct static_entry *e, void *arg)
{
	struct static_routes *s = arg;

	static_drop(&s->entries, e);
}

static void report_trouble(const char *text, void *arg)
{
	struct static_routes *s = arg;

	if (*text)
		health_set(s->o.health, "static-route-status", LOG_LEVEL_WARNING,
			   "how static routes are here cannot be written to etcd: %s", text);
	else
		health_clear(s->o.health, "static-route-status");
}

/* --- numbers -------------------------------------------------------------------------------- */

struct static_counts static_routes_counts(const struct static_routes *s)
{
	return static_count(&s->entries);
}

void static_routes_metrics(const struct static_routes *s, struct metrics *m)
{
	struct static_counts c = static_count(&s->entries);

	metrics_one(m, "roost_static_routes_selected", METRIC_GAUGE,
		    "Static routes whose records mean this node.", (double)c.selected);
	metrics_one(m, "roost_static_routes_applied", METRIC_GAUGE,
		    "Those of them that are in the kernel.", (double)c.applied);
	metrics_one(m, "roost_static_routes_errors", METRIC_GAUGE,
		    "Those of them with which something is wrong.", (double)c.errors);
	metrics_family(m, "roost_static_routes_tampered_total", METRIC_COUNTER,
		       "Times that another program removed or changed a static route.");
	metrics_count(m, NULL, c.tampered);
}

/* --- life ----------------------------------------------------------------------------------- */

static int want_records(struct static_routes *s)
{
	char spec[KEY_TEXT];
	int r = key_spec(spec, s->o.node);

	r = r ?: records_want(s->o.records, KEYS_STATIC_ROUTE, on_record, s, &s->records);
	return r ?: records_want(s->o.records, spec, on_spec, s, &s->spec);
}

static int copy_endpoints(struct static_routes *s, const struct prefixes *from)
{
	struct prefix *v = calloc(from->n ?: 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	if (from->n)
		memcpy(v, from->v, from->n * sizeof(*v));
	s->o.endpoints = (struct prefixes){ v, from->n };
	return 0;
}

static int make(struct static_routes *s, const struct static_routes_options *options,
		struct err *err)
{
	char relative[KEY_TEXT];
	struct static_report_options report = {
		.store = options->store,
		.timers = options->timers,
		.prefix = options->prefix,
		.node = options->node,
		.rest = options->minute / 12,
		.entries = &s->entries,
		.fence = fence_of,
		.read = statuses_read,
		.over = over,
		.trouble = report_trouble,
		.arg = s,
	};
	int r = copy_endpoints(s, &options->endpoints);

	r = r ?: static_subnets_parse(options->protect, &s->protect, err);
	r = r ?: static_probes_parse(options->probes, s->probes, err);
	r = r ?: key_node(relative, options->node);
	r = r ?: key_full(options->prefix, relative, s->node_key);
	r = r ?: static_report_new(&report, &s->report);
	return r ?: want_records(s);
}

int static_routes_new(const struct static_routes_options *options, struct static_routes **ret,
		      struct err *err)
{
	AUTO(static_routes_free) struct static_routes *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *options;
	s->o.endpoints = (struct prefixes){ 0 };
	s->dirty = true;
	s->ask_again = (struct timer){ .fn = on_ask_again, .arg = s };
	r = make(s, options, err);
	if (r < 0)
		return err->text[0] ? r : err_set(err, r, "static routes: %s", strerror(-r));
	*ret = TAKE(s);
	return 0;
}

void static_routes_free(struct static_routes *s)
{
	if (!s)
		return;
	if (s->asking)
		store_cancel(s->asking);
	timer_clear(s->o.timers, &s->ask_again);
	records_unwant(s->records);
	records_unwant(s->spec);
	static_report_free(s->report);
	static_entries_done(&s->entries);
	free(s->protect.v);
	free(s->o.endpoints.v);
	free(s->strays);
	free(s->routes);
	free(s);
}
