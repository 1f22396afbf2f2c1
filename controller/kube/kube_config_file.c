/* SPDX-License-Identifier: Apache-2.0 */
/* The thin part of kube_config.h: from files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/kube/kube_config.h"
#include "lib/base/secret.h"

#define CONFIG_MAX (1024 * 1024)
/* Tokens of clusters with long issuers reach a few kilobytes; a request's header ends at some 8. */
#define TOKEN_MAX 8000

/* NONBLOCK: a pipe put in its place must not hold us up. Links are followed: the kubelet's are. */
static int read_whole(const char *path, size_t max, char **ret, size_t *ret_len,
		      struct stat *ret_st, struct err *err)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(secret_free) char *text = NULL;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(ret_st->st_mode))
		return err_set(err, -EINVAL, "%s is not a file", path);
	text = calloc(1, max + 2);
	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	do {
		n = read(fd, text + len, max + 1 - len);
		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len <= max);
	if (len > max)
		return err_set(err, -EFBIG, "%s holds more than %zu bytes", path, max);
	*ret = TAKE(text);
	*ret_len = len;
	return 0;
}

int kube_config_read(const char *path, const char *context, bool allow_insecure,
		     struct kube_config **ret, struct err *err)
{
	AUTO(kube_config_free) struct kube_config *c = NULL;
	AUTO(secret_free) char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r = read_whole(path, CONFIG_MAX, &text, &len, &st, err);

	if (r < 0)
		return r;
	r = kube_config_parse(path, text, len, context, allow_insecure, &c, err);
	explicit_bzero(text, len);
	if (r == 0 && (c->key_pem || c->token))
		r = secret_mode_check(path, &st, geteuid(), err);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

int kube_token_read(const char *path, char **ret, struct err *err)
{
	AUTO(secret_free) char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r = read_whole(path, TOKEN_MAX, &text, &len, &st, err);

	if (r < 0)
		return r;
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	if (!len)
		return err_set(err, -EINVAL, "%s is empty: a token is expected there", path);
	if (strlen(text) != len || !kube_token_valid(text))
		return err_set(err, -EINVAL,
			       "%s does not hold a token: printable ASCII without blanks", path);
	*ret = TAKE(text);
	return 0;
}
