/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a TLS handshake shows of the server's certificate, beside libcurl's own verification.
 *
 * libcurl says "certificate has expired" and not whose, nor when. OpenSSL asks a callback for
 * each certificate of the chain; this one notes and never changes the verdict. With a libcurl
 * that uses another TLS library nothing is noted, and its words stand as they are.
 */
#pragma once

#include <curl/curl.h>

#include "lib/http/certificate.h"

struct http_verify {
	const char *see;           /* the setting that says whom to believe; NULL: none is named */
	struct certificate server; /* the last that was shown */
	struct err refused; /* why the last one was not believed, in our words; "": unknown */
};

/* v lives as long as the handle. */
void http_verify_install(CURL *easy, struct http_verify *v);
