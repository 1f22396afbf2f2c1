/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the server, by the library that libmicrohttpd itself uses. Each handshake asks here which
 * certificate to show, so a new one needs no restart and disturbs nobody who is connected. A client
 * without a certificate of the right authority does not get past the handshake.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/files.h"
#include "lib/daemon/serve_tls.h"

#define FILE_MAX   (1U << 20)
#define CHAIN      16U
#define PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* What handshakes that are under way may still need, so it lives as long as the server. */
struct identity {
	SLIST_ENTRY(identity) entry;
	gnutls_pcert_st chain[CHAIN];
	unsigned n;
	gnutls_privkey_t key;
};
SLIST_HEAD(identities, identity);

struct serve_tls {
	struct serve_tls_files files;
	struct identities identities; /* the first is in use */
	char *client_ca;
};

static void identity_free(struct identity *i)
{
	for (unsigned n = 0; n < i->n; n++)
		gnutls_pcert_deinit(&i->chain[n]);
	if (i->key)
		gnutls_privkey_deinit(i->key);
	free(i);
}
AUTO_DEFINE(struct identity *, identity_free)

static int refuse(struct err *err, const char *path, int code)
{
	return err_set(err, -EINVAL, "%s: %s", path, gnutls_strerror(code));
}

static int read_text(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	int r = file_read_path(path, FILE_MAX, ret, ret_len);

	return r < 0 ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

static int load(const struct serve_tls_files *files, struct identity **ret, struct err *err)
{
	AUTO(identity_free) struct identity *i = calloc(1, sizeof(*i));
	AUTO(free) char *certificate = NULL, *key = NULL;
	gnutls_datum_t data;
	size_t len;
	int r;

	if (!i)
		return err_set(err, -ENOMEM, "out of memory");
	r = read_text(files->certificate, &certificate, &len, err);
	if (r < 0)
		return r;
	data = (gnutls_datum_t){ (unsigned char *)certificate, (unsigned)len };
	i->n = CHAIN;
	r = gnutls_pcert_list_import_x509_raw(i->chain, &i->n, &data, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0) {
		i->n = 0;
		return refuse(err, files->certificate, r);
	}
	r = read_text(files->key, &key, &len, err);
	if (r < 0)
		return r;
	data = (gnutls_datum_t){ (unsigned char *)key, (unsigned)len };
	r = gnutls_privkey_init(&i->key);
	if (r == 0)
		r = gnutls_privkey_import_x509_raw(i->key, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
	explicit_bzero(key, len);
	if (r < 0)
		return refuse(err, files->key, r);
	*ret = TAKE(i);
	return 0;
}

/* A key of another certificate would fail in each handshake, where nobody looks. */
static int check_pair(const struct serve_tls_files *files, struct identity *i, struct err *err)
{
	unsigned char mine[64], theirs[64];
	size_t n = sizeof(mine), m = sizeof(theirs);
	gnutls_pubkey_t public = NULL;
	int r = gnutls_pubkey_init(&public);

	r = r < 0 ? r : gnutls_pubkey_import_privkey(public, i->key, 0, 0);
	r = r < 0 ? r : gnutls_pubkey_get_key_id(public, GNUTLS_KEYID_USE_SHA256, mine, &n);
	r = r < 0 ? r
		  : gnutls_pubkey_get_key_id(i->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, theirs,
					     &m);
	if (public)
		gnutls_pubkey_deinit(public);
	if (r < 0)
		return refuse(err, files->key, r);
	if (n != m || memcmp(mine, theirs, n) != 0)
		return err_set(err, -EINVAL, "the key %s is not that of the certificate %s",
			       files->key, files->certificate);
	return 0;
}

int serve_tls_reload(struct serve_tls *t, struct err *err)
{
	AUTO(identity_free) struct identity *i = NULL;
	int r = load(&t->files, &i, err);

	if (r < 0 || !i)
		return r;
	r = check_pair(&t->files, i, err);
	if (r < 0)
		return r;
	SLIST_INSERT_HEAD(&t->identities, i, entry);
	i = NULL;
	return 0;
}

/* libmicrohttpd would refuse the whole server without a word. */
static int check_authorities(const char *path, const char *text, size_t len, struct err *err)
{
	gnutls_datum_t data = { (unsigned char *)(uintptr_t)text, (unsigned)len };
	gnutls_x509_crt_t *list = NULL;
	unsigned n = 0;
	int r = gnutls_x509_crt_list_import2(&list, &n, &data, GNUTLS_X509_FMT_PEM, 0);

	for (unsigned i = 0; r >= 0 && i < n; i++)
		gnutls_x509_crt_deinit(list[i]);
	if (r >= 0)
		gnutls_free(list);
	return r < 0 ? refuse(err, path, r) : 0;
}

int serve_tls_new(const struct serve_tls_files *files, struct serve_tls **ret, struct err *err)
{
	AUTO(serve_tls_free) struct serve_tls *t = calloc(1, sizeof(*t));
	size_t len = 0;
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->files = *files;
	SLIST_INIT(&t->identities);
	r = serve_tls_reload(t, err);
	if (r == 0 && files->client_ca[0]) {
		r = read_text(files->client_ca, &t->client_ca, &len, err);
		r = r < 0 ? r : check_authorities(files->client_ca, t->client_ca, len, err);
	}
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

void serve_tls_free(struct serve_tls *t)
{
	if (!t)
		return;
	while (!SLIST_EMPTY(&t->identities)) {
		struct identity *i = SLIST_FIRST(&t->identities);

		SLIST_REMOVE_HEAD(&t->identities, entry);
		identity_free(i);
	}
	free(t->client_ca);
	free(t);
}

/* --- for libmicrohttpd ---------------------------------------------------------------------- */

static int show_certificate(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
			    const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
			    gnutls_pcert_st **ret_chain, unsigned *ret_n, gnutls_privkey_t *ret_key)
{
	struct serve_tls *t = gnutls_session_get_ptr(session);
	struct identity *i = t ? SLIST_FIRST(&t->identities) : NULL;

	if (!i)
		return -1;
	*ret_chain = i->chain;
	*ret_n = i->n;
	*ret_key = i->key;
	return 0;
}

static int check_client(gnutls_session_t session)
{
	static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st data = { 0 };
	unsigned status = 0;

	data.type = GNUTLS_DT_KEY_PURPOSE_OID;
	data.data = (unsigned char *)purpose;
	if (gnutls_certificate_verify_peers(session, &data, 1, &status) < 0 || status)
		return GNUTLS_E_CERTIFICATE_ERROR;
	return 0;
}

void serve_tls_options(struct serve_tls *t, struct MHD_OptionItem *ret)
{
	union {
		gnutls_certificate_retrieve_function2 *fn;
		void *pointer;
	} callback = { .fn = show_certificate }; /* as an option in an array is given */
	static char priorities[] = PRIORITIES;

	*ret++ = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_CERT_CALLBACK, 0, callback.pointer };
	*ret++ = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, priorities };
	if (t->client_ca)
		*ret++ = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0, t->client_ca };
	*ret = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
}

void serve_tls_connection(struct serve_tls *t, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (!info || !info->tls_session)
		return;
	gnutls_session_set_ptr(info->tls_session, t);
	if (!t->client_ca)
		return;
	gnutls_certificate_server_set_request(info->tls_session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_function(info->tls_session, check_client);
}
