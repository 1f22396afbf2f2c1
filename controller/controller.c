/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/daemon/program.h"

/* --- leading -------------------------------------------------------------------------------- */

static void on_elected(int64_t token, void *arg)
{
	struct controller *c = arg;
	int r;

	c->leads = true;
	c->elections++;
	log_info("election", "this controller leads, token %lld", (long long)token);
	lifecycle_status(c->lifecycle, "leads");
	r = keeper_start(c->keeper);
	if (r < 0) {
		log_error("keeper", "%s", strerror(-r));
		sd_event_exit(c->event, r);
	}
	controller_kube_start(c);
}

static void on_deposed(const char *why, void *arg)
{
	struct controller *c = arg;

	c->leads = false;
	log_warning("election", "this controller is no longer the leader: %s", why);
	lifecycle_status(c->lifecycle, "stands by");
	controller_kube_stop(c);
	keeper_stop(c->keeper);
	/* The mirror of a large cluster is many megabytes, and a stand-by needs none of it. */
	malloc_trim(0);
}

static void on_leader(const char *id, void *arg)
{
	struct controller *c = arg;

	snprintf(c->leader, sizeof(c->leader), "%s", id ?: "");
	if (id && strcmp(id, c->id) != 0)
		log_info("election", "%s leads, this controller stands by", id);
}

static void on_trouble(const char *text, void *arg)
{
	struct controller *c = arg;

	if (text[0])
		health_set(c->health, "election", LOG_LEVEL_WARNING, "%s", text);
	else
		health_clear(c->health, "election");
}

static void on_changed(void *arg)
{
	struct controller *c = arg;

	pass_mark(c->pass);
}

static int on_pass(void *arg)
{
	struct controller *c = arg;

	return keeper_pass(c->keeper);
}

/* --- etcd ----------------------------------------------------------------------------------- */

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	struct controller *c = arg;

	if (notice == STORE_WATCHING) {
		c->connected = true;
		/* Reading lists took memory that is not needed again. */
		malloc_trim(0);
		health_clear(c->health, "etcd");
		log_info("etcd", "%s", text);
	} else if (notice == STORE_TROUBLE) {
		c->connected = false;
		health_set(c->health, "etcd", LOG_LEVEL_WARNING, "%s", text);
	} else {
		log_error("etcd", "%s; all keys are read again", text);
	}
	if (notice == STORE_CLUSTER_CHANGED || notice == STORE_REVISION_WENT_BACK)
		keeper_went_back(c->keeper);
	elect_notice(c->elect, notice, text);
	lease_server_notice(c->lease, notice);
}

static int open_store(struct controller *c, struct err *err)
{
	struct err warning;
	int r = store_open(c->event, &c->settings->etcd, c->id, &c->store, &warning, err);

	if (r < 0)
		return r;
	if (warning.text[0])
		log_warning("controller", "%s", warning.text);
	store_check_transport(&c->settings->etcd, c->health);
	store_on_notice(c->store, on_notice, c);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

static void stopped(void *arg)
{
	struct controller *c = arg;

	lifecycle_stopped(c->lifecycle);
}

static void on_stop(const char *why, void *arg)
{
	struct controller *c = arg;

	log_info("controller", "stopping: %s", why);
	elect_resign(c->elect, stopped, c);
}

static void on_reload(void *arg)
{
	AUTO_DONE(controller_settings_done) struct controller_settings fresh = { 0 };
	struct controller *c = arg;
	enum options_verb verb;
	struct err err = { "" };

	if (controller_settings_load(c->argc, c->argv, environ, &fresh, &verb, &err) < 0) {
		log_error("controller", "reload: %s; the settings are unchanged", err.text);
		return;
	}
	c->settings->log_level = fresh.log_level;
	log_set_level(fresh.log_level);
	lease_server_reload(c->lease);
	log_info("controller", "the log level and the lease server's certificate, CA and CRL are "
			       "reloaded; other settings need a restart");
}

/* One that starts again is another one. */
static int make_id(struct controller *c, struct err *err)
{
	char host[NODE_NAME_TEXT] = "";
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_set(err, -errno, "cannot get a random number");
	gethostname(host, sizeof(host) - 1);
	snprintf(c->id, sizeof(c->id), "%.100s-%08" PRIx32,
		 c->settings->name[0] ? c->settings->name : host, random);
	if (id_check(c->id, NULL) < 0)
		snprintf(c->id, sizeof(c->id), "controller-%08" PRIx32, random);
	return 0;
}

static int open_election(struct controller *c)
{
	static const struct elect_handlers handlers = { on_elected, on_deposed, on_leader,
							on_trouble };
	const struct elect_options options = {
		.store = c->store,
		.timers = c->timers,
		.prefix = c->settings->etcd.prefix,
		.id = c->id,
		.address = c->settings->metrics,
		.ttl = c->settings->lease,
		.handlers = &handlers,
		.arg = c,
	};
	int r = elect_new(&options, &c->elect);

	if (r < 0)
		return r;
	return keeper_new(
		&(struct keeper_options){
			.store = c->store,
			.timers = c->timers,
			.health = c->health,
			.elect = c->elect,
			.prefix = c->settings->etcd.prefix,
			.minute = c->settings->minute,
			.kube = c->settings->kubernetes ? &c->kube_nodes : NULL,
			.expect = controller_kube_expect,
			.changed = on_changed,
			.arg = c,
		},
		&c->keeper);
}

static int open_lease_server(struct controller *c, struct err *err)
{
	const struct controller_settings *s = c->settings;

	if (!s->lease_listen[0])
		return 0;
	return lease_server_new(
		&(struct lease_server_options){
			.event = c->event,
			.timers = c->timers,
			.health = c->health,
			.store = c->store,
			.prefix = s->etcd.prefix,
			.listen = s->lease_listen,
			.files = { s->lease_cert, s->lease_key, s->lease_client_ca,
				   s->lease_client_crl },
			.ttl = s->lease_ttl,
			.operators = s->lease_operator,
			.quota = s->lease_quota,
		},
		&c->lease, err);
}

int controller_new(struct controller_settings *settings, int argc, char *const *argv,
		   struct controller **ret, struct err *err)
{
	static const struct lifecycle_handlers life = { on_stop, on_reload };
	AUTO(controller_free) struct controller *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->settings = settings;
	c->argc = argc;
	c->argv = argv;
	r = sd_event_new(&c->event);
	r = r < 0 ? r : lifecycle_new(c->event, &life, c, &c->lifecycle);
	r = r < 0 ? r : timers_loop_new(c->event, &c->timers);
	r = r < 0 ? r : health_new(NULL, NULL, &c->health);
	r = r < 0 ? r : pass_new(c->event, on_pass, c, &c->pass);
	r = r < 0 ? r : make_id(c, err);
	r = r < 0 ? r : controller_kube_check(c, err);
	r = r < 0 ? r : open_store(c, err);
	r = r < 0 ? r : open_election(c);
	r = r < 0 ? r : controller_show(c);
	r = r < 0 ? r : open_lease_server(c, err);
	if (r < 0)
		return err->text[0] ? r : err_set(err, r, "%s", strerror(-r));
	pass_open(c->pass, true);
	lifecycle_ready(c->lifecycle);
	lifecycle_status(c->lifecycle, "stands by");
	*ret = TAKE(c);
	return 0;
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	monitor_free(c->monitor);
	monitor_free(c->probes);
	lease_server_free(c->lease);
	if (c->health)
		controller_kube_stop(c);
	keeper_free(c->keeper);
	elect_free(c->elect);
	store_free(c->store);
	pass_free(c->pass);
	health_free(c->health);
	timers_loop_free(c->timers);
	lifecycle_free(c->lifecycle);
	sd_event_unref(c->event);
	free(c);
}

int controller_run(struct controller *c)
{
	return sd_event_loop(c->event);
}
