/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the API server's resources. Pure. */
#pragma once

#include <stddef.h>

/* What libcurl needs to connect; free() each. */
struct kube_url {
	char *base;       /* "https://10.96.0.1:443", with a path if the server has one */
	char *connect_to; /* "NAME:443:10.96.0.1:443" if TLS goes by another name, else NULL */
	char *host;       /* "Host: ..." likewise */
};

/* server: as kube_config.h has it; server_name may be NULL. 0 or -ENOMEM. */
int kube_url_make(const char *server, const char *server_name, struct kube_url *ret);
void kube_url_done(struct kube_url *u);

/* As it may stand in a query: all but letters, digits and "-._~" escaped. free() it; NULL: no
 * memory. */
char *kube_url_escape(const char *text);
