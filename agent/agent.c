/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/kernel/reaper.h"
#include "agent/node/lock.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/log.h"
#include "lib/cni/cni_away.h"

#define SOCKET_NAME "agent.sock"

/* --- status --------------------------------------------------------------------------------- */

static void choose_log_level(const struct agent *a)
{
	log_set_level(ipam_log_level(a->ipam, a->settings->log_level));
}

void agent_changed(void *arg)
{
	struct agent *a = arg;

	if (a->ipam)
		choose_log_level(a);
	status_watch_changed(&a->status_watch);
	if (a->report)
		report_changed(a->report);
}

/* --- life ----------------------------------------------------------------------------------- */

static void stopped(void *arg)
{
	struct agent *a = arg;

	lifecycle_stopped(a->lifecycle);
}

static void on_stop(const char *why, void *arg)
{
	struct agent *a = arg;

	log_info("agent", "stopping: %s; pods, routes and addresses stay as they are", why);
	health_set(a->health, "agent", LOG_LEVEL_INFO, "stopped: %s", why);
	if (a->report)
		report_farewell(a->report, stopped, a);
	else
		stopped(a);
}

static void told(const char *sentence, bool taken, void *arg)
{
	if (taken)
		log_info("agent", "%s", sentence);
	else
		log_warning("agent", "%s", sentence);
}

static void on_reload(void *arg)
{
	AUTO_DONE(settings_done) struct settings fresh = { 0 };
	struct agent *a = arg;
	enum options_verb verb;
	struct err err = { "" };

	if (settings_load(a->argc, a->argv, environ, &fresh, &verb, &err) < 0) {
		log_error("agent", "reload: %s; everything stays as it was", err.text);
		return;
	}
	settings_take_over(a->settings, &fresh, told, a);
	choose_log_level(a);
	if (a->routing)
		routing_changed(a->routing);
}

static void answered(const char *path, unsigned status, uint64_t us, void *arg)
{
	struct agent *a = arg;

	request_stats_add(&a->requests, path, status, us);
}

static void refused(int error, void *arg)
{
	struct agent *a = arg;

	if (error)
		health_set(a->health, "socket", LOG_LEVEL_ERROR,
			   "no connection can be accepted: %s; plugins wait until it can",
			   strerror(error));
	else
		health_clear(a->health, "socket");
}

static int open_socket(struct agent *a, struct err *err)
{
	struct serve_config config = {
		.arg = a,
		.answered = answered,
		.refused = refused,
		.routes = api_routes(),
		.n_routes = api_n_routes(),
		/* Garbage collection lists every attachment of a node. */
		.max_body = 1024UL * 1024UL,
	};
	char path[512];
	int r;

	snprintf(path, sizeof(path), "%s/" SOCKET_NAME, a->settings->run_dir);
	r = serve_listen_unix(path, 0600, &config.fd);
	if (r == 0) {
		r = serve_new(a->event, &config, &a->serve);
		if (r < 0)
			close(config.fd);
	}
	if (r == 0)
		cni_away_over(path);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/*
 * The mark of a drain came or went. Or another program has cleaned up /run/roost: without the
 * socket no pod could start.
 */
static int on_run_dir(sd_event_source *source, const struct inotify_event *e, void *arg)
{
	struct agent *a = arg;
	struct err err = { "" };

	if (e->len && strcmp(e->name, DRAIN_MARK) == 0)
		ipam_mark_changed(a->ipam);
	if (!e->len || strcmp(e->name, SOCKET_NAME) != 0 ||
	    !(e->mask & (IN_DELETE | IN_MOVED_FROM)))
		return 0;
	log_warning("agent", "%s/" SOCKET_NAME " was removed by somebody and is made again",
		    a->settings->run_dir);
	serve_free(TAKE(a->serve));
	if (open_socket(a, &err) < 0) {
		log_error("agent", "%s", err.text);
		return sd_event_exit(a->event, -EIO);
	}
	return 0;
}

static int watch_socket(struct agent *a)
{
	int r = sd_event_add_inotify(a->event, &a->socket_watch, a->settings->run_dir,
				     IN_DELETE | IN_MOVED_FROM | IN_CREATE | IN_MOVED_TO,
				     on_run_dir, a);

	return r < 0 ? r : 0;
}

/* --- start and end -------------------------------------------------------------------------- */

static int make_keys(struct agent *a)
{
	char relative[KEY_TEXT];
	int r = key_node(relative, a->identity.name);

	r = r ?: key_full(a->settings->etcd.prefix, relative, a->node_key);
	r = r ?: key_status_node(relative, a->identity.name);
	return r ?: key_full(a->settings->etcd.prefix, relative, a->status_key);
}

static int start(struct agent *a, struct err *err)
{
	static const struct lifecycle_handlers handlers = { on_stop, on_reload };
	int r = lock_take(NULL, &a->lock, err);
	int run;

	if (r < 0)
		return r;
	run = dir_open(a->settings->run_dir);
	if (run < 0)
		return err_set(err, run, "%s: %s", a->settings->run_dir, strerror(-run));
	close(run);
	/* Early: the child keeps what the agent holds now. */
	r = reaper_new(&a->reaper);
	r = r < 0 ? r : sd_event_default(&a->event);
	r = r < 0 ? r : lifecycle_new(a->event, &handlers, a, &a->lifecycle);
	r = r < 0 ? r : timers_loop_new(a->event, &a->timers);
	if (r >= 0)
		status_watch_init(&a->status_watch, a->timers, agent_answer_status, a);
	r = r < 0 ? r : health_new(agent_changed, a, &a->health);
	r = r < 0 ? r : agent_identify(a, err);
	r = r < 0 ? r : make_keys(a);
	r = r < 0 ? r : agent_open_store(a, err);
	r = r < 0 ? r
		  : certificates_new(a->timers, a->health, a->store,
				     *a->settings->lease.servers ? a->settings->lease.cert
								 : a->settings->etcd.cert,
				     &a->certificates);
	r = r < 0 ? r
		  : network_config_new(
			    &(struct network_config_options){
				    .event = a->event,
				    .timers = a->timers,
				    .health = a->health,
				    .conf_dir = a->settings->cni_conf_dir,
				    .bin_dirs = a->settings->cni_bin_dir,
				    .minute = a->settings->minute,
			    },
			    &a->network_config);
	r = r < 0 ? r : agent_open_parts(a, err);
	r = r < 0 ? r : open_socket(a, err);
	r = r < 0 ? r : watch_socket(a);
	if (r >= 0 && a->settings->metrics[0])
		r = monitor_new(
			&(struct monitor_options){
				.event = a->event,
				.timers = a->timers,
				.health = a->health,
				.address = a->settings->metrics,
				.routes = api_monitor_routes(),
				.n_routes = api_n_monitor_routes(),
				.arg = a,
			},
			&a->monitor);
	if (r < 0)
		return r;
	/* From here on the socket answers, be it with the reason why there is no address yet. */
	lifecycle_ready(a->lifecycle);
	a->identify = (struct timer){ .fn = agent_on_identify, .arg = a };
	return a->identified ? agent_start_registration(a) : 0;
}

int agent_new(struct settings *settings, int argc, char *const *argv, struct agent **ret,
	      struct err *err)
{
	AUTO(agent_free) struct agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->settings = settings;
	a->argc = argc;
	a->argv = argv;
	a->lock = -1;
	/* Exact: a restart within the second must not look like the same agent, whose fence stands.
	 */
	clock_utc_exact(a->started);
	r = start(a, err);
	if (r < 0)
		return err->text[0] ? r : err_set(err, r, "%s", strerror(-r));
	*ret = TAKE(a);
	return 0;
}

int agent_run(struct agent *a)
{
	return sd_event_loop(a->event);
}

/*
 * In the reverse order of their making, and each is out of the agent before it is freed: what a
 * part stands on is there until its end, and what stands on it is NULL for the callbacks, as it was
 * when the part was made.
 */
void agent_free(struct agent *a)
{
	if (!a)
		return;
	if (a->timers)
		timer_clear(a->timers, &a->identify);
	register_free(TAKE(a->registration));
	report_free(TAKE(a->report));
	monitor_free(TAKE(a->monitor));
	a->socket_watch = sd_event_source_disable_unref(a->socket_watch);
	serve_free(TAKE(a->serve));
	static_routes_free(TAKE(a->statics));
	overlay_free(TAKE(a->overlay));
	routing_free(TAKE(a->routing));
	firewall_free(TAKE(a->firewall));
	ipam_free(TAKE(a->ipam));
	records_free(TAKE(a->records));
	kernel_free(TAKE(a->kernel));
	reaper_free(TAKE(a->reaper));
	network_config_free(TAKE(a->network_config));
	certificates_free(TAKE(a->certificates));
	store_free(TAKE(a->store));
	health_free(TAKE(a->health));
	status_watch_done(&a->status_watch);
	timers_loop_free(TAKE(a->timers));
	lifecycle_free(TAKE(a->lifecycle));
	sd_event_unref(TAKE(a->event));
	if (a->lock >= 0)
		close(a->lock);
	free(a);
}
