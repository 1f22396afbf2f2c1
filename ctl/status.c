/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status: how this node is, from its agent; without one, what the socket, etcd, BIRD and the kernel
 * show. Each look is independent: one that fails says so and the next is taken.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "confd/bird/bird_control.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/status_view.h"
#include "lib/base/route_protocol.h"
#include "lib/json/tree.h"
#include "lib/netlink/request.h"

#define BIRD_WAIT_US (2U * 1000U * 1000U)

#define EXIT_PROBLEMS    1
#define EXIT_UNREACHABLE 3

#define PATH "/v1/status"

/* --- the agent ------------------------------------------------------------------------------ */

static void look_at_socket(const struct ctl *ctl, const struct err *why, struct status_view *v)
{
	const char *path = ctl->settings->socket;
	struct stat st;
	bool missing = lstat(path, &st) < 0 && errno == ENOENT;

	status_part(v, "agent", "down", "%s", why->text);
	if (missing)
		status_problem(
			v, "error", "", "agent",
			"there is no socket %s: roostd has not been started since the boot, or has "
			"another --run-dir; running pods are not affected, new ones cannot start: "
			"`systemctl start roostd`, then `journalctl -u roostd`",
			path);
	else
		status_problem(v, "error", "", "agent",
			       "no answer on %s: roostd has stopped or hangs; running pods are not "
			       "affected, new ones cannot start: `systemctl status roostd`, "
			       "`journalctl -u roostd`",
			       path);
}

/* --- etcd ----------------------------------------------------------------------------------- */

static void look_at_etcd(struct ctl *ctl, struct status_view *v)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const char *endpoints = ctl->settings->etcd.endpoints;
	struct err err = { "" };

	ctl->timeout_ms = 2000;
	if (ctl_read_one(ctl, "config", &kvs, &err) == 0) {
		status_part(v, "etcd", "ok", "%s answers", endpoints);
		return;
	}
	status_part(v, "etcd", "down", "%s does not answer", endpoints);
	status_problem(v, "error", "", "etcd", "%s", err.text);
}

/* --- BIRD ----------------------------------------------------------------------------------- */

static void on_disconnected(const char *reason, void *arg)
{
	*(bool *)arg = reason != NULL;
}

static void look_at_bird(struct ctl *ctl, struct status_view *v)
{
	static const struct bird_control_handlers handlers = { .on_disconnected = on_disconnected };
	const char *path = ctl->settings->bird_socket;
	AUTO(bird_control_free) struct bird_control *bird = NULL;
	const struct bird_version *version;
	bool refused = false;
	int r = 1;

	if (sd_event_default(&ctl->event) < 0 ||
	    bird_control_new(ctl->event, path, &handlers, &refused, &bird) < 0)
		return;
	while (r > 0 && !refused && !bird_control_version(bird))
		r = sd_event_run(ctl->event, BIRD_WAIT_US);
	version = bird_control_version(bird);
	if (version) {
		status_part(v, "bird", "ok", "BIRD %u.%u.%u answers on %s", version->major,
			    version->minor, version->patch, path);
		return;
	}
	status_part(v, "bird", "down", "no answer on %s", path);
	status_problem(v, "warning", "", "bird",
		       "%s; unless roostd has --bird-config none, see `systemctl status bird`",
		       bird_control_problem(bird));
}

/* --- the kernel ----------------------------------------------------------------------------- */

static int count_route(const struct nlmsghdr *hdr, void *arg)
{
	const struct rtmsg *m = nlmsg_data(hdr);

	if (hdr->nlmsg_type == RTM_NEWROUTE && m->rtm_protocol == route_protocol)
		(*(unsigned *)arg)++;
	return 0;
}

static void begin_again(void *arg)
{
	*(unsigned *)arg = 0;
}

static int count_routes(struct netlink *nl, unsigned char family, unsigned *ret, struct err *err)
{
	return netlink_dump(nl, ask_routes(family, route_protocol, 0, 0), begin_again, count_route,
			    ret, err);
}

static void look_at_kernel(struct status_view *v)
{
	AUTO(netlink_close) struct netlink *k = NULL;
	struct err err = { "" };
	unsigned four = 0, six = 0;
	int r = netlink_open(NETLINK_ROUTE, &k);

	if (r < 0)
		err_set(&err, r, "%s", strerrordesc_np(-r));
	r = r < 0 ? r : count_routes(k, AF_INET, &four, &err);
	r = r < 0 ? r : count_routes(k, AF_INET6, &six, &err);
	if (r < 0)
		status_part(v, "kernel", "unknown", "its routes cannot be read: %s", err.text);
	else
		status_part(v, "kernel", "ok",
			    "%u IPv4 and %u IPv6 routes of protocol %d (roost) stay as they are",
			    four, six, route_protocol);
}

static void status_alone(struct ctl *ctl, const struct err *why, struct status_view *v)
{
	look_at_socket(ctl, why, v);
	look_at_etcd(ctl, v);
	look_at_kernel(v);
	look_at_bird(ctl, v);
}

/* --- printed -------------------------------------------------------------------------------- */

static const struct out_column part_columns[] = {
	COLUMN("PART", "part"),
	COLUMN("STATE", "state"),
	COLUMN("ABOUT", "about"),
	COLUMNS_END,
};

static const struct out_column problem_columns[] = {
	COLUMN("LEVEL", "level"),
	COLUMN("SINCE", "since"),
	COLUMN("PART", "part"),
	COLUMN("PROBLEM", "problem"),
	COLUMNS_END,
};

static int print_json(const struct out *out, const struct ctl *ctl, const struct status_view *v,
		      struct json_object *status, const char *state)
{
	AUTO(json_put) struct json_object *object = NULL;
	struct tree t = tree_new();
	struct json_object *node = out_at(status, "node");
	int r;

	tree_text(&t, "node", node ? json_object_get_string(node) : ctl->settings->node);
	tree_bool(&t, "reachable", status != NULL);
	tree_text(&t, "state", state);
	tree_share(&t, "parts", v->parts);
	tree_share(&t, "problems", v->problems);
	/* All that the agent says, for scripts that want a number of it. */
	tree_share(&t, "agent", status);
	r = tree_end(&t, &object);
	if (r < 0)
		return r;
	return ctl->settings->watch ? out_json_line(out, object) : out_json(out, object);
}

static int print(const struct out *out, const struct ctl *ctl, const struct status_view *v,
		 struct json_object *status, const char *state)
{
	int r;

	if (out->format == OUT_JSON)
		return print_json(out, ctl, v, status, state);
	r = out_list(out, v->parts, part_columns, NULL);
	out_say(out, "%s", "");
	return r < 0 ? r : out_list(out, v->problems, problem_columns, "All is well.");
}

/* What was seen at one moment. */
struct seen {
	struct status_view view;
	struct json_object *status; /* NULL: no agent */
	const char *state;
};

static void seen_done(struct seen *s)
{
	status_view_done(&s->view);
	json_object_put(s->status);
}

static int look(struct ctl *ctl, const char *path, struct seen *ret, struct err *err)
{
	struct err why = { "" };
	unsigned code = 0;
	int r = ctl_agent(ctl, "GET", path, NULL, &code, &ret->status, &why);

	if (r == -EACCES)
		return err_set(err, r, "%s", why.text);
	if (r == 0 && !out_at(ret->status, "version"))
		return err_set(err, -EBADMSG, "%s answers, but is not an agent",
			       ctl->settings->socket);
	ret->view = status_view_new();
	if (r < 0)
		status_alone(ctl, &why, &ret->view);
	else
		status_view_agent(&ret->view, ret->status, time(NULL));
	ret->state = r < 0 ? "unreachable" : status_view_state(&ret->view);
	return ret->view.failed ? -ENOMEM : 0;
}

/* --- again and again ------------------------------------------------------------------------ */

#define CLEAR "\033[H\033[2J"

/* The text, if it is another than the last; a terminal shows one at a time. */
static int print_if_new(const struct ctl *ctl, const struct seen *s, char **last)
{
	AUTO(free) char *text = NULL;
	struct out out = ctl->out;
	size_t len = 0;
	int r;

	out.to = open_memstream(&text, &len);
	if (!out.to)
		return -ENOMEM;
	r = print(&out, ctl, &s->view, s->status, s->state);
	if (fclose(out.to) != 0 || r < 0)
		return -ENOMEM;
	if (*last && strcmp(*last, text) == 0)
		return 0;
	if (out.format != OUT_JSON && isatty(fileno(ctl->out.to)))
		fputs(CLEAR, ctl->out.to);
	else if (out.format != OUT_JSON && *last)
		fputc('\n', ctl->out.to);
	fputs(text, ctl->out.to);
	fflush(ctl->out.to);
	free(*last);
	*last = TAKE(text);
	return 0;
}

/* The agent answers when there is something new. Without one there is nobody to wait for. */
static int watch(struct ctl *ctl, struct err *err)
{
	AUTO(free) char *last = NULL;
	char path[64] = PATH;

	while (!ferror(ctl->out.to)) {
		AUTO_DONE(seen_done) struct seen s = { 0 };
		int64_t generation;
		int r = look(ctl, path, &s, err);

		if (r < 0)
			return r;
		generation = out_number(s.status, "generation");
		/* It says nothing by itself: what differs in nothing else is no news. */
		if (s.status)
			json_object_object_del(s.status, "generation");
		if (print_if_new(ctl, &s, &last) < 0)
			return -ENOMEM;
		snprintf(path, sizeof(path), PATH "?after=%lld", (long long)generation);
		if (!generation)
			sleep(1);
	}
	return 0;
}

int status_run(struct ctl *ctl, struct err *err)
{
	AUTO_DONE(seen_done) struct seen s = { 0 };
	int r;

	if (ctl->settings->watch)
		return watch(ctl, err);
	r = look(ctl, PATH, &s, err);
	if (r < 0)
		return r;
	if (print(&ctl->out, ctl, &s.view, s.status, s.state) < 0)
		return -ENOMEM;
	if (!s.status)
		return EXIT_UNREACHABLE;
	return strcmp(s.state, "ok") == 0 ? 0 : EXIT_PROBLEMS;
}
