/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_show.h"

#include <errno.h>
#include <string.h>

/* 5,000 peers are 100 ms of work for BIRD and half a second for BIRD 3 while others ask too. */
#define SHOW_TIMEOUT_MS 20000

struct asked {
	struct bird_control *control;
	enum bird_view view;
	bird_answer_fn *fn;
	void *arg;
};

const char *bird_view_name(enum bird_view v)
{
	static const char *const commands[BIRD_VIEWS] = {
		[BIRD_VIEW_STATUS] = "show status",
		[BIRD_VIEW_PROTOCOLS] = "show protocols",
		[BIRD_VIEW_PROTOCOLS_ALL] = "show protocols all",
		[BIRD_VIEW_ROUTE_COUNT] = "show route count",
		[BIRD_VIEW_BFD] = "show bfd sessions",
		[BIRD_VIEW_OSPF] = "show ospf neighbors",
	};

	return commands[v];
}

static int parse(const struct bird_reply *reply, struct bird_answer *a)
{
	switch (a->view) {
	case BIRD_VIEW_STATUS:
		return bird_status_parse(reply, &a->status);
	case BIRD_VIEW_PROTOCOLS:
	case BIRD_VIEW_PROTOCOLS_ALL:
		return bird_protocols_parse(reply, &a->protocols);
	case BIRD_VIEW_ROUTE_COUNT:
		return bird_counts_parse(reply, &a->counts);
	case BIRD_VIEW_BFD:
	case BIRD_VIEW_OSPF:
		return bird_table_parse(reply, &a->table);
	case BIRD_VIEWS:
		break;
	}
	return -EINVAL;
}

static void let_go(struct bird_answer *a)
{
	switch (a->err ? BIRD_VIEWS : a->view) {
	case BIRD_VIEW_PROTOCOLS:
	case BIRD_VIEW_PROTOCOLS_ALL:
		bird_protocols_done(&a->protocols);
		break;
	case BIRD_VIEW_ROUTE_COUNT:
		bird_counts_done(&a->counts);
		break;
	case BIRD_VIEW_BFD:
	case BIRD_VIEW_OSPF:
		bird_table_done(&a->table);
		break;
	case BIRD_VIEW_STATUS:
	case BIRD_VIEWS:
		break;
	}
}

static void on_reply(int err, const struct bird_reply *reply, void *arg)
{
	const struct asked *asked = arg;
	struct bird_answer a = { .err = err, .words = "", .view = asked->view };

	if (err) {
		a.words = bird_control_problem(asked->control);
	} else {
		a.err = parse(reply, &a);
		if (a.err == -EBADMSG && bird_reply_failed(reply)) {
			a.err = -EREMOTEIO;
			a.words = reply->text;
		} else if (a.err) {
			a.words = strerror(-a.err);
		}
	}
	asked->fn(&a, asked->arg);
	let_go(&a);
}

int bird_show(struct bird_control *c, enum bird_view view, bird_answer_fn *fn, void *arg)
{
	AUTO(free) struct asked *asked = malloc(sizeof(*asked));
	int r;

	if (!asked)
		return -ENOMEM;
	*asked = (struct asked){ .control = c, .view = view, .fn = fn, .arg = arg };
	r = bird_ask(c, bird_view_name(view), SHOW_TIMEOUT_MS, on_reply, asked, free);
	if (r == 0)
		asked = NULL;
	return r;
}
