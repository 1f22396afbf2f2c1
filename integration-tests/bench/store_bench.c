/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our etcd client adds to a transaction: the same request by bare
 * libcurl (body ready-made, reply unread) and through the store, in turn, in
 * one run on one etcd. Then the time from a put to the event at a watcher.
 *
 *   store-bench --etcd URL [--rounds N]        prints one JSON object
 */
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>

#include "lib/etcd/etcd_wire.h"
#include "lib/etcd/store_etcd.h"
#include "lib/store/store_sync.h"

#define KEYS 1000

struct bench {
	sd_event *event;
	struct store *store, *watcher;
	CURL *curl;
	struct curl_slist *headers;
	const char *endpoint;
	size_t rounds;
	bool in_sync;
	double seen;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double percentile(double *v, size_t n, double p)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[(size_t)((double)(n - 1) * p)];
}

/* A compare and a put of 300 bytes, as a claim is. */
static struct store_txn make_txn(struct store_compare *compare, struct store_op *put, char *key,
				 size_t key_size, size_t i)
{
	static char value[301];

	memset(value, 'v', sizeof(value) - 1);
	snprintf(key, key_size, "/roost/v1/bench/%zu", i % KEYS);
	*compare = (struct store_compare){
		.key = key, .target = STORE_VERSION, .relation = STORE_GREATER, .number = -1
	};
	*put = (struct store_op){ .kind = STORE_PUT, .key = key, .value = value, .value_len = 300 };
	return (struct store_txn){
		.compares = compare, .n_compares = 1, .success = put, .n_success = 1
	};
}

static size_t ignore(char *data, size_t size, size_t n, void *arg)
{
	return size * n;
}

static int curl_start(struct bench *b)
{
	char url[256];

	b->curl = curl_easy_init();
	b->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!b->curl || !b->headers)
		return -ENOMEM;
	snprintf(url, sizeof(url), "%s/v3/kv/txn", b->endpoint);
	curl_easy_setopt(b->curl, CURLOPT_URL, url);
	curl_easy_setopt(b->curl, CURLOPT_HTTPHEADER, b->headers);
	curl_easy_setopt(b->curl, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(b->curl, CURLOPT_PROXY, "");
	return 0;
}

static int by_curl(struct bench *b, const struct store_txn *txn, double *ret)
{
	AUTO(free) char *body = etcd_encode_txn(txn);
	double start;

	if (!body)
		return -ENOMEM;
	curl_easy_setopt(b->curl, CURLOPT_POSTFIELDS, body);
	start = now_ms();
	if (curl_easy_perform(b->curl))
		return -EIO;
	*ret = now_ms() - start;
	return 0;
}

static int by_store(struct bench *b, const struct store_txn *txn, double *ret)
{
	double start = now_ms();
	struct err err = { "" };
	int r = store_sync_txn(b->store, txn, 0, NULL, NULL, &err);

	*ret = now_ms() - start;
	if (r < 0)
		fprintf(stderr, "store-bench: %s\n", err.text);
	return r;
}

static int bench_txn(struct bench *b, struct json_object *result)
{
	AUTO(free) double *curl = calloc(b->rounds, sizeof(double));
	AUTO(free) double *store = calloc(b->rounds, sizeof(double));
	struct store_compare compare;
	struct store_op put;
	char key[64];

	if (!curl || !store)
		return -ENOMEM;
	for (size_t i = 0; i < b->rounds; i++) {
		struct store_txn txn = make_txn(&compare, &put, key, sizeof(key), i);
		/* Whoever comes second finds the caches warm: take turns. */
		int r = i % 2 ? by_curl(b, &txn, &curl[i]) : by_store(b, &txn, &store[i]);

		r = r ?: i % 2 ? by_store(b, &txn, &store[i]) : by_curl(b, &txn, &curl[i]);
		if (r < 0)
			return r;
	}
	json_object_object_add(result, "curl_p50",
			       json_object_new_double(percentile(curl, b->rounds, 0.5)));
	json_object_object_add(result, "curl_p99",
			       json_object_new_double(percentile(curl, b->rounds, 0.99)));
	json_object_object_add(result, "store_p50",
			       json_object_new_double(percentile(store, b->rounds, 0.5)));
	json_object_object_add(result, "store_p99",
			       json_object_new_double(percentile(store, b->rounds, 0.99)));
	return 0;
}

static void on_put(const struct store_kv *kv, void *arg)
{
	((struct bench *)arg)->seen = now_ms();
}

static void on_notice(enum store_notice notice, const char *text, void *arg)
{
	if (notice == STORE_WATCHING)
		((struct bench *)arg)->in_sync = true;
}

static int bench_event(struct bench *b, struct json_object *result)
{
	static const struct store_watch_handlers handlers = { .put = on_put };
	AUTO(free) double *delay = calloc(b->rounds, sizeof(double));
	struct store_watch *watch;
	int r;

	if (!delay)
		return -ENOMEM;
	store_on_notice(b->watcher, on_notice, b);
	r = store_watch(b->watcher, "/roost/v1/bench-event/", "/roost/v1/bench-event0", &handlers,
			b, &watch);
	while (r >= 0 && !b->in_sync)
		r = sd_event_run(b->event, UINT64_MAX);
	for (size_t i = 0; r >= 0 && i < b->rounds; i++) {
		double start = now_ms();

		b->seen = 0;
		r = store_sync_put(b->store, "/roost/v1/bench-event/key", "value", 0, 0, NULL);
		while (r >= 0 && !b->seen)
			r = sd_event_run(b->event, UINT64_MAX);
		delay[i] = b->seen - start;
	}
	if (r < 0)
		return r;
	json_object_object_add(result, "event_p50",
			       json_object_new_double(percentile(delay, b->rounds, 0.5)));
	json_object_object_add(result, "event_p99",
			       json_object_new_double(percentile(delay, b->rounds, 0.99)));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "etcd", required_argument, NULL, 'e' },
						 { "rounds", required_argument, NULL, 'r' },
						 { NULL, 0, NULL, 0 } };
	struct bench b = { .rounds = 2000 };
	struct json_object *result = json_object_new_object();
	struct store_etcd_options o = { 0 };
	struct err err = { "" };
	int c, r;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'e')
			o.endpoints = b.endpoint = optarg;
		else if (c == 'r')
			b.rounds = strtoul(optarg, NULL, 10);
	}
	r = sd_event_default(&b.event);
	if (r >= 0)
		r = store_etcd_new(b.event, &o, &b.store, &err);
	if (r >= 0)
		r = store_etcd_new(b.event, &o, &b.watcher, &err);
	r = r < 0 ? r : curl_start(&b);
	r = r < 0 ? r : bench_txn(&b, result);
	r = r < 0 ? r : bench_event(&b, result);
	if (r < 0)
		fprintf(stderr, "store-bench: %s %s\n", strerror(-r), err.text);
	else
		puts(json_object_to_json_string(result));
	store_free(b.store);
	store_free(b.watcher);
	curl_easy_cleanup(b.curl);
	curl_slist_free_all(b.headers);
	json_object_put(result);
	sd_event_unref(b.event);
	return r < 0;
}
