/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/store_etcd.h"

#include <errno.h>
#include <string.h>

#include "lib/etcd/etcd_client.h"

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
	etcd_endpoints_done(e);
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
	r = etcd_endpoints_parse(e, o->endpoints, o->name, err);
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
