/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/http_verify.h"

#include <openssl/ssl.h>
#include <time.h>

#include "lib/http/certificate_words.h"

static int index_of_ours(void)
{
	static int index = -1;

	if (index < 0)
		index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return index;
}

static struct http_verify *ours(X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

	return ssl ? SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), index_of_ours()) : NULL;
}

static void note_refusal(struct http_verify *v, X509_STORE_CTX *store, const struct certificate *c)
{
	int code = X509_STORE_CTX_get_error(store);
	char what[sizeof(c->subject) + 32];
	enum log_level level;

	snprintf(what, sizeof(what), "its certificate (%s)", c->subject);
	if (code != X509_V_ERR_CERT_HAS_EXPIRED && code != X509_V_ERR_CERT_NOT_YET_VALID)
		err_set(&v->refused, 0, "%s is not trusted: %s%s%s", what,
			X509_verify_cert_error_string(code), v->see ? "; see " : "", v->see ?: "");
	else if (!certificate_words(c, what, "renew it there", time(NULL), &level, &v->refused))
		v->refused.text[0] = '\0';
}

static int on_certificate(int ok, X509_STORE_CTX *store)
{
	const X509 *x509 = X509_STORE_CTX_get_current_cert(store);
	struct http_verify *v = ours(store);
	struct certificate c;

	if (!v || !x509)
		return ok;
	certificate_take(x509, &c);
	if (X509_STORE_CTX_get_error_depth(store) == 0)
		v->server = c;
	if (!ok)
		note_refusal(v, store, &c);
	return ok;
}

static CURLcode on_context(CURL *easy, void *context, void *arg)
{
	/* The mode stays what libcurl has chosen. */
	if (SSL_CTX_set_ex_data(context, index_of_ours(), arg) == 1)
		SSL_CTX_set_verify(context, SSL_CTX_get_verify_mode(context), on_certificate);
	return CURLE_OK;
}

void http_verify_install(CURL *easy, struct http_verify *v)
{
	curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
	curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, v);
}
