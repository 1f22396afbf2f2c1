/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of all Nodes, page by page. Each Node is told as it arrives; only a list that is
 * complete says that anything is missing.
 */
#include <errno.h>
#include <string.h>

#include "controller/kube/kube_client.h"
#include "lib/json/json.h"

#define CONTINUE_MAX 16384

static int on_item(struct json_object *item, void *arg)
{
	struct kube *k = arg;
	struct kube_node node;
	int r = kube_read_node(k, item, &node);

	/* One that cannot be read is left out; whoever vanishes so is asked for by name. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = kube_take(k, &node);
	kube_node_done(&node);
	return r;
}

static int on_data(const char *data, size_t n, void *arg)
{
	struct kube_request *q = arg;

	return kube_list_feed(q->kube->pages, data, n, &q->reason);
}

static int missing(const char *name, const char *uid, void *arg)
{
	return kube_doubt(arg, name, uid);
}

static int complete(struct kube *k)
{
	int r = kube_view_list_end(k->view, missing, k);

	if (r < 0)
		return r;
	free(k->version);
	k->version = TAKE(k->list_version);
	k->stats.lists++;
	k->stats.in_sync = true;
	/* What was wrong is well again when the watch is open too. */
	k->handlers.in_sync(k->arg);
	return 0;
}

/* The metadata of a page: where to go on, and of which version the whole list is. */
static int take_envelope(struct kube *k, struct json_object *envelope, struct err *err)
{
	struct json_at root = json_root(envelope, err), meta = json_need(&root, "metadata");
	const char *kind = "", *version = "", *more = "";
	int r = json_read_text(json_need(&root, "kind"), JSON_STRING_MAX, &kind);

	if (r > 0 && strcmp(kind, "NodeList") != 0)
		return json_refuse(json_need(&root, "kind"), "is not \"NodeList\"");
	if (r > 0)
		r = json_read_object(meta);
	if (r > 0)
		r = json_read_text(json_need(&meta, "resourceVersion"), JSON_STRING_MAX, &version);
	if (r > 0)
		r = json_read_text(json_member(&meta, "continue"), CONTINUE_MAX, &more);
	if (r < 0)
		return r;
	if (!*version)
		return err_set(err, -EBADMSG, "the list has no resourceVersion");
	/* All pages are of one version; the first's is the safe one. */
	if (!k->list_version)
		k->list_version = strdup(version);
	curl_free(k->next_page);
	k->next_page = *more ? curl_easy_escape(NULL, more, 0) : NULL;
	if (!k->list_version || (*more && !k->next_page))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void forget(struct kube *k)
{
	curl_free(TAKE(k->next_page));
	free(TAKE(k->list_version));
}

static enum kube_verdict on_done(struct kube_request *q, const struct kube_outcome *outcome)
{
	AUTO(json_put) struct json_object *envelope = NULL;
	struct kube_outcome failed = { .verdict = KUBE_FAILED };
	struct kube *k = q->kube;
	struct err why = { "" };
	int r = 0;

	if (outcome->verdict == KUBE_OK) {
		r = kube_list_end(k->pages, &envelope, &why);
		r = r ?: take_envelope(k, envelope, &why);
		if (r == 0 && !k->next_page)
			r = complete(k);
	}
	kube_list_free(TAKE(k->pages));
	if (outcome->verdict != KUBE_OK) {
		forget(k);
		kube_failed(k, outcome);
	} else if (r < 0) {
		forget(k);
		k->stats.failures++;
		err_set(&failed.text, 0, "list nodes: invalid reply from %s: %s", k->config->server,
			why.text[0] ? why.text : strerror(-r));
		kube_failed(k, &failed);
	} else {
		kube_go_on(k);
	}
	return r < 0 ? failed.verdict : outcome->verdict;
}

void kube_list_start(struct kube *k)
{
	struct kube_outcome failed = { .verdict = KUBE_FAILED };
	int r;

	if (!k->next_page) {
		forget(k);
		kube_view_list_begin(k->view);
	}
	kube_list_free(TAKE(k->pages));
	r = kube_list_new(KUBE_OBJECT_MAX, on_item, k, &k->pages);
	k->request.verb = KUBE_LIST;
	k->request.on_ok = NULL;
	k->request.on_data = on_data;
	k->request.on_done = on_done;
	/* Without a resourceVersion: what the cluster's store has now, not a cache of it. */
	if (r == 0)
		r = kube_request_start(&k->request, k->options.request_ms, &failed.text,
				       "/api/v1/nodes?limit=%u%s%s", k->options.page,
				       k->next_page ? "&continue=" : "", k->next_page ?: "");
	else
		err_set(&failed.text, r, "%s", strerror(-r));
	if (r < 0) {
		forget(k);
		kube_list_free(TAKE(k->pages));
		kube_failed(k, &failed);
	}
}
