/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/certificate.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>

static int64_t seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void take_subject(const X509 *x509, char *text, size_t size)
{
	BIO *bio = BIO_new(BIO_s_mem());
	int n = 0;

	if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(x509), 0,
				      XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0)
		n = BIO_read(bio, text, (int)size - 1);
	text[n > 0 ? n : 0] = '\0';
	BIO_free(bio);
}

void certificate_take(const X509 *x509, struct certificate *ret)
{
	*ret = (struct certificate){
		.not_before = seconds(X509_get0_notBefore(x509)),
		.not_after = seconds(X509_get0_notAfter(x509)),
	};
	take_subject(x509, ret->subject, sizeof(ret->subject));
}

int certificate_read(const char *path, struct certificate *ret, struct err *err)
{
	AUTO(fclose) FILE *f = fopen(path, "re");
	X509 *x509;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	x509 = PEM_read_X509(f, NULL, NULL, NULL);
	if (!x509)
		return err_set(err, -EINVAL, "%s: there is no certificate in PEM form in it", path);
	certificate_take(x509, ret);
	X509_free(x509);
	return 0;
}
