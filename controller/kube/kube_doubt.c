/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are perhaps gone: each is asked for by name, and only the API server's own 404, or
 * a Node of another UID, says that it is. Everything else means: not gone, ask again later.
 *
 * Watch and GET overtake each other. So as long as a Node is in doubt, what list and watch say of
 * it is not taken but noted, and it is asked for once more: its end is a GET that nothing overtook.
 */
#include <errno.h>
#include <string.h>

#include "controller/kube/kube_client.h"
#include "lib/json/json.h"

#define AT_ONCE 8

static void ask_some(struct kube *k);

static void doubt_free(struct kube_doubt *d)
{
	struct kube *k = d->kube;

	if (d->request.http) {
		k->asking--;
		kube_request_cancel(&d->request);
	}
	TAILQ_REMOVE(&k->doubts, d, entry);
	k->stats.doubts--;
	json_stream_free(d->splitter);
	json_object_put(d->found);
	free(d->name);
	free(d->uid);
	free(d);
}

static int on_object(struct json_object *object, void *arg)
{
	struct kube_doubt *d = arg;

	if (d->found)
		return err_set(&d->request.reason, -EBADMSG, "more than one object");
	d->found = json_object_get(object);
	return 0;
}

static int on_data(const char *data, size_t n, void *arg)
{
	struct kube_request *q = arg;
	struct kube_doubt *d = q->arg;

	return json_stream_feed(d->splitter, data, n, &q->reason);
}

/* --- the answer ----------------------------------------------------------------------------- */

static void is_gone(struct kube_doubt *d)
{
	struct kube *k = d->kube;

	if (!d->uid[0])
		return;
	kube_view_forget(k->view, d->name, d->uid);
	k->stats.gone++;
	k->handlers.gone(d->name, d->uid, k->arg);
	/* From here on it is about whatever else has that name. */
	d->uid[0] = '\0';
}

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	ask_some(arg);
	return 0;
}

static void later(struct kube *k, const char *text, uint32_t retry_after)
{
	kube_set_trouble(k, &k->doubt_trouble, text);
	k->doubt_failures++;
	if (kube_arm(k, &k->doubt_timer, kube_delay(k, k->doubt_failures, retry_after), on_retry) <
	    0)
		ask_some(k);
}

static void settle(struct kube_doubt *d, const struct kube_node *node)
{
	struct kube *k = d->kube;

	if (!node || strcmp(node->uid, d->uid) != 0)
		is_gone(d);
	if (d->overtaken)
		return; /* asked for again */
	/* Off the list first: a Node in doubt is not taken. */
	doubt_free(d);
	if (node)
		kube_take(k, node);
}

/* 200: the Node of that name, if it can be read. */
static int read_found(struct kube_doubt *d, struct kube_node *ret, struct err *err)
{
	int r = json_stream_end(d->splitter, err);

	if (r < 0)
		return r;
	if (!d->found) {
		err_set(err, -EBADMSG, "an empty reply");
		return -EBADMSG;
	}
	r = kube_read_node(d->kube, d->found, ret);
	if (r < 0) {
		err_set(err, r, "%s", d->kube->stats.last_bad);
		return r;
	}
	if (strcmp(ret->name, d->name) != 0) {
		kube_node_done(ret);
		err_set(err, -EBADMSG, "a node of another name");
		return -EBADMSG;
	}
	return 0;
}

static enum kube_verdict on_done(struct kube_request *q, const struct kube_outcome *outcome)
{
	struct kube_doubt *d = q->arg;
	struct kube *k = d->kube;
	struct kube_node node = { 0 };
	struct err why = { "" }, text;
	int r = 0;

	k->asking--;
	if (outcome->verdict == KUBE_OK)
		r = read_found(d, &node, &why);
	json_stream_free(TAKE(d->splitter));
	json_object_put(TAKE(d->found));
	if (r < 0 || (outcome->verdict != KUBE_OK && outcome->verdict != KUBE_NOT_FOUND)) {
		err_set(&text, 0, "cannot check whether node %s is gone: %s", d->name,
			r < 0 ? why.text : outcome->text.text);
		later(k, text.text, outcome->retry_after);
		return r < 0 ? KUBE_FAILED : outcome->verdict;
	}
	k->doubt_failures = 0;
	settle(d, outcome->verdict == KUBE_OK ? &node : NULL);
	kube_node_done(&node);
	if (TAILQ_EMPTY(&k->doubts))
		kube_set_trouble(k, &k->doubt_trouble, "");
	ask_some(k);
	return KUBE_OK;
}

/* --- asking --------------------------------------------------------------------------------- */

static int ask(struct kube_doubt *d, struct err *err)
{
	AUTO(curl_free) char *name = curl_easy_escape(NULL, d->name, 0);
	struct kube *k = d->kube;
	int r = name ? json_stream_new_deep(KUBE_OBJECT_MAX, KUBE_OBJECT_DEPTH, on_object, d,
					    &d->splitter)
		     : -ENOMEM;

	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	d->overtaken = false;
	d->request.kube = k;
	d->request.verb = KUBE_GET;
	d->request.node = d->name;
	d->request.on_data = on_data;
	d->request.on_done = on_done;
	d->request.arg = d;
	r = kube_request_start(&d->request, k->options.request_ms, err, "/api/v1/nodes/%s", name);
	if (r < 0)
		json_stream_free(TAKE(d->splitter));
	else
		k->asking++;
	return r;
}

static bool waiting(struct kube *k)
{
	int on = SD_EVENT_OFF;

	return k->doubt_timer && sd_event_source_get_enabled(k->doubt_timer, &on) >= 0 &&
	       on != SD_EVENT_OFF;
}

static void ask_some(struct kube *k)
{
	struct err err = { "" };
	struct kube_doubt *d;

	if (waiting(k))
		return;
	TAILQ_FOREACH(d, &k->doubts, entry) {
		if (k->asking >= AT_ONCE)
			return;
		if (d->request.http)
			continue;
		if (ask(d, &err) < 0) {
			later(k, err.text, 0);
			return;
		}
	}
}

/* --- interface ------------------------------------------------------------------------------ */

bool kube_in_doubt(struct kube *k, const char *name)
{
	struct kube_doubt *d = TAILQ_FIRST(&k->doubts);
	bool found = false;

	for (; d; d = TAILQ_NEXT(d, entry)) {
		if (strcmp(d->name, name) != 0)
			continue;
		d->overtaken = true;
		found = true;
	}
	return found;
}

int kube_doubt(struct kube *k, const char *name, const char *uid)
{
	const struct kube_doubt *other;
	struct kube_doubt *d;

	TAILQ_FOREACH(other, &k->doubts, entry)
		if (strcmp(other->name, name) == 0 && strcmp(other->uid, uid) == 0)
			return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->kube = k;
	d->name = strdup(name);
	d->uid = strdup(uid);
	if (!d->name || !d->uid) {
		free(d->name);
		free(d->uid);
		free(d);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&k->doubts, d, entry);
	k->stats.doubts++;
	/* From the loop: the caller may be in the midst of a list. */
	return waiting(k) ? 0 : kube_arm(k, &k->doubt_timer, 0, on_retry);
}

void kube_doubts_done(struct kube *k)
{
	struct kube_doubt *d;

	while ((d = TAILQ_FIRST(&k->doubts)))
		doubt_free(d);
	sd_event_source_disable_unref(k->doubt_timer);
}
