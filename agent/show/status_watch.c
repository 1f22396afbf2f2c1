/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/show/status_watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER_MS 100
#define LATEST_MS   8000 /* less than clients wait for any answer */

static void answer_all(void *arg)
{
	struct status_watch *w = arg;

	/* Whoever asks again meanwhile knows of it and waits for the next. */
	for (size_t n = w->n; n > 0 && w->n > 0; n--)
		w->answer(w->v[--w->n], w->arg);
}

void status_watch_init(struct status_watch *w, struct timers *timers, serve_handler_fn *answer,
		       void *arg)
{
	*w = (struct status_watch){
		/* Further than any agent before us has counted on this boot. */
		.generation = timers_now(timers),
		.timers = timers,
		.soon = { .fn = answer_all, .arg = w },
		.answer = answer,
		.arg = arg,
	};
}

void status_watch_done(struct status_watch *w)
{
	if (w->timers)
		timer_clear(w->timers, &w->soon);
	free(w->v);
	*w = (struct status_watch){ 0 };
}

void status_watch_changed(struct status_watch *w)
{
	w->generation++;
	if (w->n && !w->soon.set)
		timer_set(w->timers, &w->soon, TOGETHER_MS, 0);
}

static void on_end(struct serve_request *request, enum serve_end why, void *arg)
{
	struct status_watch *w = arg;

	for (size_t i = 0; i < w->n; i++)
		if (w->v[i] == request) {
			w->v[i] = w->v[--w->n];
			break;
		}
	/* In time: the same as before, so that a client need not wonder whether we live. */
	if (why == SERVE_LATE)
		w->answer(request, w->arg);
}

bool status_watch_wait(struct status_watch *w, struct serve_request *request)
{
	const char *after = serve_query(request, "after");
	struct serve_request **more;
	char newest[24];

	snprintf(newest, sizeof(newest), "%" PRIu64, w->generation);
	if (!after || strcmp(after, newest) != 0)
		return false;
	more = reallocarray(w->v, w->n + 1, sizeof(*more));
	if (!more)
		return false;
	w->v = more;
	/* It has been answered if it cannot wait. */
	if (serve_wait(request, LATEST_MS, on_end, w) == 0)
		w->v[w->n++] = request;
	return true;
}
