/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd/etcd_client.h"

#include <errno.h>
#include <string.h>

#include "lib/base/backoff.h"

uint64_t etcd_backoff_usec(unsigned failures)
{
	return backoff_usec(failures, 100000, 5000000);
}

int etcd_endpoints_parse(struct etcd *e, const char *text, const char *name, struct err *err)
{
	size_t n;

	if (!text || !*text)
		return err_set(err, -EINVAL, "no etcd endpoint is given");
	n = endpoints_count(text);
	e->endpoints = calloc(n, sizeof(*e->endpoints));
	if (!e->endpoints)
		return -ENOMEM;
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int r = endpoint_parse(p, len, "etcd endpoint", &e->endpoints[e->n_endpoints++].at,
				       err);

		if (r < 0)
			return r;
		p += len;
		if (!*p)
			break;
	}
	e->current = endpoints_start(name, n);
	return 0;
}

void etcd_endpoints_done(struct etcd *e)
{
	for (size_t i = 0; i < e->n_endpoints; i++) {
		endpoint_done(&e->endpoints[i].at);
		free(e->endpoints[i].token);
	}
	free(e->endpoints);
}

static bool append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return false;
	*list = longer;
	return true;
}

struct curl_slist *etcd_headers(const struct etcd_endpoint *ep, uint32_t timeout_ms)
{
	struct curl_slist *list = NULL;
	AUTO(free) char *token = NULL;
	char timeout[40];
	/* Without a leader a member says so at once, rather than waiting for one. */
	bool ok = append(&list, "Grpc-Metadata-hasleader: true") && append(&list, "Expect:") &&
		  append(&list, "Content-Type: application/json");

	if (timeout_ms) {
		snprintf(timeout, sizeof(timeout), "Grpc-Timeout: %um", timeout_ms);
		ok = ok && append(&list, timeout);
	}
	if (ep->token && ep->token[0])
		ok = ok && asprintf(&token, "Authorization: %s", ep->token) > 0 &&
		     append(&list, token);
	if (ok)
		return list;
	curl_slist_free_all(list);
	return NULL;
}

void etcd_endpoint_failed(struct etcd *e, size_t endpoint)
{
	if (e->current == endpoint)
		e->current = (e->current + 1) % e->n_endpoints;
}
