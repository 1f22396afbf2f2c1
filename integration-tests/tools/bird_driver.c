/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives confd/bird/bird_control from outside: commands on stdin, one JSON object per line on stdout.
 *
 *   bird-driver SOCKET
 *   1 command show status          {"id":1,"err":"","code":13,"text":"Daemon is up ..."}
 *   2 show show protocols all      {"id":2,"err":"","words":"","protocols":[...]}
 *   3 configure                    {"id":3,"outcome":"done","words":"Reconfigured"}
 *   4 check PROGRAM FILE           {"id":4,"err":"EINVAL","words":"x.conf:1:2 syntax error"}
 *   5 quit
 *   and by itself                  {"event":"connected","text":"2.0.12"}
 *                                  {"event":"disconnected","text":"..."}
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/epoll.h>

#include "confd/bird/bird_show.h"
#include "confd/bird_step.h"
#include "integration-tests/tools/json_lines.h"

struct driver {
	sd_event *event;
	struct bird_control *control;
	char line[4096];
	size_t len;
};

struct request {
	int64_t id;
};

/* --- output --------------------------------------------------------------------------------- */

static struct json_object *answer_to(struct request *q)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_int64(q->id));
	free(q);
	return o;
}

static void add_err(struct json_object *o, int err)
{
	line_text(o, "err", err ? strerrorname_np(-err) : "");
}

static void on_connected(const struct bird_version *v, void *arg)
{
	struct json_object *o = json_object_new_object();
	char text[64];

	snprintf(text, sizeof(text), "%u.%u.%u", v->major, v->minor, v->patch);
	line_text(o, "event", "connected");
	line_text(o, "text", text);
	line_end(o);
}

static void on_disconnected(const char *reason, void *arg)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "event", "disconnected");
	line_text(o, "text", reason);
	line_end(o);
}

static void on_reply(int err, const struct bird_reply *reply, void *arg)
{
	struct json_object *o = answer_to(arg);

	add_err(o, err);
	if (!err) {
		line_number(o, "code", reply->code);
		line_text(o, "text", reply->text);
		line_number(o, "bytes", (int64_t)reply->len);
	}
	line_end(o);
}

static void on_configured(enum bird_outcome outcome, const char *words, void *arg)
{
	struct json_object *o = answer_to(arg);

	line_text(o, "outcome", bird_outcome_name(outcome));
	line_text(o, "words", words);
	line_end(o);
}

static void on_checked(int err, const char *words, void *arg)
{
	struct json_object *o = answer_to(arg);

	add_err(o, err);
	line_text(o, "words", words);
	line_end(o);
}

static struct json_object *channel_object(const struct bird_channel *c)
{
	struct json_object *o = json_object_new_object();

	line_text(o, "name", c->name);
	line_text(o, "state", c->state);
	line_text(o, "table", c->table);
	line_number(o, "imported", c->imported);
	line_number(o, "exported", c->exported);
	line_number(o, "preferred", c->preferred);
	return o;
}

static struct json_object *protocol_object(const struct bird_protocols *list,
					   const struct bird_protocol *p)
{
	const struct bird_channel *c = bird_protocol_channels(list, p);
	struct json_object *o = json_object_new_object(), *channels = json_object_new_array();

	line_text(o, "name", p->name);
	line_text(o, "proto", p->proto);
	line_text(o, "state", p->state);
	line_text(o, "since", p->since);
	line_text(o, "info", p->info);
	line_text(o, "bgp_state", p->bgp_state);
	line_text(o, "neighbor", p->neighbor);
	line_text(o, "last_error", p->last_error);
	line_number(o, "neighbor_as", p->neighbor_as);
	for (size_t i = 0; i < p->n_channels; i++)
		json_object_array_add(channels, channel_object(&c[i]));
	json_object_object_add(o, "channels", channels);
	return o;
}

static struct json_object *row_object(const struct bird_row *row)
{
	struct json_object *o = json_object_new_array();

	json_object_array_add(o, json_object_new_string(row->protocol));
	for (size_t i = 0; i < BIRD_COLUMNS; i++)
		json_object_array_add(o, json_object_new_string(row->cell[i]));
	return o;
}

static void add_view(struct json_object *o, struct bird_answer *a)
{
	struct json_object *list = json_object_new_array();

	switch (a->view) {
	case BIRD_VIEW_STATUS:
		line_text(o, "router_id", a->status.router_id);
		line_text(o, "state", a->status.state);
		break;
	case BIRD_VIEW_PROTOCOLS:
	case BIRD_VIEW_PROTOCOLS_ALL:
		for (size_t i = 0; i < a->protocols.n; i++)
			json_object_array_add(list,
					      protocol_object(&a->protocols, &a->protocols.v[i]));
		break;
	case BIRD_VIEW_ROUTE_COUNT:
		for (size_t i = 0; i < a->counts.n; i++) {
			struct json_object *count = json_object_new_object();

			line_text(count, "table", a->counts.v[i].table);
			line_number(count, "routes", a->counts.v[i].routes);
			json_object_array_add(list, count);
		}
		break;
	case BIRD_VIEW_BFD:
	case BIRD_VIEW_OSPF:
		for (size_t i = 0; i < a->table.n; i++)
			json_object_array_add(list, row_object(&a->table.v[i]));
		break;
	case BIRD_VIEWS:
		break;
	}
	json_object_object_add(o, "list", list);
}

static void on_answer(struct bird_answer *a, void *arg)
{
	struct json_object *o = answer_to(arg);

	add_err(o, a->err);
	line_text(o, "words", a->words);
	if (!a->err)
		add_view(o, a);
	line_end(o);
}

/* --- input ---------------------------------------------------------------------------------- */

static int do_show(struct driver *d, const char *command, struct request *q)
{
	for (unsigned v = 0; v < BIRD_VIEWS; v++)
		if (strcmp(command, bird_view_name(v)) == 0)
			return bird_show(d->control, v, on_answer, q);
	return -ENOSYS;
}

static int do_check(struct driver *d, char *rest, struct request *q)
{
	const char *program = strsep(&rest, " ");
	struct bird_check *check;

	return bird_check(d->event, program, rest ?: "", on_checked, q, &check, NULL);
}

static int do_request(struct driver *d, const char *op, char *rest, struct request *q)
{
	if (strcmp(op, "command") == 0)
		return bird_command(d->control, rest, 0, on_reply, q);
	if (strcmp(op, "show") == 0)
		return do_show(d, rest, q);
	if (strcmp(op, "configure") == 0)
		return bird_configure(d->control, on_configured, q);
	if (strcmp(op, "check") == 0)
		return do_check(d, rest, q);
	return -ENOSYS;
}

static void on_line(struct driver *d, char *line)
{
	struct request *q = calloc(1, sizeof(*q));
	const char *op;
	int r;

	if (!q)
		return;
	q->id = strtoll(strsep(&line, " ") ?: "", NULL, 10);
	op = strsep(&line, " ") ?: "";
	if (strcmp(op, "quit") == 0) {
		free(q);
		sd_event_exit(d->event, 0);
		return;
	}
	r = do_request(d, op, line ?: (char[]){ "" }, q);
	if (r < 0)
		on_checked(r, "refused by the client", q);
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct driver *d = arg;
	ssize_t n = read(fd, d->line + d->len, sizeof(d->line) - 1 - d->len);
	char *lf;

	if (n <= 0)
		return sd_event_exit(d->event, 0);
	d->len += (size_t)n;
	d->line[d->len] = '\0';
	while ((lf = strchr(d->line, '\n'))) {
		*lf = '\0';
		on_line(d, d->line);
		d->len -= (size_t)(lf + 1 - d->line);
		memmove(d->line, lf + 1, d->len + 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct bird_control_handlers handlers = { on_connected, on_disconnected };
	static struct driver d;
	int r = argc == 2 ? sd_event_default(&d.event) : -EINVAL;

	if (r >= 0)
		r = bird_control_new(d.event, argv[1], &handlers, &d, &d.control);
	if (r >= 0)
		r = sd_event_add_io(d.event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, &d);
	if (r >= 0)
		r = sd_event_loop(d.event);
	if (r < 0)
		fprintf(stderr, "bird-driver: %s\n", strerror(-r));
	bird_control_free(d.control);
	sd_event_unref(d.event);
	return r == 0 ? 0 : 1;
}
