/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting. libmicrohttpd takes a suspended connection off its epoll and does not see its client go;
 * so its descriptor is watched here for as long, on the same loop.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/daemon/serve_parts.h"

#define DEADLINE_ACCURACY_US 1000

void serve_stop_waiting(struct serve_request *q)
{
	q->deadline = sd_event_source_disable_unref(q->deadline);
	q->watch = sd_event_source_disable_unref(q->watch);
}

void serve_answer(struct serve_request *q, unsigned status, struct MHD_Response *response)
{
	/* Against the contract; keeping the first is the harmless way out. */
	if (q->answered) {
		if (response)
			MHD_destroy_response(response);
		return;
	}
	q->answered = true;
	if (q->began)
		q->serve->answered(q->path, response || q->shared ? status : 0,
				   clock_monotonic_us() - q->began, q->serve->arg);
	q->status = status;
	q->response = response;
	serve_stop_waiting(q);
	if (!q->suspended)
		return;
	q->suspended = false;
	TAILQ_REMOVE(&q->serve->suspended, q, entry);
	/*
	 * It is handled again from the loop, where the answer is found. Without a thread of its own
	 * libmicrohttpd has no way to wake anybody up: that is left to us.
	 */
	MHD_resume_connection(q->connection);
	if (q->serve->again)
		sd_event_source_set_enabled(q->serve->again, SD_EVENT_ONESHOT);
}

void serve_end(struct serve_request *q, enum serve_end why)
{
	serve_stop_waiting(q);
	if (q->on_end)
		q->on_end(q, why, q->arg);
	if (q->answered)
		return;
	switch (why) {
	case SERVE_GONE:
		serve_answer(q, 500, NULL);
		break;
	case SERVE_LATE:
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL, "not answered in time");
		break;
	case SERVE_CLOSING:
		serve_reply_error(q, 503, CNI_CODE_TRY_AGAIN, NULL, "the server is shutting down");
		break;
	}
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *arg)
{
	serve_end(arg, SERVE_LATE);
	return 0;
}

static int on_gone(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	serve_end(arg, SERVE_GONE);
	return 0;
}

static int set_deadline(struct serve_request *q, uint64_t ms)
{
	uint64_t us = ms < UINT64_MAX / 1000 ? ms * 1000 : UINT64_MAX;
	int r;

	if (ms == SERVE_FOREVER) {
		q->deadline = sd_event_source_disable_unref(q->deadline);
		return 0;
	}
	if (!q->deadline)
		return sd_event_add_time_relative(q->serve->event, &q->deadline, CLOCK_MONOTONIC,
						  us, DEADLINE_ACCURACY_US, on_deadline, q);
	r = sd_event_source_set_time_relative(q->deadline, us);
	return r < 0 ? r : sd_event_source_set_enabled(q->deadline, SD_EVENT_ONESHOT);
}

static int watch_client(struct serve_request *q)
{
	const union MHD_ConnectionInfo *info;

	if (q->watch)
		return 0;
	info = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info)
		return -EBADF;
	return sd_event_add_io(q->serve->event, &q->watch, info->connect_fd, q->serve->gone_events,
			       on_gone, q);
}

int serve_wait(struct serve_request *q, uint64_t deadline_ms, serve_end_fn *on_end, void *arg)
{
	int r = set_deadline(q, deadline_ms);

	r = r < 0 ? r : watch_client(q);
	if (r < 0) {
		serve_reply_error(q, 500, CNI_CODE_IO, NULL, "waiting is not possible here");
		return r;
	}
	q->on_end = on_end;
	q->arg = arg;
	q->waits = true;
	return 0;
}
