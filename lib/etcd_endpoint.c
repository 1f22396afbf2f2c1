/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/etcd_client.h"

#include <errno.h>
#include <string.h>

#include "lib/backoff.h"

uint64_t etcd_backoff_usec(unsigned failures)
{
	return backoff_usec(failures, 100000, 5000000);
}

static int parse_one(const char *text, size_t len, struct etcd_endpoint *ret, struct err *err)
{
	static const char unix_scheme[] = "unix://";

	ret->name = strndup(text, len);
	if (!ret->name)
		return -ENOMEM;
	/* A path or blanks would end up in every request's URL. */
	if (strncmp(ret->name, unix_scheme, strlen(unix_scheme)) == 0) {
		const char *path = ret->name + strlen(unix_scheme);

		if (*path != '/')
			return err_set(
				err, -EINVAL,
				"etcd endpoint \"%s\": a unix socket needs an absolute path, "
				"as in unix:///run/etcd.sock",
				ret->name);
		ret->unix_path = strdup(path);
		ret->url = strdup("http://localhost");
	} else {
		size_t scheme = strncmp(ret->name, "http://", 7) == 0    ? 7
				: strncmp(ret->name, "https://", 8) == 0 ? 8
									 : 0;

		if (!scheme || !ret->name[scheme] || strpbrk(ret->name + scheme, "/?#@ \t"))
			return err_set(err, -EINVAL,
				       "etcd endpoint \"%s\" is not http://HOST:PORT, "
				       "https://HOST:PORT or unix:///PATH",
				       ret->name);
		ret->url = strdup(ret->name);
	}
	return ret->url && (ret->unix_path || strncmp(ret->url, "http", 4) == 0) ? 0 : -ENOMEM;
}

/* FNV-1a: only to spread nodes over members. */
static size_t start_at(const char *name, size_t n)
{
	uint32_t h = 2166136261u;

	if (!name)
		return 0;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h % n;
}

int etcd_endpoints_parse(struct etcd *e, const char *text, const char *name, struct err *err)
{
	size_t n = 1;

	if (!text || !*text)
		return err_set(err, -EINVAL, "no etcd endpoint is given");
	for (const char *p = text; *p; p++)
		n += *p == ',';
	e->endpoints = calloc(n, sizeof(*e->endpoints));
	if (!e->endpoints)
		return -ENOMEM;
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int r = parse_one(p, len, &e->endpoints[e->n_endpoints++], err);

		if (r < 0)
			return r;
		p += len;
		if (!*p)
			break;
	}
	e->current = start_at(name, n);
	return 0;
}

void etcd_endpoints_done(struct etcd *e)
{
	for (size_t i = 0; i < e->n_endpoints; i++) {
		free(e->endpoints[i].name);
		free(e->endpoints[i].url);
		free(e->endpoints[i].unix_path);
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
	if (ep->token)
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
