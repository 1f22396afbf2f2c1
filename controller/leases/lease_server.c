/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_server.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "controller/leases/lease_polls.h"
#include "lib/base/log.h"

#define LISTENERS_MAX 8
#define AGAIN_MS      15000
/* For etcd, files and metrics, beside the clients. */
#define OTHER_FILES 256
/* Five thousand long polls, as many again that reconnect at once, and room. */
#define CLIENTS_MAX 20000U
/* A long poll is a short request that waits for hours. */
#define CLIENT_MEMORY 4096U
#define CLIENT_IDLE_S 300U
#define CLIENT_HEAD_S 20U
/* Within this time an expired certificate is out, whatever its client waits for. */
#define CLIENT_AGE_S 3600U
#define BODY_MAX     16384U

struct listener {
	struct lease_server *server;
	char address[64];
	struct serve *serve;
	struct timer again;
};

struct lease_server {
	struct lease_server_options o;
	struct lease_view *view;
	struct lease_polls *polls;
	struct lease_jobs *jobs;
	struct store_watch *watch;
	sd_event_source *settle;
	struct serve_tls *tls;
	struct listener listeners[LISTENERS_MAX];
	size_t n_listeners;
	bool followed; /* etcd is; else what we know may be old */
	uint64_t requests[LEASE_VERBS], refused;
};

/* --- the watch ------------------------------------------------------------------------------ */

static const char *relative(const struct lease_server *s, const char *key)
{
	return key + strlen(s->o.prefix);
}

/* What one message of etcd tells is whole when its callbacks are through. */
static void settle_soon(const struct lease_server *s)
{
	sd_event_source_set_enabled(s->settle, SD_EVENT_ONESHOT);
}

static void on_put(const struct store_kv *kv, void *arg)
{
	struct lease_server *s = arg;

	lease_view_put(s->view, relative(s, kv->key), kv);
	settle_soon(s);
}

static void on_deleted(const char *key, int64_t revision, void *arg)
{
	struct lease_server *s = arg;

	lease_view_deleted(s->view, relative(s, key), revision);
	settle_soon(s);
}

static void on_listing(void *arg)
{
	struct lease_server *s = arg;

	lease_view_listing(s->view);
}

static void on_in_sync(int64_t revision, void *arg)
{
	struct lease_server *s = arg;

	lease_view_in_sync(s->view, revision);
	settle_soon(s);
}

static int on_settle(sd_event_source *source, void *arg)
{
	struct lease_server *s = arg;

	if (lease_view_settle(s->view))
		lease_polls_look(s->polls);
	lease_jobs_look(s->jobs);
	return 0;
}

void lease_server_notice(struct lease_server *s, enum store_notice notice)
{
	if (!s)
		return;
	if (notice == STORE_WATCHING || notice == STORE_TROUBLE)
		s->followed = notice == STORE_WATCHING;
	if (notice != STORE_CLUSTER_CHANGED && notice != STORE_REVISION_WENT_BACK)
		return;
	lease_view_doubt(s->view);
	lease_polls_doubt(s->polls);
}

static int start_watch(struct lease_server *s)
{
	static const struct store_watch_handlers handlers = { on_put, on_deleted, on_in_sync };
	char from[KEY_FULL_TEXT], end[KEY_FULL_TEXT];
	int r = key_full(s->o.prefix, LEASE_VIEW_FROM, from);

	r = r ?: key_full(s->o.prefix, LEASE_VIEW_END, end);
	r = r ?: store_watch(s->o.store, from, end, &handlers, s, &s->watch);
	if (r == 0)
		store_watch_on_listing(s->watch, on_listing);
	return r;
}

/* --- requests ------------------------------------------------------------------------------- */

static void show_config(const struct lease_server *s, struct serve_request *request,
			const char *network)
{
	const struct pool_view *p = lease_view_pool(s->view, network);
	struct lease_network_config c = { .vxlan = s->view->vxlan };
	AUTO(free) char *text = NULL;
	int r;

	if (!p || p->usable.n == 0) {
		serve_reply_error(request, 500, 5, NULL,
				  "network %s has no pool for leases: create one with "
				  "encapsulation vxlan and IPv4 addresses",
				  network);
		return;
	}
	c.network = p->cidr;
	c.direct_routing = p->pool->encapsulation == ENCAPSULATION_VXLAN_CROSS_SUBNET;
	r = prefix_nth_block(&p->cidr, p->block_size, p->usable.v[0].first, &c.first);
	if (r == 0)
		r = prefix_nth_block(&p->cidr, p->block_size, p->usable.v[p->usable.n - 1].last,
				     &c.last);
	r = r ?: lease_render_config(&c, &text);
	if (r < 0 || !text)
		serve_reply_error(request, 500, 5, NULL, "%s", strerrordesc_np(-r));
	else
		serve_reply_text(request, 200, LEASE_CONTENT_TYPE, text, strlen(text));
}

static void show_reservations(const struct lease_server *s, struct serve_request *request,
			      const char *network)
{
	AUTO(free) char *text = NULL;

	if (lease_view_reservations(s->view, network, &text) < 0 || !text)
		serve_reply_error(request, 503, 11, NULL, "out of memory");
	else
		serve_reply_text(request, 200, LEASE_CONTENT_TYPE, text, strlen(text));
}

static void poll(struct lease_server *s, struct serve_request *request,
		 const struct lease_call *call)
{
	struct lease_network *n = lease_view_network(s->view, call->network);
	const struct prefix *one = call->subnet.address.family ? &call->subnet : NULL;

	if (n)
		lease_polls_add(s->polls, request, n, one, serve_query(request, "next"));
	else
		serve_reply_error(request, 500, 5, NULL, "network %s has no pool for leases",
				  call->network);
}

static void change(struct lease_server *s, struct serve_request *request,
		   const struct lease_call *call)
{
	AUTO_DONE(lease_wish_done) struct lease_wish wish = { 0 };
	struct lease_caller caller = { .quota = s->o.quota };
	char certified[SERVE_NAME_TEXT];
	struct err err = { "" };
	struct address peer;
	const char *body;
	size_t len;
	int r;

	serve_peer(request, &peer);
	r = serve_certified(request, certified, &err);
	lease_caller_set(&caller, &peer, certified, s->o.operators);
	if (r < 0) {
		lease_jobs_forbid(s->jobs, &caller, err.text);
		serve_reply_error(request, 403, 7, NULL, "%s", err.text);
		return;
	}
	body = serve_body(request, &len);
	if (call->verb == LEASE_ACQUIRE || call->verb == LEASE_RENEW ||
	    call->verb == LEASE_RESERVE) {
		if (lease_wish_parse(call->verb, body, len, &wish, &err) < 0) {
			s->refused++;
			serve_reply_error(request, 400, 7, err.text, "invalid body");
			return;
		}
	}
	lease_jobs_add(s->jobs, request, call, &wish, &caller);
}

static void on_request(struct serve_request *request, void *arg)
{
	struct listener *l = arg;
	struct lease_server *s = l->server;
	struct lease_call call;
	struct err err = { "" };
	int r = lease_call_parse(serve_method(request), serve_path(request), &call, &err);

	if (r < 0) {
		s->refused++;
		serve_reply_error(request, r == -ENOENT ? 404 : 400, 7, NULL, "%s", err.text);
		return;
	}
	s->requests[call.verb]++;
	/* Another server may be better off, so nobody is told what may be old. */
	if (!s->followed || !lease_view_ready(s->view)) {
		serve_reply_error(
			request, 503, 11, NULL, "%s",
			"not connected to etcd, or its keys are still being read; try again");
		return;
	}
	/* What a restore brought back is nobody's before the recovery has ended. */
	if (lease_view_recovering(s->view) &&
	    (strcmp(serve_method(request), "GET") == 0 || !lease_view_recovery(s->view)[0])) {
		serve_reply_error(request, 503, 11, NULL, "%s", LEASE_WENT_BACK);
		return;
	}
	switch (call.verb) {
	case LEASE_CONFIG:
		show_config(s, request, call.network);
		break;
	case LEASE_RESERVATIONS:
		show_reservations(s, request, call.network);
		break;
	case LEASE_NETWORKS:
	case LEASE_WATCH:
	case LEASE_WATCH_ONE:
		poll(s, request, &call);
		break;
	default:
		change(s, request, &call);
	}
}

/* --- listening ------------------------------------------------------------------------------ */

/* As many descriptors as we may have: each client holds one. */
static unsigned clients_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 512;
	if (limit.rlim_cur < limit.rlim_max && limit.rlim_cur < CLIENTS_MAX + OTHER_FILES) {
		limit.rlim_cur = limit.rlim_max < CLIENTS_MAX + OTHER_FILES
					 ? limit.rlim_max
					 : CLIENTS_MAX + OTHER_FILES;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= CLIENTS_MAX + OTHER_FILES)
		return CLIENTS_MAX;
	return limit.rlim_cur > 2 * OTHER_FILES ? (unsigned)limit.rlim_cur - OTHER_FILES
						: OTHER_FILES;
}

static int listen_on(struct listener *l)
{
	const struct lease_server *s = l->server;
	struct serve_config config = {
		.arg = l,
		.other = on_request,
		.plain_errors = true,
		.max_connections = clients_max(),
		.connection_memory = CLIENT_MEMORY,
		.idle_s = CLIENT_IDLE_S,
		.head_s = CLIENT_HEAD_S,
		.age_s = CLIENT_AGE_S,
		.replace_quiet = true,
		.max_body = BODY_MAX,
		.tls = s->tls,
	};
	struct listen_address at;
	int r = listen_address_parse(l->address, &at, NULL);

	r = r ?: serve_listen_tcp(&at, &config.fd);
	if (r < 0)
		return r;
	r = serve_new(s->o.event, &config, &l->serve);
	if (r < 0)
		close(config.fd);
	return r;
}

static void try_listen(void *arg)
{
	struct listener *l = arg;
	const struct lease_server *s = l->server;
	char part[HEALTH_PART];
	int r = listen_on(l);

	snprintf(part, sizeof(part), "lease-listen/%s", l->address);
	if (r == 0) {
		health_clear(s->o.health, part);
		log_info("lease", "listening on %s%s, at most %u clients", l->address,
			 s->tls ? " with TLS" : "", clients_max());
		return;
	}
	health_set(s->o.health, part, LOG_LEVEL_ERROR,
		   "cannot listen on --lease-listen %s: %s; retrying every %d s: free the port "
		   "(`ss -ltnp`), or choose another one",
		   l->address, strerrordesc_np(-r), AGAIN_MS / 1000);
	timer_set(s->o.timers, &l->again, AGAIN_MS, AGAIN_MS / 3);
}

/* Calls fn with each, copied; the first refusal ends it. */
static int each_address(const char *text,
			int (*fn)(const char *address, void *arg, struct err *err), void *arg,
			struct err *err)
{
	size_t n = 0;
	int r = 0;

	for (const char *at = text; r == 0; at += strcspn(at, ",") + 1) {
		char address[64];
		size_t len = strcspn(at, ",");

		if (len == 0 || len >= sizeof(address) || ++n > LISTENERS_MAX)
			return err_set(err, -EINVAL,
				       "\"%s\" is not ADDRESS:PORT[,ADDRESS:PORT], up to %d", text,
				       LISTENERS_MAX);
		memcpy(address, at, len);
		address[len] = '\0';
		r = fn(address, arg, err);
		if (!at[len])
			break;
	}
	return r;
}

static int check_one(const char *address, void *arg, struct err *err)
{
	return listen_address_check(address, err);
}

int lease_listen_check(const char *text, struct err *err)
{
	return each_address(text, check_one, NULL, err);
}

static int check_local(const char *address, void *arg, struct err *err)
{
	struct listen_address at;
	int r = listen_address_parse(address, &at, err);

	return r < 0 || address_is_loopback(&at.address) ? r : -EADDRNOTAVAIL;
}

bool lease_listen_is_local(const char *text)
{
	return each_address(text, check_local, NULL, NULL) == 0;
}

static int add_listener(const char *address, void *arg, struct err *err)
{
	struct lease_server *s = arg;
	struct listener *l = &s->listeners[s->n_listeners++];
	struct listen_address at;
	int r = listen_address_parse(address, &at, err);

	if (r < 0)
		return r;
	if (!s->o.files.client_ca[0] && !address_is_loopback(&at.address))
		log_warning(
			"lease",
			"%s asks for no client certificates: every machine that can connect gets "
			"a lease for its address; set --lease-client-ca",
			address);
	l->server = s;
	snprintf(l->address, sizeof(l->address), "%s", address);
	l->again = (struct timer){ .fn = try_listen, .arg = l };
	try_listen(l);
	return 0;
}

/* --- life ----------------------------------------------------------------------------------- */

static int open_parts(struct lease_server *s, struct err *err)
{
	int r = 0;

	if (s->o.files.certificate[0])
		r = serve_tls_new(&s->o.files, &s->tls, err);
	r = r < 0 ? r : lease_view_new(lease_answer_done, &s->view);
	r = r < 0 ? r : lease_polls_new(&s->o, s->view, &s->polls);
	r = r < 0 ? r : lease_jobs_new(&s->o, s->view, &s->jobs);
	r = r < 0 ? r : sd_event_add_defer(s->o.event, &s->settle, on_settle, s);
	r = r < 0 ? r : sd_event_source_set_enabled(s->settle, SD_EVENT_OFF);
	return r < 0 ? r : start_watch(s);
}

int lease_server_new(const struct lease_server_options *options, struct lease_server **ret,
		     struct err *err)
{
	AUTO(lease_server_free) struct lease_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->o = *options;
	r = open_parts(s, err);
	r = r < 0 ? r : each_address(s->o.listen, add_listener, s, err);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void lease_server_free(struct lease_server *s)
{
	if (!s)
		return;
	/* First those who wait: they are told, and leave polls and jobs. */
	for (size_t i = 0; i < s->n_listeners; i++) {
		timer_clear(s->o.timers, &s->listeners[i].again);
		serve_free(s->listeners[i].serve);
	}
	if (s->watch)
		store_unwatch(s->watch);
	sd_event_source_disable_unref(s->settle);
	lease_jobs_free(s->jobs);
	lease_polls_free(s->polls);
	lease_view_free(s->view);
	serve_tls_free(s->tls);
	free(s);
}

void lease_server_reload(struct lease_server *s)
{
	struct err err = { "" };

	if (!s || !s->tls)
		return;
	if (serve_tls_reload(s->tls, &err) < 0)
		health_set(s->o.health, "lease-certificate", LOG_LEVEL_ERROR,
			   "%s; the previous certificate, CA and CRL stay in use", err.text);
	else
		health_clear(s->o.health, "lease-certificate");
	for (size_t i = 0; i < s->n_listeners; i++)
		if (s->listeners[i].serve && s->o.files.client_ca[0])
			serve_recheck(s->listeners[i].serve);
}

void lease_server_metrics(const struct lease_server *s, struct metrics *m)
{
	struct lease_jobs_stats stats;

	if (!s)
		return;
	stats = lease_jobs_stats(s->jobs);
	if (lease_view_ready(s->view)) {
		metrics_family(m, "roost_lease_leases", METRIC_GAUGE,
			       "Leases that this server shows, by network.");
		for (size_t i = 1; i < s->view->networks.n; i++) {
			const struct lease_network *n = s->view->networks.v[i];

			metrics_count(m, LABELS({ "network", n->name }), n->shown.n);
		}
	}
	metrics_one(m, "roost_lease_polls", METRIC_GAUGE, "Clients that wait for a change.",
		    (double)lease_polls_waiting(s->polls));
	metrics_one(m, "roost_lease_jobs", METRIC_GAUGE,
		    "Requests that wait for their transaction.", (double)stats.waiting);
	metrics_family(m, "roost_lease_changes_total", METRIC_COUNTER,
		       "Completed changes for clients, by kind.");
	metrics_count(m, LABELS({ "kind", "acquired" }), stats.acquired);
	metrics_count(m, LABELS({ "kind", "renewed" }), stats.renewed);
	metrics_count(m, LABELS({ "kind", "repeated" }), stats.repeated);
	metrics_count(m, LABELS({ "kind", "revoked" }), stats.revoked);
	metrics_count(m, LABELS({ "kind", "reserved" }), stats.reserved);
	metrics_family(m, "roost_lease_refusals_total", METRIC_COUNTER,
		       "Requests that were refused: invalid, for good, of another client, "
		       "or temporarily.");
	metrics_count(m, LABELS({ "reason", "bad-request" }), s->refused);
	metrics_count(m, LABELS({ "reason", "refused" }), stats.refused);
	metrics_count(m, LABELS({ "reason", "forbidden" }), stats.forbidden);
	metrics_count(m, LABELS({ "reason", "unavailable" }), stats.unavailable);
	metrics_one(m, "roost_lease_conflicts_total", METRIC_COUNTER,
		    "Transactions for clients that met a change and were decided again.",
		    (double)stats.again);
}
