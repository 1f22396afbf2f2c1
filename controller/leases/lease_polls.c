/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leases/lease_polls.h"
#include "controller/leases/lease_server.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/leases/lease_api.h"
#include "controller/leases/lease_jobs.h"

#define PROBE_MS 5000
/* Cursors: of who saw nothing yet; of who saw another etcd, where every lease was given since. */
#define JUST_NOW        INT64_MAX
#define OF_ANOTHER_ETCD (-1)

struct poll {
	TAILQ_ENTRY(poll) entry;
	struct lease_polls *polls;
	struct serve_request *request;
	struct lease_network *network;
	struct prefix one; /* family 0: all */
	int64_t cursor;
	uint64_t probe; /* etcd must be asked in this round or a later one whether cursor can be */
};
TAILQ_HEAD(poll_list, poll);

struct lease_polls {
	const struct lease_server_options *o;
	const struct lease_view *view;
	struct poll_list list;
	size_t n;
	bool doubt;
	int64_t known; /* a revision that etcd has reached */
	uint64_t round;
	struct store_call *probe;
	bool probe_again;
};

static void send_probe(struct lease_polls *p);

void lease_answer_done(void *answer)
{
	serve_shared_unref(answer);
}

int lease_polls_new(const struct lease_server_options *options, const struct lease_view *view,
		    struct lease_polls **ret)
{
	struct lease_polls *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->o = options;
	p->view = view;
	TAILQ_INIT(&p->list);
	*ret = p;
	return 0;
}

static void poll_free(struct poll *q)
{
	TAILQ_REMOVE(&q->polls->list, q, entry);
	q->polls->n--;
	free(q);
}

void lease_polls_free(struct lease_polls *p)
{
	if (!p)
		return;
	if (p->probe)
		store_cancel(p->probe);
	while (!TAILQ_EMPTY(&p->list))
		poll_free(TAILQ_FIRST(&p->list));
	free(p);
}

size_t lease_polls_waiting(const struct lease_polls *p)
{
	return p->n;
}

/* --- answers -------------------------------------------------------------------------------- */

/* What was rendered with r; takes the text, and keeps the answer in *kept, if that is given. */
static void reply(struct serve_request *request, int r, char *text, void **kept)
{
	struct serve_shared *shared = r < 0 ? NULL
					    : serve_shared_new(200, LEASE_CONTENT_TYPE, text,
							       strlen(text));

	free(text);
	if (!shared) {
		serve_reply_error(request, 503, 11, NULL, "out of memory");
		return;
	}
	serve_reply_shared(request, shared);
	if (kept)
		*kept = shared;
	else
		serve_shared_unref(shared);
}

/* cursor: that is not remembered. */
static void reply_snapshot(const struct lease_polls *p, struct serve_request *request,
			   struct lease_network *network, const struct prefix *one, int64_t cursor)
{
	void **kept = one ? NULL : &network->answer;
	char *text = NULL;
	int r;

	if (kept && *kept) {
		serve_reply_shared(request, *kept);
		return;
	}
	r = lease_view_since(p->view, network, one, cursor, &text);
	reply(request, r, text, kept);
}

static void reply_change(struct serve_request *request, struct lease_change *change,
			 const struct prefix *one)
{
	void **kept = one ? NULL : &change->answer;
	char *text = NULL;
	int r;

	if (kept && *kept) {
		serve_reply_shared(request, *kept);
		return;
	}
	r = lease_change_render(change, one, &text);
	reply(request, r, text, kept);
}

/* Whether it was answered. */
static bool try_answer(const struct lease_polls *p, struct serve_request *request,
		       struct lease_network *network, const struct prefix *one, int64_t cursor)
{
	struct lease_change *change;

	if (!lease_network_remembers(network, cursor)) {
		reply_snapshot(p, request, network, one, cursor);
		return true;
	}
	change = lease_network_after(network, cursor, one);
	if (change)
		reply_change(request, change, one);
	return change;
}

static const struct prefix *one_of(const struct poll *q)
{
	return q->one.address.family ? &q->one : NULL;
}

void lease_polls_look(struct lease_polls *p)
{
	struct poll *next;
	bool doubt = p->doubt, recovering = lease_view_recovering(p->view);

	if (!lease_view_ready(p->view))
		return;
	p->doubt = false;
	for (struct poll *q = TAILQ_FIRST(&p->list); q; q = next) {
		next = TAILQ_NEXT(q, entry);
		if (recovering)
			serve_reply_error(q->request, 503, 11, NULL, "%s", LEASE_WENT_BACK);
		else if (doubt)
			reply_snapshot(p, q->request, q->network, one_of(q), OF_ANOTHER_ETCD);
		else if (!try_answer(p, q->request, q->network, one_of(q), q->cursor))
			continue;
		poll_free(q);
	}
}

void lease_polls_doubt(struct lease_polls *p)
{
	p->doubt = true;
	p->known = 0;
}

/* --- revisions that we have not seen -------------------------------------------------------- */

static void on_probe(const struct store_reply *reply, void *arg)
{
	struct lease_polls *p = arg;
	uint64_t round = p->round;
	struct poll *next;

	p->probe = NULL;
	if (reply->err == 0 && reply->revision > p->known)
		p->known = reply->revision;
	/* Not known: they wait on, as they would have to anyway. */
	for (struct poll *q = TAILQ_FIRST(&p->list); q && reply->err == 0; q = next) {
		next = TAILQ_NEXT(q, entry);
		if (q->probe && q->probe <= round && q->cursor > reply->revision) {
			reply_snapshot(p, q->request, q->network, one_of(q), OF_ANOTHER_ETCD);
			poll_free(q);
		} else if (q->probe <= round) {
			q->probe = 0;
		}
	}
	if (p->probe_again)
		send_probe(p);
}

/* Not from the view's own keys: any read tells how far etcd is. */
static void send_probe(struct lease_polls *p)
{
	char key[KEY_FULL_TEXT];

	p->probe_again = p->probe != NULL;
	if (p->probe || key_full(p->o->prefix, "config", key) < 0)
		return;
	p->round++;
	store_get(p->o->store, key, PROBE_MS, on_probe, p, &p->probe);
}

/* --- waiting -------------------------------------------------------------------------------- */

static void on_end(struct serve_request *request, enum serve_end why, void *arg)
{
	poll_free(arg);
}

static void wait_for_change(struct lease_polls *p, struct serve_request *request,
			    struct lease_network *network, const struct prefix *one, int64_t cursor)
{
	struct poll *q = calloc(1, sizeof(*q));

	if (!q) {
		serve_reply_error(request, 503, 11, NULL, "out of memory");
		return;
	}
	*q = (struct poll){ .polls = p, .request = request, .network = network, .cursor = cursor };
	if (one)
		q->one = *one;
	TAILQ_INSERT_TAIL(&p->list, q, entry);
	p->n++;
	if (serve_wait(request, SERVE_FOREVER, on_end, q) < 0) {
		poll_free(q);
		return;
	}
	if (cursor <= p->view->mirror.revision || cursor <= p->known)
		return;
	/* One that is under way was asked before this client came. */
	q->probe = p->round + 1;
	send_probe(p);
}

void lease_polls_add(struct lease_polls *p, struct serve_request *request,
		     struct lease_network *network, const struct prefix *one, const char *next)
{
	char shown[SHOW_TEXT];
	int64_t cursor;

	if (!next) {
		reply_snapshot(p, request, network, one, JUST_NOW);
		return;
	}
	if (lease_cursor_parse(next, &cursor) < 0) {
		serve_reply_error(request, 500, 5, NULL,
				  "next: \"%s\" is not a cursor: use that of the last reply",
				  text_show(next, shown));
		return;
	}
	if (!try_answer(p, request, network, one, cursor))
		wait_for_change(p, request, network, one, cursor);
}
