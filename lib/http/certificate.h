/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until when a certificate is valid, and the sentence about it for whoever must renew it.
 *
 *   PEM file, or a TLS handshake -> struct certificate -> [certificate] -> health, errors
 *
 * Reading is libcrypto's, which libcurl brings along; the words are pure.
 */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "lib/base/err.h"

struct certificate {
	int64_t not_before, not_after; /* seconds since 1970; not_after 0: not known */
	char subject[160];             /* "CN=etcd-1,O=cluster" */
};

/* The first of the file: 0 or -errno with a sentence. */
int certificate_read(const char *path, struct certificate *ret, struct err *err);
/* From a handshake. */
void certificate_take(const X509 *x509, struct certificate *ret);
