/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about a certificate that is not, or soon no longer, valid. Pure. */
#pragma once

#include "lib/base/log.h"
#include "lib/http/certificate.h"

#define CERTIFICATE_WARN_DAYS 14

/*
 * what: "/etc/roost/etcd.crt, which this agent shows to etcd,"; todo: "put a new one there". True
 * with the sentence and how bad it is: warning while it is still valid, error when not.
 */
bool certificate_words(const struct certificate *c, const char *what, const char *todo, int64_t now,
		       enum log_level *ret_level, struct err *ret);
