/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/http.h"

#include "lib/base/array.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "lib/http/http_verify.h"

/* Idle easy handles kept for the next request; making one costs more than a request's own work. */
#define KEEP_HANDLES 16
/* libcurl would go on with a CA file that it read up to a day ago; they are rotated. */
#define CA_CACHE_SECONDS 60L

struct http_call {
	TAILQ_ENTRY(http_call) entry;  /* in http.calls */
	TAILQ_ENTRY(http_call) queued; /* in http.ready, if is_ready */
	struct http *http;
	CURL *easy;
	char *body; /* NULL: a GET */
	unsigned sendings;
	size_t max_reply;
	http_head_fn *on_head;
	http_data_fn *on_data;
	http_done_fn *on_done;
	void *arg;
	long head;   /* the status, waiting to be handed on */
	char *reply; /* collected, or waiting to be handed on */
	size_t reply_len, reply_room;
	char text[CURL_ERROR_SIZE + 32];
	CURLcode code;
	int err;
	bool once, is_ready, done, too_large, in_callback, cancelled;
};

TAILQ_HEAD(call_list, http_call);

struct http {
	sd_event *event;
	CURLM *multi;
	sd_event_source *timer;
	struct call_list calls, ready;
	CURL *idle[KEEP_HANDLES];
	size_t n_idle;
	char *cacert, *cert, *key;
	char *cacert_pem, *cert_pem, *key_pem;
	bool insecure;
	struct http_verify verify;
};

/* --- readiness: libcurl's callbacks only note what happened --------------------------------- */

static void make_ready(struct http_call *c)
{
	if (c->is_ready)
		return;
	c->is_ready = true;
	TAILQ_INSERT_TAIL(&c->http->ready, c, queued);
}

static void make_unready(struct http_call *c)
{
	if (!c->is_ready)
		return;
	c->is_ready = false;
	TAILQ_REMOVE(&c->http->ready, c, queued);
}

static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	size_t add = size * n;

	if (add > c->max_reply - c->reply_len) {
		c->too_large = true;
		return 0;
	}
	if (array_make_room(&c->reply, c->reply_len, &c->reply_room, 1, add + 1) < 0)
		return 0;
	memcpy(c->reply + c->reply_len, data, add);
	c->reply_len += add;
	c->reply[c->reply_len] = '\0';
	if (c->on_data)
		make_ready(c);
	return add;
}

/* Called for each line; an interim reply (1xx) has a head of its own. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	long status = 0;

	if (!c->on_head || size * n == 0 || (line[0] != '\r' && line[0] != '\n'))
		return size * n;
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200) {
		c->head = status;
		make_ready(c);
	}
	return size * n;
}

/*
 * Asked before each sending, on a fresh or a kept connection. libcurl sends a
 * POST again by itself when a kept connection turns out dead; here that stops.
 */
static int before_sending(void *arg, char *remote, char *local, int remote_port, int local_port)
{
	struct http_call *c = arg;

	return c->sendings++ && c->once ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* A peer that vanished without a word is noticed on streams too. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned ms = 20000;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	return CURL_SOCKOPT_OK;
}

/* --- one request ---------------------------------------------------------------------------- */

static int to_errno(const struct http_call *c)
{
	if (c->too_large)
		return -EMSGSIZE;
	switch (c->code) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return -ENOTCONN;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_ABORTED_BY_CALLBACK:
		return -ECONNRESET;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static bool is_tls(CURLcode code)
{
	return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
	       code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
	       code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

static uint32_t retry_after(CURL *easy)
{
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) || seconds < 0)
		return 0;
	return seconds > INT32_MAX ? INT32_MAX : (uint32_t)seconds;
}

static void call_free(struct http_call *c)
{
	struct http *h = c->http;

	make_unready(c);
	TAILQ_REMOVE(&h->calls, c, entry);
	if (c->easy) {
		curl_multi_remove_handle(h->multi, c->easy);
		curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, NULL);
		if (h->n_idle < KEEP_HANDLES)
			h->idle[h->n_idle++] = c->easy;
		else
			curl_easy_cleanup(c->easy);
	}
	free(c->body);
	free(c->reply);
	free(c);
}

static void finish(struct http_call *c)
{
	struct http_reply reply = {
		.err = c->err ?: to_errno(c),
		.text = "",
		.body = c->reply && !c->on_data ? c->reply : "",
		.len = c->on_data ? 0 : c->reply_len,
	};

	reply.sent = c->sendings > 0;
	reply.tls = is_tls(c->code);
	reply.retry_after = retry_after(c->easy);
	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &reply.status);
	if (c->too_large)
		snprintf(c->text, sizeof(c->text), "the reply is larger than %zu bytes",
			 c->max_reply);
	if (c->code == CURLE_ABORTED_BY_CALLBACK)
		reply.text = "the connection broke before the reply";
	else if (c->code == CURLE_PEER_FAILED_VERIFICATION && c->http->verify.refused.text[0])
		reply.text = c->http->verify.refused.text;
	else if (reply.err)
		reply.text = c->text[0] ? c->text : curl_easy_strerror(c->code);

	/* Off the loop first: the callback may well start the next request on this connection. */
	curl_multi_remove_handle(c->http->multi, c->easy);
	c->in_callback = true;
	c->on_done(&reply, c->arg);
	call_free(c);
}

static void hand_on(struct http_call *c)
{
	AUTO(free) char *data = TAKE(c->reply);
	size_t n = c->reply_len;
	int r;

	c->reply_len = c->reply_room = 0;
	c->in_callback = true;
	r = c->on_data(data, n, c->arg);
	c->in_callback = false;
	if (c->cancelled) {
		call_free(c);
		return;
	}
	if (r < 0) {
		c->err = r;
		c->done = true;
	}
	if (c->done)
		make_ready(c);
}

static void hand_on_head(struct http_call *c)
{
	long status = c->head;

	c->head = 0;
	c->in_callback = true;
	c->on_head(status, c->arg);
	c->in_callback = false;
	if (c->cancelled)
		call_free(c);
	else if (c->done || (c->on_data && c->reply_len))
		make_ready(c);
}

static void collect_finished(struct http *h)
{
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left))) {
		struct http_call *c;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
		c->code = m->data.result;
		c->done = true;
		make_ready(c);
	}
}

static void work_off(struct http *h)
{
	struct http_call *c;

	collect_finished(h);
	while ((c = TAILQ_FIRST(&h->ready))) {
		make_unready(c);
		if (c->head)
			hand_on_head(c);
		else if (c->on_data && c->reply_len && !c->err)
			hand_on(c);
		else if (c->done)
			finish(c);
		collect_finished(h);
	}
}

/* --- the loop ------------------------------------------------------------------------------- */

static int on_io(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct http *h = arg;
	int running, mask = 0;

	if (events & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR;
	curl_multi_socket_action(h->multi, fd, mask, &running);
	work_off(h);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct http *h = arg;
	int running;

	curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	work_off(h);
	return 0;
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct http *h = arg;

	if (ms < 0)
		return sd_event_source_set_enabled(h->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
	if (sd_event_source_set_time_relative(h->timer, (uint64_t)ms * 1000) < 0 ||
	    sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT) < 0)
		return -1;
	return 0;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
	sd_event_source *source = assigned;
	struct http *h = arg;
	uint32_t events = 0;

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	if (source)
		return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
	if (sd_event_add_io(h->event, &source, fd, events, on_io, h) < 0)
		return -1;
	curl_multi_assign(h->multi, fd, source);
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

static int copy_text(const char *text, char **ret)
{
	if (!text || !*text)
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int copy_tls(struct http *h, const struct http_tls *tls)
{
	int r = copy_text(tls->cacert, &h->cacert);

	r = r ?: copy_text(tls->cert, &h->cert);
	r = r ?: copy_text(tls->key, &h->key);
	r = r ?: copy_text(tls->cacert_pem, &h->cacert_pem);
	r = r ?: copy_text(tls->cert_pem, &h->cert_pem);
	r = r ?: copy_text(tls->key_pem, &h->key_pem);
	h->insecure = tls->insecure;
	h->verify.see = tls->cacert_setting;
	return r;
}

static int setup(struct http *h, const struct http_tls *tls)
{
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return -EIO;
	h->multi = curl_multi_init();
	if (!h->multi)
		return -ENOMEM;
	r = sd_event_add_time_relative(h->event, &h->timer, CLOCK_MONOTONIC, 0, 1, on_timer, h);
	if (r < 0)
		return r;
	sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	return tls ? copy_tls(h, tls) : 0;
}

int http_new(sd_event *event, const struct http_tls *tls, struct http **ret)
{
	AUTO(http_free) struct http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->event = sd_event_ref(event);
	TAILQ_INIT(&h->calls);
	TAILQ_INIT(&h->ready);
	r = setup(h, tls);
	if (r < 0)
		return r;
	*ret = TAKE(h);
	return 0;
}

void http_free(struct http *h)
{
	struct http_call *c;

	if (!h)
		return;
	while ((c = TAILQ_FIRST(&h->calls)))
		call_free(c);
	for (size_t i = 0; i < h->n_idle; i++)
		curl_easy_cleanup(h->idle[i]);
	/* Closes the kept connections, which asks for their event sources to go. */
	curl_multi_cleanup(h->multi);
	sd_event_source_disable_unref(h->timer);
	sd_event_unref(h->event);
	free(h->cacert);
	free(h->cert);
	free(h->key);
	free(h->cacert_pem);
	free(h->cert_pem);
	if (h->key_pem)
		explicit_bzero(h->key_pem, strlen(h->key_pem));
	free(h->key_pem);
	free(h);
}

static void set_file(CURL *easy, CURLoption path_option, char *path, CURLoption pem_option,
		     char *pem)
{
	struct curl_blob blob = { .data = pem, .flags = CURL_BLOB_NOCOPY };

	if (pem) {
		blob.len = strlen(pem);
		curl_easy_setopt(easy, pem_option, &blob);
	} else if (path) {
		curl_easy_setopt(easy, path_option, path);
	}
}

static void set_tls(struct http *h, CURL *easy)
{
	set_file(easy, CURLOPT_CAINFO, h->cacert, CURLOPT_CAINFO_BLOB, h->cacert_pem);
	set_file(easy, CURLOPT_SSLCERT, h->cert, CURLOPT_SSLCERT_BLOB, h->cert_pem);
	set_file(easy, CURLOPT_SSLKEY, h->key, CURLOPT_SSLKEY_BLOB, h->key_pem);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_SECONDS);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, h->insecure ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, h->insecure ? 0L : 2L);
}

/* What every request has in common stays on a kept handle. */
static CURL *new_handle(struct http *h)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 10L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending);
	set_tls(h, easy);
	http_verify_install(easy, &h->verify);
	return easy;
}

static void set_options(struct http_call *c, const struct http_request *q)
{
	CURL *easy = c->easy;

	curl_easy_setopt(easy, CURLOPT_URL, q->url);
	curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, q->unix_path);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, q->headers);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(q->connect_timeout_ms ?: 1000));
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	if (c->body) {
		curl_easy_setopt(easy, CURLOPT_POST, 1L);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, c->body);
	} else {
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, q->method);
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, q->connect_to);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, c);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->text);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, c);
}

static char *copy_body(const struct http_request *q)
{
	char *body = malloc(q->len + 1);

	if (!body)
		return NULL;
	memcpy(body, q->body, q->len);
	body[q->len] = '\0';
	return body;
}

static int start(struct http *h, const struct http_request *q, bool post, struct http_call **ret)
{
	struct http_call *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->http = h;
	c->once = q->once && post;
	c->max_reply = q->max_reply;
	c->on_head = q->on_head;
	c->on_data = q->on_data;
	c->on_done = q->on_done;
	c->arg = q->arg;
	TAILQ_INSERT_TAIL(&h->calls, c, entry);
	c->body = post ? copy_body(q) : NULL;
	c->easy = h->n_idle ? h->idle[--h->n_idle] : new_handle(h);
	if ((post && !c->body) || !c->easy) {
		call_free(c);
		return -ENOMEM;
	}
	set_options(c, q);
	if (curl_multi_add_handle(h->multi, c->easy)) {
		call_free(c);
		return -EIO;
	}
	if (ret)
		*ret = c;
	return 0;
}

int http_post(struct http *h, const struct http_request *q, struct http_call **ret)
{
	return start(h, q, true, ret);
}

int http_get(struct http *h, const struct http_request *q, struct http_call **ret)
{
	return start(h, q, false, ret);
}

const struct certificate *http_server(const struct http *h)
{
	return h->verify.server.not_after ? &h->verify.server : NULL;
}

void http_cancel(struct http_call *c)
{
	if (!c)
		return;
	if (c->in_callback)
		c->cancelled = true;
	else
		call_free(c);
}
