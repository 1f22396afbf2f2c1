/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes client, driven from a test: what it tells goes to stdout, one JSON object a line.
 *
 *   kube-driver [--kubeconfig F] [--context C] [--insecure] [--service-account FOLDER] [--page N]
 *               [--request-ms N] [--watch-s N] [--margin-ms N] [--backoff-ms N]
 *
 *   {"node":"n1","uid":"...","labels":{...},"podCIDRs":[...],"deleting":false,"left_out":0}
 *   {"gone":"n1","uid":"..."}   {"in_sync":true}   {"trouble":"..."}
 *
 * Commands on stdin:
 *   {"op":"expect","name":"n1","uid":"..."}   {"op":"stats"}   {"op":"quit"}
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "controller/kube/kube.h"
#include "integration-tests/tools/json_lines.h"

struct driver {
	sd_event *event;
	struct kube *kube;
};

/* --- output --------------------------------------------------------------------------------- */

static void on_node(const struct kube_node *node, void *arg)
{
	struct json_object *o = json_object_new_object(), *labels = json_object_new_object();
	struct json_object *cidrs = json_object_new_array();
	char text[PREFIX_TEXT];

	line_text(o, "node", node->name);
	line_text(o, "uid", node->uid);
	for (size_t i = 0; i < node->labels.n; i++)
		line_text(labels, node->labels.v[i].key, node->labels.v[i].value);
	json_object_object_add(o, "labels", labels);
	for (size_t i = 0; i < node->pod_cidrs.n; i++)
		json_object_array_add(
			cidrs, json_object_new_string(prefix_print(&node->pod_cidrs.v[i], text)));
	json_object_object_add(o, "podCIDRs", cidrs);
	line_bool(o, "deleting", node->deleting);
	line_number(o, "left_out", (int64_t)(node->labels_left_out + node->pod_cidrs_left_out));
	line_end(o);
}

static void on_gone(const char *name, const char *uid, void *arg)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "gone", name);
	line_text(o, "uid", uid);
	line_end(o);
}

static void on_in_sync(void *arg)
{
	struct json_object *o = json_object_new_object();

	line_bool(o, "in_sync", true);
	line_end(o);
}

static void on_trouble(const char *text, void *arg)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "trouble", text);
	line_end(o);
}

static void do_stats(const struct driver *d)
{
	struct json_object *o = json_object_new_object();
	struct kube_stats s;

	kube_stats(d->kube, &s);
	line_bool(o, "stats", true);
	line_number(o, "requests", (int64_t)s.requests);
	line_number(o, "failures", (int64_t)s.failures);
	line_number(o, "lists", (int64_t)s.lists);
	line_number(o, "watches", (int64_t)s.watches);
	line_number(o, "events", (int64_t)s.events);
	line_number(o, "bookmarks", (int64_t)s.bookmarks);
	line_number(o, "told", (int64_t)s.told);
	line_number(o, "gone", (int64_t)s.gone);
	line_number(o, "objects_bad", (int64_t)s.objects_bad);
	line_number(o, "labels_bad", (int64_t)s.labels_bad);
	line_number(o, "token_reads", (int64_t)s.token_reads);
	line_number(o, "nodes", (int64_t)s.nodes);
	line_number(o, "doubts", (int64_t)s.doubts);
	line_bool(o, "in_sync", s.in_sync);
	line_bool(o, "watching", s.watching);
	line_text(o, "last_bad", s.last_bad);
	line_text(o, "server", s.server);
	line_number(o, "peak_rss_kib", peak_rss_kib());
	line_end(o);
}

/* --- input ---------------------------------------------------------------------------------- */

static int on_command(struct json_object *c, void *arg)
{
	struct driver *d = arg;
	const char *op = command_text(c, "op") ?: "";

	if (strcmp(op, "stats") == 0)
		do_stats(d);
	else if (strcmp(op, "expect") == 0)
		return kube_expect(d->kube, command_text(c, "name"), command_text(c, "uid"));
	return 0;
}

static int parse_arguments(int argc, char **argv, struct kube_options *o)
{
	static const struct option options[] = {
		{ "kubeconfig", required_argument, NULL, 'k' },
		{ "context", required_argument, NULL, 'c' },
		{ "insecure", no_argument, NULL, 'i' },
		{ "service-account", required_argument, NULL, 's' },
		{ "page", required_argument, NULL, 'p' },
		{ "request-ms", required_argument, NULL, 'r' },
		{ "watch-s", required_argument, NULL, 'w' },
		{ "margin-ms", required_argument, NULL, 'm' },
		{ "backoff-ms", required_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	uint32_t n;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		n = optarg ? (uint32_t)strtoul(optarg, NULL, 10) : 0;
		switch (c) {
		case 'k':
			o->kubeconfig = optarg;
			break;
		case 'c':
			o->context = optarg;
			break;
		case 'i':
			o->insecure = true;
			break;
		case 's':
			o->service_account = optarg;
			break;
		case 'p':
			o->page = n;
			break;
		case 'r':
			o->request_ms = n;
			break;
		case 'w':
			o->watch_s = n;
			break;
		case 'm':
			o->margin_ms = n;
			break;
		case 'b':
			o->backoff_ms = n;
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct kube_handlers handlers = { on_node, on_gone, on_in_sync, on_trouble };
	static struct driver d;
	struct kube_options options = { 0 };
	struct err err = { "" };
	int r = parse_arguments(argc, argv, &options);

	if (r == 0)
		r = sd_event_default(&d.event);
	if (r >= 0)
		r = kube_new(d.event, &options, &handlers, &d, &d.kube, &err);
	if (r >= 0)
		r = json_lines_run(d.event, on_command, &d);
	if (r < 0)
		fprintf(stderr, "kube-driver: %s\n", err.text[0] ? err.text : strerror(-r));
	kube_free(d.kube);
	sd_event_unref(d.event);
	return r == 0 ? 0 : 1;
}
