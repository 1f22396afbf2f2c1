/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/kube/kube_url.h"

#include <errno.h>
#include <string.h>

#include "lib/base/auto.h"

void kube_url_done(struct kube_url *u)
{
	free(u->base);
	free(u->connect_to);
	free(u->host);
	*u = (struct kube_url){ 0 };
}

/* asprintf() leaves its result undefined when it fails. */
#define PRINTED(...)                                                                               \
	({                                                                                         \
		char *printed_;                                                                    \
		asprintf(&printed_, __VA_ARGS__) < 0 ? NULL : printed_;                            \
	})

int kube_url_make(const char *server, const char *server_name, struct kube_url *ret)
{
	const char *authority = strstr(server, "//");
	int scheme = authority ? (int)(authority + 2 - server) : 0;
	const char *from = server + scheme, *path = from + strcspn(from, "/");
	const char *bracket = *from == '[' ? memchr(from, ']', (size_t)(path - from)) : NULL;
	const char *colon = memchr(bracket ?: from, ':', (size_t)(path - (bracket ?: from)));
	int host = (int)((colon ?: path) - from);
	const char *usual = strncmp(server, "https", 5) == 0 ? ":443" : ":80";
	AUTO(free) char *port = colon ? strndup(colon, (size_t)(path - colon)) : strdup(usual);
	struct kube_url u = { 0 };

	if (!port)
		return -ENOMEM;
	if (server_name && *server_name) {
		const char *open = strchr(server_name, ':') ? "[" : "", *close = *open ? "]" : "";

		u.base = PRINTED("%.*s%s%s%s%s%s", scheme, server, open, server_name, close, port,
				 path);
		u.connect_to = PRINTED("%s%s%s%s:%.*s%s", open, server_name, close, port, host,
				       from, port);
		u.host = PRINTED("Host: %.*s%s", host, from, port);
	} else {
		u.base = strdup(server);
	}
	if (!u.base || (server_name && *server_name && (!u.connect_to || !u.host))) {
		kube_url_done(&u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

char *kube_url_escape(const char *text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	static const char hex[] = "0123456789ABCDEF";
	char *escaped = malloc(3 * strlen(text) + 1), *to = escaped;

	if (!escaped)
		return NULL;
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (strchr(plain, c)) {
			*to++ = (char)c;
			continue;
		}
		*to++ = '%';
		*to++ = hex[c >> 4];
		*to++ = hex[c & 15];
	}
	*to = '\0';
	return escaped;
}
