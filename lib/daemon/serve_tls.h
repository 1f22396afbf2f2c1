/* SPDX-License-Identifier: Apache-2.0 */
/* What serve.c needs of serve_tls.c. */
#pragma once

#include <microhttpd.h>

#include "lib/daemon/serve.h"

/* serve_tls.c: options of the daemon, ended by one of kind MHD_OPTION_END; at most that many. */
#define SERVE_TLS_OPTIONS 3
void serve_tls_options(struct serve_tls *tls, struct MHD_OptionItem *ret);
/* A connection begins: whose certificate it shows, and whether the other end must show one. */
void serve_tls_connection(struct serve_tls *tls, struct MHD_Connection *connection);
/* As serve_certified(). */
int serve_tls_name(const struct serve_tls *tls, struct MHD_Connection *connection,
		   char name[static SERVE_NAME_TEXT], struct err *err);
