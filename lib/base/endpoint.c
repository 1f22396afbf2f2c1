/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/endpoint.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/auto.h"

static const char unix_scheme[] = "unix://";

static int parse_unix(const char *whose, struct endpoint *ret, struct err *err)
{
	const char *path = ret->name + strlen(unix_scheme);

	if (*path != '/')
		return err_set(err, -EINVAL,
			       "%s \"%s\": a unix socket needs an absolute path, "
			       "as in unix:///run/etcd.sock",
			       whose, ret->name);
	ret->unix_path = strdup(path);
	ret->url = strdup("http://localhost");
	return ret->unix_path && ret->url ? 0 : -ENOMEM;
}

int endpoint_parse(const char *text, size_t len, const char *whose, struct endpoint *ret,
		   struct err *err)
{
	size_t scheme;

	*ret = (struct endpoint){ .name = strndup(text, len) };
	if (!ret->name)
		return -ENOMEM;
	if (strncmp(ret->name, unix_scheme, strlen(unix_scheme)) == 0)
		return parse_unix(whose, ret, err);
	scheme = strncmp(ret->name, "http://", 7) == 0    ? 7
		 : strncmp(ret->name, "https://", 8) == 0 ? 8
							  : 0;
	/* A path or blanks would end up in every request's URL. */
	if (!scheme || !ret->name[scheme] || strpbrk(ret->name + scheme, "/?#@ \t"))
		return err_set(err, -EINVAL,
			       "%s \"%s\" is not http://HOST:PORT, https://HOST:PORT or "
			       "unix:///PATH",
			       whose, ret->name);
	ret->url = strdup(ret->name);
	return ret->url ? 0 : -ENOMEM;
}

void endpoint_done(struct endpoint *e)
{
	free(e->name);
	free(e->url);
	free(e->unix_path);
}

bool endpoint_is_plain(const char *text, size_t n)
{
	static const char *const local[] = { "127.", "localhost", "[::1]" };
	static const char http[] = "http://";

	if (n < strlen(http) || strncmp(text, http, strlen(http)) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (strncmp(text + strlen(http), local[i], strlen(local[i])) == 0)
			return false;
	return true;
}

const char *endpoints_plain(const char *text, size_t *ret_len)
{
	for (size_t n;; text += n + 1) {
		n = strcspn(text, ",");
		*ret_len = n;
		if (endpoint_is_plain(text, n))
			return text;
		if (!text[n])
			return NULL;
	}
}

size_t endpoints_count(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

/* FNV-1a: only to spread nodes over members. */
size_t endpoints_start(const char *name, size_t n)
{
	uint32_t h = 2166136261u;

	if (!name)
		return 0;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h % n;
}
