/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/store_etcd.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/etcd/etcd_client.h"

/* --- endpoints -------------------------------------------------------------------------------- */

uint64_t etcd_backoff_usec(unsigned failures)
{
	return backoff_usec(failures, 100000, 5000000);
}

static int parse_endpoints(struct etcd *e, const char *text, const char *name, struct err *err)
{
	size_t n;

	if (!text || !*text)
		return err_set(err, -EINVAL, "no etcd endpoint is given");
	n = endpoints_count(text);
	e->endpoints = calloc(n, sizeof(*e->endpoints));
	if (!e->endpoints)
		return -ENOMEM;
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int r = endpoint_parse(p, len, "etcd endpoint", &e->endpoints[e->n_endpoints++].at,
				       err);

		if (r < 0)
			return r;
		p += len;
		if (!*p)
			break;
	}
	e->current = endpoints_start(name, n);
	return 0;
}

static void endpoints_done(struct etcd *e)
{
	for (size_t i = 0; i < e->n_endpoints; i++) {
		endpoint_done(&e->endpoints[i].at);
		free(e->endpoints[i].token);
	}
	free(e->endpoints);
}

static bool append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return false;
	*list = longer;
	return true;
}

struct curl_slist *etcd_headers(const struct etcd_endpoint *ep, uint32_t timeout_ms)
{
	struct curl_slist *list = NULL;
	AUTO(free) char *token = NULL;
	char timeout[40];
	/* Without a leader a member says so at once, rather than waiting for one. */
	bool ok = append(&list, "Grpc-Metadata-hasleader: true") && append(&list, "Expect:") &&
		  append(&list, "Content-Type: application/json");

	if (timeout_ms) {
		snprintf(timeout, sizeof(timeout), "Grpc-Timeout: %um", timeout_ms);
		ok = ok && append(&list, timeout);
	}
	if (ep->token && ep->token[0])
		ok = ok && asprintf(&token, "Authorization: %s", ep->token) > 0 &&
		     append(&list, token);
	if (ok)
		return list;
	curl_slist_free_all(list);
	return NULL;
}

void etcd_endpoint_failed(struct etcd *e, size_t endpoint)
{
	if (e->current == endpoint)
		e->current = (e->current + 1) % e->n_endpoints;
}

/* --- is it still the same etcd? Every reply's header is asked, and every list ------------------ */

struct etcd_known etcd_known(const struct etcd *e, size_t endpoint)
{
	const struct etcd_endpoint *ep = &e->endpoints[endpoint];

	return (struct etcd_known){ e->era, e->revision, ep->member_id, ep->term };
}

static void start_new_era(struct etcd *e)
{
	e->era++;
	e->revision = 0;
	for (size_t i = 0; i < e->n_endpoints; i++)
		e->endpoints[i].term = 0;
	etcd_stream_restart(e);
}

static void learn(struct etcd *e, struct etcd_endpoint *ep, const struct etcd_header *h)
{
	e->cluster_id = h->cluster_id;
	if (h->revision > e->revision)
		e->revision = h->revision;
	if (h->raft_term > ep->term || h->member_id != ep->member_id)
		ep->term = h->raft_term;
	ep->member_id = h->member_id;
}

/*
 * Terms are compared per member: one that caught up by a snapshot of its leader reports its former
 * term until it applies the next entry, whatever its peers report. A member's own term never falls,
 * but a restored one keeps its id and begins at a low term.
 */
void etcd_check_header(struct etcd *e, size_t endpoint, const struct etcd_header *h,
		       const struct etcd_known *known)
{
	struct etcd_endpoint *ep = &e->endpoints[endpoint];
	uint64_t before = e->cluster_id;

	if (!h->cluster_id || known->era != e->era)
		return;
	if (before && h->cluster_id != before) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_CLUSTER_CHANGED,
			     "another etcd cluster answers: id %016llx, before %016llx",
			     (unsigned long long)h->cluster_id, (unsigned long long)before);
	} else if (h->revision && h->revision < known->revision) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_REVISION_WENT_BACK,
			     "etcd went back from revision %lld to %lld: restored from a backup?",
			     (long long)known->revision, (long long)h->revision);
	} else if (h->raft_term && h->raft_term < known->term && h->member_id == known->member_id) {
		start_new_era(e);
		learn(e, ep, h);
		store_notify(&e->base, STORE_REVISION_WENT_BACK,
			     "etcd member %016llx went back from raft term %llu to %llu: restored "
			     "from a backup?",
			     (unsigned long long)h->member_id, (unsigned long long)known->term,
			     (unsigned long long)h->raft_term);
	} else {
		learn(e, ep, h);
	}
}

void etcd_key_went_back(struct etcd *e, const char *key)
{
	start_new_era(e);
	store_notify(&e->base, STORE_REVISION_WENT_BACK,
		     "etcd lists %.200s at an older revision than before: restored from a backup?",
		     key);
}

/* --- the store ------------------------------------------------------------------------------- */

static int etcd_turn(struct store *s, uint32_t timeout_ms)
{
	struct etcd *e = (struct etcd *)s;
	int r = sd_event_run(e->event, timeout_ms * 1000ULL);

	return r < 0 ? r : 0;
}

static void etcd_free(struct store *s)
{
	struct etcd *e = (struct etcd *)s;

	e->closing = true;
	/* Whoever is told may still end watches. */
	etcd_calls_done(e);
	etcd_stream_done(e);
	http_free(e->http);
	endpoints_done(e);
	sd_event_unref(e->event);
	free(e->user);
	if (e->password)
		explicit_bzero(e->password, strlen(e->password));
	free(e->password);
	free(e);
}

static void etcd_stats(const struct store *s, struct store_stats *ret)
{
	const struct etcd *e = (const struct etcd *)s;

	*ret = e->stats;
	ret->server = "etcd";
	ret->endpoint = e->endpoints[e->current].at.name;
	ret->cluster_id = e->cluster_id;
	ret->revision = e->revision;
	ret->certificate = http_server(e->http);
	for (size_t i = 0; i < e->n_endpoints; i++)
		if (e->endpoints[i].heard > ret->heard)
			ret->heard = e->endpoints[i].heard;
}

static const struct store_ops etcd_ops = {
	.txn = etcd_txn,
	.list = etcd_list,
	.lease = etcd_lease,
	.watch = etcd_watch,
	.turn = etcd_turn,
	.stats = etcd_stats,
	.free = etcd_free,
};

static int set_login(struct etcd *e, const struct store_etcd_options *o, struct err *err)
{
	if (!o->user || !*o->user)
		return 0;
	if (!o->password)
		return err_set(err, -EINVAL, "etcd user \"%s\" is given, but no password", o->user);
	e->user = strdup(o->user);
	e->password = strdup(o->password);
	return e->user && e->password ? 0 : -ENOMEM;
}

int store_etcd_new(sd_event *event, const struct store_etcd_options *o, struct store **ret,
		   struct err *err)
{
	struct etcd *e = calloc(1, sizeof(*e));
	struct http_tls tls = o->tls;
	int r;

	if (!e)
		return -ENOMEM;
	e->base.ops = &etcd_ops;
	e->event = sd_event_ref(event);
	TAILQ_INIT(&e->calls);
	TAILQ_INIT(&e->watches);
	r = parse_endpoints(e, o->endpoints, o->name, err);
	r = r ?: set_login(e, o, err);
	tls.cacert_setting = "--etcd-cacert";
	r = r ?: http_new(event, &tls, &e->http);
	r = r ?: etcd_stream_init(e);
	if (r < 0) {
		store_free(&e->base);
		return r;
	}
	*ret = &e->base;
	return 0;
}
