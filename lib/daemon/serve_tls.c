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
	struct identities identities;   /* the first is in use */
	gnutls_x509_trust_list_t trust; /* NULL: any client */
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

/* --- whom to believe ------------------------------------------------------------------------ */

struct authorities {
	gnutls_x509_crt_t *v;
	unsigned n;
};

static void authorities_done(struct authorities *a)
{
	for (unsigned i = 0; i < a->n; i++)
		gnutls_x509_crt_deinit(a->v[i]);
	gnutls_free(a->v);
}

/* By each alone: an old and a new authority may have one name, and the first would be taken. */
static bool is_signed(gnutls_x509_crl_t crl, const struct authorities *by)
{
	for (unsigned i = 0; i < by->n; i++) {
		unsigned status = 0;

		if (gnutls_x509_crl_verify(crl, &by->v[i], 1, 0, &status) >= 0 && status == 0)
			return true;
	}
	return false;
}

static int load_crl(gnutls_x509_trust_list_t list, const char *path, const struct authorities *by,
		    struct err *err)
{
	AUTO(free) char *text = NULL;
	gnutls_x509_crl_t *crls = NULL;
	gnutls_datum_t data;
	unsigned n = 0, given = 0;
	size_t len;
	int r = read_text(path, &text, &len, err);

	if (r < 0)
		return r;
	data = (gnutls_datum_t){ (unsigned char *)text, (unsigned)len };
	r = gnutls_x509_crl_list_import2(&crls, &n, &data, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0)
		return refuse(err, path, r);
	r = 0;
	for (; r == 0 && given < n; given += r == 0) {
		if (!is_signed(crls[given], by))
			r = err_set(
				err, -EINVAL,
				"%s: a list is not signed by the clients' CA, or is out of date",
				path);
		else if (gnutls_x509_trust_list_add_crls(list, &crls[given], 1, 0, 0) < 0)
			r = err_set(err, -ENOMEM, "out of memory");
	}
	for (; given < n; given++)
		gnutls_x509_crl_deinit(crls[given]);
	gnutls_free(crls);
	return r;
}

static int load_trust(const struct serve_tls_files *files, gnutls_x509_trust_list_t *ret,
		      struct err *err)
{
	AUTO_DONE(authorities_done) struct authorities all = { .v = NULL };
	gnutls_x509_trust_list_t list = NULL;
	AUTO(free) char *text = NULL;
	gnutls_datum_t data;
	size_t len;
	int r;

	*ret = NULL;
	if (!files->client_ca[0])
		return 0;
	r = read_text(files->client_ca, &text, &len, err);
	if (r < 0)
		return r;
	data = (gnutls_datum_t){ (unsigned char *)text, (unsigned)len };
	r = gnutls_x509_crt_list_import2(&all.v, &all.n, &data, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0)
		return refuse(err, files->client_ca, r);
	r = gnutls_x509_trust_list_init(&list, 0);
	if (r >= 0)
		r = gnutls_x509_trust_list_add_trust_mem(list, &data, NULL, GNUTLS_X509_FMT_PEM, 0,
							 0);
	r = r < 0 ? refuse(err, files->client_ca, r) : 0;
	if (r == 0 && files->client_crl && files->client_crl[0])
		r = load_crl(list, files->client_crl, &all, err);
	if (r == 0)
		*ret = TAKE(list);
	if (list)
		gnutls_x509_trust_list_deinit(list, 1);
	return r;
}

int serve_tls_reload(struct serve_tls *t, struct err *err)
{
	AUTO(identity_free) struct identity *i = NULL;
	gnutls_x509_trust_list_t trust = NULL;
	int r = load(&t->files, &i, err);

	if (r < 0 || !i)
		return r;
	r = check_pair(&t->files, i, err);
	r = r < 0 ? r : load_trust(&t->files, &trust, err);
	if (r < 0)
		return r;
	SLIST_INSERT_HEAD(&t->identities, i, entry);
	i = NULL;
	if (t->trust)
		gnutls_x509_trust_list_deinit(t->trust, 1);
	t->trust = trust;
	return 0;
}

int serve_tls_new(const struct serve_tls_files *files, struct serve_tls **ret, struct err *err)
{
	AUTO(serve_tls_free) struct serve_tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->files = *files;
	SLIST_INIT(&t->identities);
	r = serve_tls_reload(t, err);
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
	if (t->trust)
		gnutls_x509_trust_list_deinit(t->trust, 1);
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

struct chain {
	gnutls_x509_crt_t v[CHAIN];
	unsigned n;
};

static void chain_done(struct chain *c)
{
	for (unsigned i = 0; i < c->n; i++)
		gnutls_x509_crt_deinit(c->v[i]);
}

/* What the client has shown, if it is believed now. */
static bool read_chain(const struct serve_tls *t, gnutls_session_t session, struct chain *ret)
{
	static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st data = { GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)purpose, 0 };
	unsigned n = 0, status = 0;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &n);

	if (!shown || n == 0 || n > CHAIN || !t->trust)
		return false;
	for (; ret->n < n; ret->n++) {
		if (gnutls_x509_crt_init(&ret->v[ret->n]) < 0)
			return false;
		if (gnutls_x509_crt_import(ret->v[ret->n], &shown[ret->n], GNUTLS_X509_FMT_DER) <
		    0) {
			gnutls_x509_crt_deinit(ret->v[ret->n]);
			return false;
		}
	}
	return gnutls_x509_trust_list_verify_crt2(t->trust, ret->v, ret->n, &data, 1, 0, &status,
						  NULL) >= 0 &&
	       status == 0;
}

static int check_client(gnutls_session_t session)
{
	const struct serve_tls *t = gnutls_session_get_ptr(session);
	AUTO_DONE(chain_done) struct chain chain = { .n = 0 };

	return t && read_chain(t, session, &chain) ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

/* Such as can stand in a record, a log and a flag as it is. */
static bool is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' ||
		    text[i] == ',')
			return false;
	return n > 0;
}

static bool name_of(gnutls_x509_crt_t crt, unsigned kind, const char *label,
		    char name[static SERVE_NAME_TEXT])
{
	char value[SERVE_NAME_TEXT];
	struct address address = { 0 };
	unsigned type;
	size_t n;
	int r;

	for (unsigned i = 0;; i++) {
		n = sizeof(value);
		r = gnutls_x509_crt_get_subject_alt_name2(crt, i, value, &n, &type, NULL);
		if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return false;
		if (r < 0 || type != kind)
			continue;
		if (kind == GNUTLS_SAN_IPADDRESS && (n == 4 || n == 16)) {
			address.family = n == 4 ? AF_INET : AF_INET6;
			memcpy(address.bytes, value, n);
			address_print(&address, value);
			n = strlen(value);
		}
		if (is_plain(value, n) && snprintf(name, SERVE_NAME_TEXT, "%s%.*s", label, (int)n,
						   value) < SERVE_NAME_TEXT)
			return true;
	}
}

static bool common_name(gnutls_x509_crt_t crt, char name[static SERVE_NAME_TEXT])
{
	char value[SERVE_NAME_TEXT];
	size_t n = sizeof(value);

	return gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, value, &n) >=
		       0 &&
	       is_plain(value, n) &&
	       snprintf(name, SERVE_NAME_TEXT, "CN:%.*s", (int)n, value) < SERVE_NAME_TEXT;
}

int serve_tls_name(const struct serve_tls *t, struct MHD_Connection *connection,
		   char name[static SERVE_NAME_TEXT], struct err *err)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	AUTO_DONE(chain_done) struct chain chain = { .n = 0 };

	name[0] = '\0';
	if (!t->trust)
		return 0;
	if (!info || !info->tls_session || !read_chain(t, info->tls_session, &chain))
		return err_set(err, -EACCES,
			       "the client certificate is not valid any more: it has expired, was "
			       "revoked, or its CA was replaced");
	if (name_of(chain.v[0], GNUTLS_SAN_URI, "URI:", name) ||
	    name_of(chain.v[0], GNUTLS_SAN_DNSNAME, "DNS:", name) ||
	    name_of(chain.v[0], GNUTLS_SAN_IPADDRESS, "IP:", name) || common_name(chain.v[0], name))
		return 0;
	name[0] = '\0';
	return err_set(err, -EACCES,
		       "the client certificate names nobody: issue one with a URI, DNS name or IP "
		       "address as subjectAltName, or with a CN, of printable characters without "
		       "spaces, commas and quotes");
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
	*ret = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
}

void serve_tls_connection(struct serve_tls *t, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (!info || !info->tls_session)
		return;
	gnutls_session_set_ptr(info->tls_session, t);
	if (!t->files.client_ca[0])
		return;
	gnutls_certificate_server_set_request(info->tls_session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_function(info->tls_session, check_client);
}
