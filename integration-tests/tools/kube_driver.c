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
#include "lib/json/json_stream.h"

struct driver {
	sd_event *event;
	struct kube *kube;
	struct json_stream *commands;
};

/* --- output --------------------------------------------------------------------------------- */

static void emit(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
	json_object_put(o);
}

static void add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

static void add_number(struct json_object *o, const char *name, uint64_t n)
{
	json_object_object_add(o, name, json_object_new_int64((int64_t)n));
}

static void add_bool(struct json_object *o, const char *name, bool v)
{
	json_object_object_add(o, name, json_object_new_boolean(v));
}

static void on_node(const struct kube_node *node, void *arg)
{
	struct json_object *o = json_object_new_object(), *labels = json_object_new_object();
	struct json_object *cidrs = json_object_new_array();
	char text[PREFIX_TEXT];

	add_text(o, "node", node->name);
	add_text(o, "uid", node->uid);
	for (size_t i = 0; i < node->labels.n; i++)
		add_text(labels, node->labels.v[i].key, node->labels.v[i].value);
	json_object_object_add(o, "labels", labels);
	for (size_t i = 0; i < node->pod_cidrs.n; i++)
		json_object_array_add(
			cidrs, json_object_new_string(prefix_print(&node->pod_cidrs.v[i], text)));
	json_object_object_add(o, "podCIDRs", cidrs);
	add_bool(o, "deleting", node->deleting);
	add_number(o, "left_out", node->labels_left_out + node->pod_cidrs_left_out);
	emit(o);
}

static void on_gone(const char *name, const char *uid, void *arg)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "gone", name);
	add_text(o, "uid", uid);
	emit(o);
}

static void on_in_sync(void *arg)
{
	struct json_object *o = json_object_new_object();

	add_bool(o, "in_sync", true);
	emit(o);
}

static void on_trouble(const char *text, void *arg)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "trouble", text);
	emit(o);
}

/* getrusage() would count what the parent had before exec as well. */
static uint64_t peak_rss_kib(void)
{
	AUTO(fclose) FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	return (uint64_t)kib;
}

static void do_stats(const struct driver *d)
{
	struct json_object *o = json_object_new_object();
	struct kube_stats s;

	kube_stats(d->kube, &s);
	add_bool(o, "stats", true);
	add_number(o, "requests", s.requests);
	add_number(o, "failures", s.failures);
	add_number(o, "lists", s.lists);
	add_number(o, "watches", s.watches);
	add_number(o, "events", s.events);
	add_number(o, "bookmarks", s.bookmarks);
	add_number(o, "told", s.told);
	add_number(o, "gone", s.gone);
	add_number(o, "objects_bad", s.objects_bad);
	add_number(o, "labels_bad", s.labels_bad);
	add_number(o, "token_reads", s.token_reads);
	add_number(o, "nodes", s.nodes);
	add_number(o, "doubts", s.doubts);
	add_bool(o, "in_sync", s.in_sync);
	add_bool(o, "watching", s.watching);
	add_text(o, "last_bad", s.last_bad);
	add_text(o, "server", s.server);
	add_number(o, "peak_rss_kib", peak_rss_kib());
	emit(o);
}

/* --- input ---------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_string(v) : "";
}

static int on_command(struct json_object *c, void *arg)
{
	struct driver *d = arg;
	const char *op = text_of(c, "op");

	if (strcmp(op, "quit") == 0)
		return sd_event_exit(d->event, 0);
	if (strcmp(op, "stats") == 0)
		do_stats(d);
	else if (strcmp(op, "expect") == 0)
		return kube_expect(d->kube, text_of(c, "name"), text_of(c, "uid"));
	return 0;
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct driver *d = arg;
	char buffer[4096];
	ssize_t n = read(fd, buffer, sizeof(buffer));

	if (n <= 0 || json_stream_feed(d->commands, buffer, (size_t)n, NULL) < 0)
		return sd_event_exit(d->event, n < 0);
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
		r = json_stream_new(65536, on_command, &d, &d.commands);
	if (r >= 0)
		r = sd_event_add_io(d.event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, &d);
	if (r >= 0)
		r = sd_event_loop(d.event);
	if (r < 0)
		fprintf(stderr, "kube-driver: %s\n", err.text[0] ? err.text : strerror(-r));
	kube_free(d.kube);
	json_stream_free(d.commands);
	sd_event_unref(d.event);
	return r == 0 ? 0 : 1;
}
