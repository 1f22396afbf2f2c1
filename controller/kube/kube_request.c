/* SPDX-License-Identifier: Apache-2.0 */
/* One GET to the API server: who we are, the deadline, and what the answer comes to. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "controller/kube/kube_client.h"
#include "lib/base/clock.h"
#include "lib/base/secret.h"

/* Tokens in pods live an hour or more and are renewed well before their end. */
#define TOKEN_FRESH_USEC   60000000ULL
#define CONNECT_TIMEOUT_MS 5000
/* What waits in libcurl's hands between two turns of the loop. */
#define MAX_BUFFERED (32 * 1024 * 1024)

/* --- the token ------------------------------------------------------------------------------ */

static int fresh_token(struct kube *k, struct err *err)
{
	uint64_t now = clock_monotonic_us();
	char *token = NULL;
	int r;

	if (!k->config->token_file)
		return 0;
	if (k->token && !k->token_refused && now - k->token_read < TOKEN_FRESH_USEC)
		return 0;
	r = kube_token_read(k->config->token_file, &token, err);
	if (r < 0)
		return r;
	secret_free(k->token);
	k->token = token;
	k->token_read = now;
	k->token_refused = false;
	k->stats.token_reads++;
	return 0;
}

static bool append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer;
}

static struct curl_slist *make_headers(const struct kube *k)
{
	const char *token = k->config->token_file ? k->token : k->config->token;
	AUTO(secret_free) char *line = NULL;
	struct curl_slist *list = NULL;
	bool ok = append(&list, "Accept: application/json") &&
		  append(&list, "User-Agent: roost-controller/" ROOST_VERSION);

	if (ok && k->url.host)
		ok = append(&list, k->url.host);
	if (ok && token) {
		line = malloc(strlen(token) + sizeof("Authorization: Bearer "));
		if (line)
			stpcpy(stpcpy(line, "Authorization: Bearer "), token);
		ok = line && append(&list, line);
	}
	if (!ok) {
		curl_slist_free_all(list);
		return NULL;
	}
	return list;
}

/* Not left in freed memory. */
static void free_headers(struct curl_slist *list)
{
	for (struct curl_slist *l = list; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data));
	curl_slist_free_all(list);
}

/* --- the answer ----------------------------------------------------------------------------- */

static const char *in_config(const char *file, const char *pem, const char *name)
{
	return file ?: pem ? name : NULL;
}

/* libcurl says what is wrong, but not with which of our files. */
static void tls_failed(const struct kube *k, const char *said, struct err *text)
{
	const struct kube_config *c = k->config;
	const char *ca = in_config(c->ca_file, c->ca_pem, "certificate-authority-data");
	const char *cert = in_config(c->cert_file, c->cert_pem, "client-certificate-data");

	err_set(text, 0, "TLS with %s: %s (authority: %s; client certificate: %s; from %s)",
		c->server, said, ca ?: "the system's", cert ?: "none", c->source);
}

static void judge(const struct kube_request *q, const struct http_reply *reply,
		  struct kube_outcome *out)
{
	struct kube_status status;

	out->retry_after = reply->retry_after;
	out->verdict = KUBE_FAILED;
	/* A bad status goes before everything that its body may cause. */
	if (q->status && q->status != 200) {
		kube_status_parse(q->error ?: "", q->error_len, &status);
		out->verdict = kube_judge(kube_verb_name(q->verb), q->node, q->status, &status,
					  &out->text);
	} else if (q->reason.text[0]) {
		err_set(&out->text, 0, "%s nodes: invalid reply from %s: %s",
			kube_verb_name(q->verb), q->kube->config->server, q->reason.text);
	} else if (reply->err && reply->tls) {
		tls_failed(q->kube, reply->text, &out->text);
	} else if (reply->err) {
		out->timed_out = reply->err == -ETIMEDOUT;
		err_set(&out->text, 0, "%s nodes from %s: %s", kube_verb_name(q->verb),
			q->kube->config->server, reply->text);
	} else {
		out->verdict = KUBE_OK;
	}
}

static void count(struct kube *k, enum kube_verb verb, enum kube_verdict verdict)
{
	struct kube_ends *ends = &k->stats.ends[verb];

	if (verdict == KUBE_OK || verdict == KUBE_NOT_FOUND)
		ends->ok++;
	else if (verdict == KUBE_EXPIRED)
		ends->expired++;
	else
		ends->failed++;
}

static void on_done(const struct http_reply *reply, void *arg)
{
	struct kube_request *q = arg;
	struct kube *k = q->kube;
	enum kube_verb verb = q->verb;
	struct kube_outcome out = { 0 };

	q->http = NULL;
	judge(q, reply, &out);
	free_headers(TAKE(q->headers));
	free(TAKE(q->error));
	if (out.verdict == KUBE_UNAUTHORIZED)
		k->token_refused = true;
	if (out.verdict != KUBE_OK && out.verdict != KUBE_NOT_FOUND)
		k->stats.failures++;
	count(k, verb, q->on_done(q, &out));
}

static void on_head(long status, void *arg)
{
	struct kube_request *q = arg;

	q->status = status;
	if (status == 200)
		q->kube->stats.heard = clock_monotonic_us();
	if (status == 200 && q->on_ok)
		q->on_ok(status, q);
}

static int on_data(const char *data, size_t n, void *arg)
{
	struct kube_request *q = arg;
	size_t room = KUBE_ERROR_MAX - q->error_len;

	if (q->status == 200) {
		q->kube->stats.heard = clock_monotonic_us();
		return q->on_data(data, n, q);
	}
	if (!q->error)
		q->error = malloc(KUBE_ERROR_MAX);
	if (!q->error)
		return -ENOMEM;
	n = n < room ? n : room;
	memcpy(q->error + q->error_len, data, n);
	q->error_len += n;
	return 0;
}

/* --- interface ------------------------------------------------------------------------------ */

int kube_request_start(struct kube_request *q, uint32_t timeout_ms, struct err *err,
		       const char *path, ...)
{
	struct kube *k = q->kube;
	AUTO(free) char *printed = NULL, *url = NULL;
	struct http_request http = {
		.connect_to = k->connect_to,
		.connect_timeout_ms = CONNECT_TIMEOUT_MS,
		.timeout_ms = timeout_ms,
		.max_reply = MAX_BUFFERED,
		.on_head = on_head,
		.on_data = on_data,
		.on_done = on_done,
		.arg = q,
	};
	va_list args;
	int r = fresh_token(k, err);

	if (r < 0)
		return r;
	va_start(args, path);
	if (vasprintf(&printed, path, args) < 0)
		printed = NULL;
	va_end(args);
	if (!printed || asprintf(&url, "%s%s", k->url.base, printed) < 0)
		url = NULL;
	q->status = 0;
	q->error_len = 0;
	q->reason.text[0] = '\0';
	q->headers = make_headers(k);
	http.url = url;
	http.headers = q->headers;
	r = q->headers && url ? http_get(k->http, &http, &q->http) : -ENOMEM;
	if (r < 0) {
		free_headers(TAKE(q->headers));
		return err_set(err, r, "%s", strerror(-r));
	}
	k->stats.requests++;
	return 0;
}

void kube_request_cancel(struct kube_request *q)
{
	http_cancel(TAKE(q->http));
	free_headers(TAKE(q->headers));
	free(TAKE(q->error));
}
