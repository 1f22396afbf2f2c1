/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/store/store.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

#include "lib/store/store_ops.h"
#include "lib/store/txn.h"

#define DEFAULT_TIMEOUT_MS 8000

int store_txn(struct store *s, const struct store_txn *txn, uint32_t timeout_ms, store_reply_fn *fn,
	      void *arg, struct store_call **ret_call)
{
	if (txn->n_compares > STORE_TXN_MAX || txn->n_success > STORE_TXN_MAX ||
	    txn->n_failure > STORE_TXN_MAX)
		return -EINVAL;
	return s->ops->txn(s, txn, timeout_ms ?: DEFAULT_TIMEOUT_MS, fn, arg, ret_call);
}

int store_list(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
	       store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	return s->ops->list(s, key, range_end, timeout_ms ?: DEFAULT_TIMEOUT_MS, fn, arg, ret_call);
}

static int single(struct store *s, const struct store_op *op, uint32_t timeout_ms,
		  store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct store_txn txn = { .success = op, .n_success = 1, .repeatable = true };

	return store_txn(s, &txn, timeout_ms, fn, arg, ret_call);
}

int store_get(struct store *s, const char *key, uint32_t timeout_ms, store_reply_fn *fn, void *arg,
	      struct store_call **ret_call)
{
	return single(s, &(struct store_op){ .kind = STORE_GET, .key = key }, timeout_ms, fn, arg,
		      ret_call);
}

int store_put(struct store *s, const char *key, const char *value, int64_t lease,
	      uint32_t timeout_ms, store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct store_op op = op_put_leased(key, value, lease);

	return single(s, &op, timeout_ms, fn, arg, ret_call);
}

int store_delete(struct store *s, const char *key, const char *range_end, uint32_t timeout_ms,
		 store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	struct store_op op = { .kind = STORE_DELETE, .key = key, .range_end = range_end };

	return single(s, &op, timeout_ms, fn, arg, ret_call);
}

int store_lease_grant(struct store *s, int64_t id, int64_t ttl, uint32_t timeout_ms,
		      store_reply_fn *fn, void *arg, struct store_call **ret_call)
{
	/* An id of our own makes a grant repeatable: "exists already" means that it was granted. */
	while (id <= 0) {
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			return -errno;
		id &= INT64_MAX;
	}
	return s->ops->lease(s, STORE_LEASE_GRANT, id, ttl, timeout_ms ?: DEFAULT_TIMEOUT_MS, fn,
			     arg, ret_call);
}

int store_lease_keepalive(struct store *s, int64_t id, uint32_t timeout_ms, store_reply_fn *fn,
			  void *arg, struct store_call **ret_call)
{
	return s->ops->lease(s, STORE_LEASE_KEEPALIVE, id, 0, timeout_ms ?: DEFAULT_TIMEOUT_MS, fn,
			     arg, ret_call);
}

int store_lease_revoke(struct store *s, int64_t id, uint32_t timeout_ms, store_reply_fn *fn,
		       void *arg, struct store_call **ret_call)
{
	return s->ops->lease(s, STORE_LEASE_REVOKE, id, 0, timeout_ms ?: DEFAULT_TIMEOUT_MS, fn,
			     arg, ret_call);
}

void store_cancel(struct store_call *call)
{
	if (call)
		call->cancel(call);
}

int store_watch(struct store *s, const char *key, const char *range_end,
		const struct store_watch_handlers *handlers, void *arg, struct store_watch **ret)
{
	return s->ops->watch(s, key, range_end, handlers, arg, ret);
}

void store_watch_on_listing(struct store_watch *w, void (*fn)(void *arg))
{
	w->listing = fn;
}

void store_unwatch(struct store_watch *w)
{
	if (w)
		w->unwatch(w);
}

void store_free(struct store *s)
{
	if (s)
		s->ops->free(s);
}

const char *store_notice_name(enum store_notice notice)
{
	static const char *const names[] = {
		[STORE_WATCHING] = "watching",
		[STORE_TROUBLE] = "trouble",
		[STORE_CLUSTER_CHANGED] = "cluster-changed",
		[STORE_REVISION_WENT_BACK] = "revision-went-back",
	};

	return names[notice];
}

void store_on_notice(struct store *s, store_notice_fn *fn, void *arg)
{
	s->notice = fn;
	s->notice_arg = arg;
}

void store_notify(struct store *s, enum store_notice notice, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!s->notice)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->notice(notice, text, s->notice_arg);
}

char *store_prefix_end(const char *prefix)
{
	char *end = strdup(prefix);
	size_t n = end ? strlen(end) : 0;

	/* 0xff cannot be raised: the byte before it is, and the rest falls away. */
	while (n && (unsigned char)end[n - 1] == 0xff)
		end[--n] = '\0';
	if (n)
		end[n - 1]++;
	return end;
}

void store_stats(const struct store *s, struct store_stats *ret)
{
	*ret = (struct store_stats){ .server = "etcd", .endpoint = "" };
	if (s->ops->stats)
		s->ops->stats(s, ret);
}

const char *server_outcome_name(enum server_outcome o)
{
	static const char *const names[] = { "ok", "refused", "timeout", "unreachable" };

	return o < ARRAY_SIZE(names) ? names[o] : "?";
}

const char *store_server(const struct store *s)
{
	struct store_stats stats;

	store_stats(s, &stats);
	return stats.server;
}
