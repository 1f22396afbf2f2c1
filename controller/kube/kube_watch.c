/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch: one stream of events, followed from the last known version, opened again for as long
 * as that version is known to the API server.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "controller/kube/kube_client.h"
#include "lib/base/clock.h"
#include "lib/json/json.h"

/* A watch that lived so long was a good one, whatever ended it. */
#define PROVEN_USEC 5000000ULL
/* So many in a row that brought nothing: what we know may be what cannot be read. List anew. */
#define FRUITLESS 4

static int set_version(struct kube *k, struct json_object *object)
{
	const char *version = kube_version_of(object);
	char *copy;

	if (!version || strcmp(version, k->version) == 0)
		return 0;
	copy = strdup(version);
	if (!copy)
		return -ENOMEM;
	free(k->version);
	k->version = copy;
	k->moved = true;
	return 0;
}

/* Its word alone is not enough; that Node is asked for. */
static int take_deleted(struct kube *k, const struct kube_node *node)
{
	const char *uid = kube_view_uid(k->view, node->name);

	if (kube_in_doubt(k, node->name) || !uid || strcmp(uid, node->uid) != 0)
		return 0;
	return kube_doubt(k, node->name, node->uid);
}

static int take_node(struct kube *k, const char *type, struct json_object *object)
{
	struct kube_node node;
	int r = kube_read_node(k, object, &node);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = strcmp(type, "DELETED") == 0 ? take_deleted(k, &node) : kube_take(k, &node);
	kube_node_done(&node);
	return r;
}

static int take_error(struct kube *k, struct json_object *object)
{
	struct kube_status status;
	struct kube_outcome out = { 0 };

	kube_status_read(object, &status);
	out.verdict = kube_judge("watch", NULL, 0, &status, &out.text);
	/* Whatever it is, this stream is over, and the version it stood at is not trusted. */
	free(TAKE(k->version));
	err_set(&k->request.reason, 0, "%s", out.text.text);
	return -ESTALE;
}

static int on_event(struct json_object *event, void *arg)
{
	struct kube *k = arg;
	struct err *err = &k->request.reason;
	struct json_at root = json_root(event, err), object = json_need(&root, "object");
	const char *type = "";
	int r = json_read_text(json_need(&root, "type"), 64, &type);

	if (r > 0)
		r = json_read_object(object);
	if (r < 0)
		return r;
	k->stats.events++;
	if (strcmp(type, "ERROR") == 0)
		return take_error(k, object.value);
	r = 0;
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0 ||
	    strcmp(type, "DELETED") == 0)
		r = take_node(k, type, object.value);
	else if (strcmp(type, "BOOKMARK") == 0)
		k->stats.bookmarks++;
	/* Types that do not exist yet move the version too. */
	return r ?: set_version(k, object.value);
}

static int on_data(const char *data, size_t n, void *arg)
{
	struct kube_request *q = arg;

	return json_stream_feed(q->kube->events, data, n, &q->reason);
}

static void on_ok(long status, void *arg)
{
	const struct kube_request *q = arg;

	q->kube->stats.watching = true;
	q->kube->stats.watches++;
	q->kube->token_retried = false;
	kube_set_trouble(q->kube, &q->kube->trouble, "");
}

static void ended(struct kube *k, const struct kube_outcome *outcome, uint64_t lived)
{
	struct kube_outcome silent = { .verdict = KUBE_FAILED };

	if (outcome->verdict == KUBE_OK && (k->moved || lived >= 1000000)) {
		kube_go_on(k); /* its time was over */
		return;
	}
	if (outcome->verdict == KUBE_OK) {
		err_set(&silent.text, 0, "watch nodes: %s closed the stream at once",
			k->config->server);
	} else if (outcome->timed_out && k->stats.watching) {
		err_set(&silent.text, 0,
			"watch nodes: %s has sent nothing for %u s and not closed the stream; "
			"opening it again",
			k->config->server, k->seconds);
	}
	kube_failed(k, silent.text.text[0] ? &silent : outcome);
}

static enum kube_verdict on_done(struct kube_request *q, const struct kube_outcome *outcome)
{
	struct kube *k = q->kube;
	struct kube_outcome end = *outcome;
	uint64_t lived = clock_monotonic_us() - k->opened;

	if (end.verdict == KUBE_OK && json_stream_end(k->events, &end.text) < 0) {
		end.verdict = KUBE_FAILED;
		k->stats.failures++;
		err_wrap(&end.text, 0, "watch nodes: invalid reply from %s", k->config->server);
	}
	json_stream_free(TAKE(k->events));
	if (k->moved || (k->stats.watching && lived >= PROVEN_USEC))
		k->failures = 0;
	/* An ERROR event took the version. */
	if (!k->version && end.verdict != KUBE_OK) {
		end.verdict = KUBE_EXPIRED;
		end.text = q->reason;
	}
	if (end.verdict == KUBE_EXPIRED || k->failures + 1 >= FRUITLESS)
		free(TAKE(k->version));
	ended(k, &end, lived);
	k->stats.watching = false;
	return end.verdict;
}

/* Spread, so that not all watchers of a cluster come back at once. */
static uint32_t how_long(uint32_t least)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return least + random % least;
}

void kube_watch_start(struct kube *k)
{
	struct kube_outcome failed = { .verdict = KUBE_FAILED };
	AUTO(curl_free) char *version = curl_easy_escape(NULL, k->version, 0);
	int r;

	k->seconds = how_long(k->options.watch_s);
	k->moved = false;
	k->opened = clock_monotonic_us();
	json_stream_free(TAKE(k->events));
	r = version ? json_stream_new_deep(KUBE_OBJECT_MAX, KUBE_OBJECT_DEPTH, on_event, k,
					   &k->events)
		    : -ENOMEM;
	k->request.verb = KUBE_WATCH;
	k->request.on_ok = on_ok;
	k->request.on_data = on_data;
	k->request.on_done = on_done;
	if (r == 0)
		r = kube_request_start(&k->request, k->seconds * 1000 + k->options.margin_ms,
				       &failed.text,
				       "/api/v1/nodes?watch=true&allowWatchBookmarks=true"
				       "&resourceVersion=%s&timeoutSeconds=%u",
				       version, k->seconds);
	else
		err_set(&failed.text, r, "%s", strerror(-r));
	if (r < 0)
		kube_failed(k, &failed);
}
