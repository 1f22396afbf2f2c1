/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube.h"

#include <errno.h>
#include <string.h>

#include "controller/kube/kube_client.h"
#include "lib/base/backoff.h"
#include "lib/base/secret.h"
#include "lib/json/json.h"

#define BACKOFF_LONGEST 60
/* A server that asks for more than this is asked again all the same. */
#define RETRY_AFTER_MAX 300

/* --- what is wrong -------------------------------------------------------------------------- */

/* List and watch go first: while they fail, a doubt that cannot be settled is no news. */
static void tell_trouble(struct kube *k)
{
	const struct err *now = k->trouble.text[0] ? &k->trouble : &k->doubt_trouble;

	if (strcmp(now->text, k->told_trouble.text) == 0)
		return;
	k->told_trouble = *now;
	k->handlers.trouble(k->told_trouble.text, k->arg);
}

void kube_set_trouble(struct kube *k, struct err *slot, const char *text)
{
	err_set(slot, 0, "%s", text);
	tell_trouble(k);
}

/* --- time ----------------------------------------------------------------------------------- */

int kube_arm(struct kube *k, sd_event_source **timer, uint64_t usec, sd_event_time_handler_t fn)
{
	int r;

	if (!*timer)
		return sd_event_add_time_relative(k->event, timer, CLOCK_MONOTONIC, usec, 1000, fn,
						  k);
	r = sd_event_source_set_time_relative(*timer, usec);
	return r < 0 ? r : sd_event_source_set_enabled(*timer, SD_EVENT_ONESHOT);
}

uint64_t kube_delay(const struct kube *k, unsigned failures, uint32_t retry_after)
{
	uint64_t first = (uint64_t)k->options.backoff_ms * 1000;
	uint64_t own = backoff_usec(failures, first, first * BACKOFF_LONGEST), asked;

	if (retry_after > RETRY_AFTER_MAX)
		retry_after = RETRY_AFTER_MAX;
	/* Never earlier than asked for, and not all at the same moment. */
	asked = retry_after ? retry_after * 1000000ULL + backoff_usec(1, 200000, 200000) : 0;
	return own > asked ? own : asked;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct kube *k = arg;

	if (k->version)
		kube_watch_start(k);
	else
		kube_list_start(k);
	return 0;
}

/* From the loop: whoever calls this is still within the former request. */
void kube_go_on(struct kube *k)
{
	if (kube_arm(k, &k->timer, 0, on_timer) < 0)
		kube_set_trouble(k, &k->trouble, "cannot set a timer");
}

void kube_failed(struct kube *k, const struct kube_outcome *outcome)
{
	uint64_t delay;

	k->failures++;
	delay = kube_delay(k, k->failures, outcome->retry_after);
	/* A new token, or a new list, may be all that is needed. */
	if (outcome->verdict == KUBE_UNAUTHORIZED && k->config->token_file && !k->token_retried) {
		k->token_retried = true;
		kube_go_on(k);
		return;
	}
	if (outcome->verdict == KUBE_EXPIRED && k->failures == 1) {
		kube_go_on(k);
		return;
	}
	kube_set_trouble(k, &k->trouble, outcome->text.text);
	if (kube_arm(k, &k->timer, delay, on_timer) < 0)
		kube_set_trouble(k, &k->trouble, "cannot set a timer");
}

/* --- Nodes ---------------------------------------------------------------------------------- */

const char *kube_version_of(struct json_object *object)
{
	struct json_at root = json_root(object, NULL), meta = json_member(&root, "metadata");
	const char *version = "";

	if (json_read_object(meta) <= 0 ||
	    json_read_text(json_member(&meta, "resourceVersion"), JSON_STRING_MAX, &version) <= 0)
		return NULL;
	return *version ? version : NULL;
}

int kube_read_node(struct kube *k, struct json_object *object, struct kube_node *ret)
{
	struct err why = { "" };
	int r = kube_node_read(object, ret, &why);

	if (r == -EINVAL) {
		k->stats.objects_bad++;
		snprintf(k->stats.last_bad, sizeof(k->stats.last_bad), "%.250s", why.text);
	}
	return r;
}

int kube_take(struct kube *k, const struct kube_node *node)
{
	struct hash digest;
	int r;

	kube_view_seen(k->view, node->name);
	if (kube_in_doubt(k, node->name))
		return 0;
	r = kube_node_digest(node, &digest);
	r = r ?: kube_view_take(k->view, node->name, node->uid, digest);
	if (r == KUBE_OTHER_UID)
		return kube_doubt(k, node->name, kube_view_uid(k->view, node->name));
	if (r != KUBE_NEWS)
		return r;
	k->stats.told++;
	k->stats.labels_bad += node->labels_left_out;
	k->stats.pod_cidrs_bad += node->pod_cidrs_left_out;
	k->handlers.node(node, k->arg);
	return 0;
}

int kube_expect(struct kube *k, const char *name, const char *uid)
{
	int r = kube_view_expect(k->view, name, uid);

	/* Before the first list is complete, its end will tell. */
	if (r == KUBE_OTHER_UID || (r == KUBE_NEWS && k->stats.in_sync))
		r = kube_doubt(k, name, uid);
	return r < 0 ? r : 0;
}

const char *kube_verb_name(enum kube_verb verb)
{
	static const char *const names[] = { "list", "watch", "get" };

	return verb < ARRAY_SIZE(names) ? names[verb] : "?";
}

void kube_stats(const struct kube *k, struct kube_stats *ret)
{
	*ret = k->stats;
	ret->nodes = kube_view_count(k->view);
	snprintf(ret->server, sizeof(ret->server), "%s", k->config->server);
}

/* --- begin and end -------------------------------------------------------------------------- */

static int read_config(struct kube *k, const struct kube_options *o, struct err *err)
{
	if (o->kubeconfig && *o->kubeconfig)
		return kube_config_read(o->kubeconfig, o->context, o->insecure, &k->config, err);
	return kube_config_in_cluster(o->service_account ?: KUBE_SERVICE_ACCOUNT,
				      getenv("KUBERNETES_SERVICE_HOST"),
				      getenv("KUBERNETES_SERVICE_PORT"), &k->config, err);
}

static int setup_http(struct kube *k)
{
	const struct kube_config *c = k->config;
	const struct http_tls tls = {
		.cacert = c->ca_file,
		.cert = c->cert_file,
		.key = c->key_file,
		.cacert_pem = c->ca_pem,
		.cert_pem = c->cert_pem,
		.key_pem = c->key_pem,
		.insecure = c->insecure,
	};
	int r = kube_url_make(c->server, c->server_name, &k->url);

	if (r < 0)
		return r;
	if (k->url.connect_to) {
		k->connect_to = curl_slist_append(NULL, k->url.connect_to);
		if (!k->connect_to)
			return -ENOMEM;
	}
	return http_new(k->event, &tls, &k->http);
}

int kube_new(sd_event *event, const struct kube_options *options,
	     const struct kube_handlers *handlers, void *arg, struct kube **ret, struct err *err)
{
	AUTO(kube_free) struct kube *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return err_set(err, -ENOMEM, "out of memory");
	TAILQ_INIT(&k->doubts);
	k->event = sd_event_ref(event);
	k->handlers = *handlers;
	k->arg = arg;
	if (options->past)
		k->stats = *options->past;
	k->stats.heard = k->stats.doubts = 0;
	k->stats.in_sync = k->stats.watching = false;
	k->options = (struct kube_options){
		.page = options->page ?: 500,
		.request_ms = options->request_ms ?: 30000,
		.watch_s = options->watch_s ?: 300,
		.margin_ms = options->margin_ms ?: 15000,
		.backoff_ms = options->backoff_ms ?: 500,
	};
	k->request.kube = k;
	r = read_config(k, options, err);
	if (r < 0)
		return r;
	r = kube_view_new(&k->view);
	r = r ?: setup_http(k);
	if (r >= 0)
		r = kube_arm(k, &k->timer, 0, on_timer);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	*ret = TAKE(k);
	return 0;
}

void kube_free(struct kube *k)
{
	if (!k)
		return;
	kube_doubts_done(k);
	kube_request_cancel(&k->request);
	kube_list_free(k->pages);
	json_stream_free(k->events);
	http_free(k->http);
	sd_event_source_disable_unref(k->timer);
	sd_event_unref(k->event);
	curl_slist_free_all(k->connect_to);
	kube_url_done(&k->url);
	kube_config_free(k->config);
	kube_view_free(k->view);
	secret_free(k->token);
	curl_free(k->next_page);
	free(k->list_version);
	free(k->version);
	free(k);
}
