/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/confd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "confd/job.h"
#include "confd/resource.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/daemon/lifecycle.h"
#include "lib/daemon/metrics_daemon.h"
#include "lib/daemon/monitor.h"
#include "lib/daemon/program.h"
#include "lib/json/tree.h"

struct confd {
	struct confd_settings *settings;
	int argc;
	char *const *argv;
	sd_event *event;
	struct lifecycle *lifecycle;
	struct timers *timers;
	struct health *health;   /* of the monitor alone: a job's problem is its own */
	struct monitor *monitor; /* NULL: not asked for */
	struct store *store;
	bool connected;
	struct json_object *data;
	struct job_context context;
	struct job **jobs;
	size_t n_jobs;
	struct texts bad; /* names of resources that could not be read this time */
	bool failed;      /* something that is no job's outcome */
	struct err trouble;
	sd_event_source *deadline;
};

/* --- the end of --once ---------------------------------------------------------------------- */

static int exit_code(const struct confd *c)
{
	bool failed = c->failed || c->bad.n, different = false;

	for (size_t i = 0; i < c->n_jobs; i++) {
		failed |= job_state(c->jobs[i]) == JOB_FAILED ||
			  job_state(c->jobs[i]) == JOB_WAITING;
		different |= job_state(c->jobs[i]) == JOB_DIFFERENT;
	}
	return failed ? 1 : different ? 2 : 0;
}

static void end_if_done(struct confd *c)
{
	if (!c->settings->once)
		return;
	for (size_t i = 0; i < c->n_jobs; i++)
		if (job_state(c->jobs[i]) == JOB_WAITING)
			return;
	sd_event_exit(c->event, 0);
}

static void on_told(struct job *job, void *arg)
{
	end_if_done(arg);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *arg)
{
	struct confd *c = arg;

	for (size_t i = 0; i < c->n_jobs; i++)
		if (!job_ready(c->jobs[i]))
			c->failed = true;
	if (!c->failed)
		return 0;
	log_error("etcd", "%s",
		  c->trouble.text[0] ? c->trouble.text : "no answer, and nothing was rendered");
	return sd_event_exit(c->event, 0);
}

/* --- resources ------------------------------------------------------------------------------ */

static void forget_bad(struct confd *c)
{
	for (size_t i = 0; i < c->bad.n; i++)
		free((void *)(uintptr_t)c->bad.v[i]);
	free(c->bad.v);
	c->bad = (struct texts){ 0 };
}

static void on_bad(const char *name, const char *sentence, void *arg)
{
	struct confd *c = arg;
	const char **grown = reallocarray(c->bad.v, c->bad.n + 1, sizeof(*grown));

	log_error("confd", "%s", sentence);
	c->failed |= !grown;
	if (!grown)
		return;
	c->bad.v = grown;
	grown[c->bad.n] = strdup(name);
	c->failed |= !grown[c->bad.n];
	c->bad.n += grown[c->bad.n] != NULL;
}

static bool is_bad(const struct confd *c, const char *name)
{
	for (size_t i = 0; i < c->bad.n; i++)
		if (strcmp(c->bad.v[i], name) == 0)
			return true;
	return false;
}

/* Where its place in the list is; the end if it has none. */
static size_t find(const struct resources *all, const char *name)
{
	size_t i = 0;

	while (i < all->n && strcmp(all->v[i].name ?: "", name) != 0)
		i++;
	return i;
}

/* What is gone or another now ends; what is the same is taken off the list. */
static void keep_jobs(struct confd *c, struct resources *fresh)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n_jobs; i++) {
		const struct resource *old = job_resource(c->jobs[i]);
		size_t at = find(fresh, old->name);
		bool same = at < fresh->n && strcmp(fresh->v[at].text, old->text) == 0;

		if (!same && !is_bad(c, old->name)) {
			job_free(c->jobs[i]);
			continue;
		}
		if (same)
			resource_done(&fresh->v[at]);
		job_again(c->jobs[i]);
		c->jobs[kept++] = c->jobs[i];
	}
	c->n_jobs = kept;
}

static int start_jobs(struct confd *c, struct resources *fresh)
{
	struct job **grown = reallocarray(c->jobs, c->n_jobs + fresh->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	c->jobs = grown;
	for (size_t i = 0; i < fresh->n; i++) {
		struct err err = { "" };

		if (!fresh->v[i].name)
			continue;
		if (job_new(&c->context, &fresh->v[i], &c->jobs[c->n_jobs], &err) < 0) {
			err_wrap(&err, 0, "%s/%s.json", c->settings->resource_dir,
				 fresh->v[i].name);
			on_bad(fresh->v[i].name, err.text, c);
		} else {
			c->n_jobs++;
		}
	}
	return 0;
}

static int load(struct confd *c, struct err *err)
{
	AUTO_DONE(resources_done) struct resources fresh = { 0 };
	const char *only = c->settings->resource;
	int r;

	forget_bad(c);
	r = resources_load(c->settings->resource_dir, only[0] ? only : NULL, on_bad, c, &fresh,
			   err);
	if (r < 0)
		return r;
	keep_jobs(c, &fresh);
	r = start_jobs(c, &fresh);
	if (r < 0)
		return err_set(err, r, "out of memory");
	if (c->n_jobs + c->bad.n == 0)
		log_warning("confd", "%s has no resources", c->settings->resource_dir);
	return 0;
}

/* --- etcd ----------------------------------------------------------------------------------- */

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct confd *c = arg;

	if (notice == STORE_CLUSTER_CHANGED || notice == STORE_REVISION_WENT_BACK)
		for (size_t i = 0; i < c->n_jobs; i++)
			job_went_back(c->jobs[i]);
	c->connected = notice == STORE_WATCHING || (c->connected && notice != STORE_TROUBLE);
	if (notice == STORE_WATCHING)
		log_info("etcd", "%s", text);
	else if (strcmp(text, c->trouble.text) != 0)
		log_warning("etcd", "%s", text);
	c->trouble.text[0] = '\0';
	if (notice == STORE_TROUBLE)
		err_set(&c->trouble, 0, "%s", text);
}

static int open_store(struct confd *c, struct err *err)
{
	struct err warning;
	int r = store_open(c->event, &c->settings->etcd, NULL, &c->store, &warning, err);

	if (r < 0)
		return r;
	if (warning.text[0])
		log_warning("confd", "%s", warning.text);
	store_on_notice(c->store, on_notice, c);
	return 0;
}

static int read_data(struct confd *c, struct err *err)
{
	bool input = strcmp(c->settings->data, "-") == 0;
	const char *name = input ? "standard input" : c->settings->data;
	AUTO(fclose) FILE *in = fopen(input ? "/dev/stdin" : name, "re");
	AUTO(free) char *text = NULL;
	size_t len;
	int r;

	if (!in)
		return err_set(err, -errno, "%s: %s", name, strerror(errno));
	text = malloc(JSON_SIZE_MAX + 1);
	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	len = fread(text, 1, JSON_SIZE_MAX + 1, in);
	if (ferror(in))
		return err_set(err, -EIO, "%s cannot be read", name);
	r = json_parse(text, len, &c->data, err);
	return r < 0 ? err_wrap(err, r, "%s", name) : 0;
}

/* --- what the monitor shows ----------------------------------------------------------------- */

static const char *name_of(const struct confd *c, size_t i)
{
	return job_resource(c->jobs[i])->name;
}

static void show_states(const struct confd *c, struct metrics *m)
{
	metrics_one(m, "roost_confd_resources_invalid", METRIC_GAUGE,
		    "Resources whose file cannot be read.", (double)c->bad.n);
	metrics_family(m, "roost_confd_resource_failed", METRIC_GAUGE,
		       "1 while a resource's file is not what etcd's keys say.");
	for (size_t i = 0; i < c->n_jobs; i++)
		metrics_count(m, LABELS({ "resource", name_of(c, i) }),
			      job_state(c->jobs[i]) == JOB_FAILED);
	metrics_family(m, "roost_confd_resource_kept", METRIC_GAUGE,
		       "1 while a resource's file is kept because etcd was restored or emptied.");
	for (size_t i = 0; i < c->n_jobs; i++)
		metrics_count(m, LABELS({ "resource", name_of(c, i) }), job_keeps(c->jobs[i]));
}

static void show_counts(const struct confd *c, struct metrics *m)
{
	metrics_family(m, "roost_confd_publications_total", METRIC_COUNTER,
		       "Renderings, by result.");
	for (size_t i = 0; i < c->n_jobs; i++)
		for (unsigned r = PUBLISH_UNCHANGED; r < PUBLISH_RESULTS; r++)
			metrics_count(m,
				      LABELS({ "resource", name_of(c, i) },
					     { "result", publish_result_name(r) }),
				      job_stats(c->jobs[i])->results[r]);
	metrics_family(m, "roost_confd_reloads_total", METRIC_COUNTER, "Reloads, by outcome.");
	for (size_t i = 0; i < c->n_jobs; i++)
		for (unsigned a = 0; a < PUBLISH_ANSWERS; a++)
			metrics_count(m,
				      LABELS({ "resource", name_of(c, i) },
					     { "outcome", publish_answer_name(a) }),
				      job_stats(c->jobs[i])->reloads[a]);
}

static void show_metrics(struct serve_request *request, void *arg)
{
	AUTO_DONE(metrics_done) struct metrics m = { 0 };
	const struct confd *c = arg;
	struct store_stats etcd;

	store_stats(c->store, &etcd);
	metrics_family(&m, "roost_build_info", METRIC_GAUGE, "1, with the version of roost-confd.");
	metrics_count(&m, LABELS({ "version", ROOST_VERSION }), 1);
	show_states(c, &m);
	show_counts(c, &m);
	metrics_etcd(&m, &etcd, c->connected,
		     etcd.heard ? clock_monotonic_us() - etcd.heard : UINT64_MAX);
	metrics_problems(&m, c->health);
	metrics_process(&m);
	if (m.err < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "metrics: %s",
				  strerrordesc_np(-m.err));
	else
		serve_reply_text(request, 200, METRICS_CONTENT_TYPE, m.text, m.len);
}

/* Whoever answers lives. */
static void show_healthz(struct serve_request *request, void *arg)
{
	serve_reply(request, 200, "{\"ok\":true}");
}

/* A file that could not be made is a problem, but no reason to end this process. */
static void show_readyz(struct serve_request *request, void *arg)
{
	AUTO(json_put) struct json_object *o = NULL;
	const struct confd *c = arg;
	struct tree t = tree_new();
	bool ready = c->connected;

	for (size_t i = 0; i < c->n_jobs; i++)
		ready = ready && job_ready(c->jobs[i]);
	tree_bool(&t, "ready", ready);
	tree_text(&t, "reason",
		  ready           ? ""
		  : !c->connected ? "not connected to etcd"
				  : "the keys are still being read");
	tree_open(&t, "problems", '[');
	for (size_t i = 0; i < c->n_jobs; i++) {
		if (job_state(c->jobs[i]) != JOB_FAILED)
			continue;
		tree_open(&t, NULL, '{');
		tree_text(&t, "part", name_of(c, i));
		tree_text(&t, "reason", job_reason(c->jobs[i]));
		tree_close(&t);
	}
	tree_close(&t);
	if (tree_end(&t, &o) < 0)
		serve_reply_error(request, 500, CNI_CODE_IO, NULL, "out of memory");
	else
		serve_reply_json(request, ready ? 200 : 503, o);
}

static const struct serve_route routes[] = {
	{ "GET", "/metrics", show_metrics },
	{ "GET", "/healthz", show_healthz },
	{ "GET", "/readyz", show_readyz },
};

/* --- life ----------------------------------------------------------------------------------- */

static void on_stop(const char *why, void *arg)
{
	struct confd *c = arg;

	log_info("confd", "stopping: %s", why);
	/* What was begun and not done has failed; a second start does it. */
	c->failed |= c->settings->once;
	lifecycle_stopped(c->lifecycle);
}

static void on_reload(void *arg)
{
	AUTO_DONE(confd_settings_done) struct confd_settings fresh = { 0 };
	const struct option_def *def = NULL;
	struct confd *c = arg;
	enum options_verb verb;
	struct err err = { "" };

	if (confd_settings_load(c->argc, c->argv, environ, &fresh, &verb, &err) < 0) {
		log_error("confd", "reload: %s; options stay as they were", err.text);
	} else {
		while ((def = options_differ(&confd_settings_table, c->settings, &fresh, def)))
			if (!def->live)
				log_warning("confd",
					    "--%s cannot change while roost-confd runs: "
					    "restart it",
					    def->name);
		c->settings->log_level = fresh.log_level;
		log_set_level(c->settings->log_level);
	}
	if (load(c, &err) < 0)
		log_error("confd", "reload: %s; resources stay as they were", err.text);
	else
		log_info("confd", "reload: %zu resources, %zu of them cannot be read",
			 c->n_jobs + c->bad.n, c->bad.n);
}

static int open_monitor(struct confd *c)
{
	int r;

	if (!c->settings->metrics[0] || c->settings->once)
		return 0;
	r = timers_loop_new(c->event, &c->timers);
	r = r < 0 ? r : health_new(NULL, NULL, &c->health);
	if (r < 0)
		return r;
	return monitor_new(
		&(struct monitor_options){
			.event = c->event,
			.timers = c->timers,
			.health = c->health,
			.address = c->settings->metrics,
			.routes = routes,
			.n_routes = ARRAY_SIZE(routes),
			.arg = c,
		},
		&c->monitor);
}

static int set_deadline(struct confd *c)
{
	int r = 0;

	if (c->settings->once && c->store)
		r = sd_event_add_time_relative(c->event, &c->deadline, CLOCK_MONOTONIC,
					       CONFD_ETCD_MS * 1000ULL, 0, on_deadline, c);
	return r < 0 ? r : 0;
}

static int start(struct confd *c, struct err *err)
{
	static const struct lifecycle_handlers handlers = { on_stop, on_reload };
	const struct confd_settings *s = c->settings;
	int r = sd_event_default(&c->event);

	r = r < 0 ? r : lifecycle_new(c->event, &handlers, c, &c->lifecycle);
	r = r < 0 ? r : s->data[0] ? read_data(c, err) : open_store(c, err);
	if (r < 0)
		return r;
	c->context = (struct job_context){
		.event = c->event,
		.store = c->store,
		.data = c->data,
		.prefix = s->etcd.prefix,
		.template_dir = s->template_dir,
		.state_dir = s->state_dir,
		.dry_run = s->dry_run,
		.accept = s->accept,
		.told = on_told,
		.arg = c,
	};
	r = load(c, err);
	/* The folder may come later; the next SIGHUP reads it. */
	if (r < 0 && !s->once) {
		log_error("confd", "%s", err->text);
		err->text[0] = '\0';
		r = 0;
	}
	r = r < 0 ? r : open_monitor(c);
	r = r < 0 ? r : set_deadline(c);
	if (r < 0)
		return r;
	lifecycle_ready(c->lifecycle);
	end_if_done(c);
	return 0;
}

int confd_new(struct confd_settings *settings, int argc, char *const *argv, struct confd **ret,
	      struct err *err)
{
	AUTO(confd_free) struct confd *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->settings = settings;
	c->argc = argc;
	c->argv = argv;
	r = start(c, err);
	if (r < 0)
		return err->text[0] ? r : err_set(err, r, "%s", strerror(-r));
	*ret = TAKE(c);
	return 0;
}

int confd_run(struct confd *c)
{
	int r = sd_event_loop(c->event);

	if (r < 0)
		log_error("confd", "the event loop failed: %s", strerror(-r));
	return r < 0 ? 1 : c->settings->once ? exit_code(c) : 0;
}

void confd_free(struct confd *c)
{
	if (!c)
		return;
	monitor_free(c->monitor);
	for (size_t i = 0; i < c->n_jobs; i++)
		job_free(c->jobs[i]);
	free(c->jobs);
	forget_bad(c);
	sd_event_source_disable_unref(c->deadline);
	store_free(c->store);
	health_free(c->health);
	timers_loop_free(c->timers);
	json_object_put(c->data);
	lifecycle_free(c->lifecycle);
	sd_event_unref(c->event);
	free(c);
}
