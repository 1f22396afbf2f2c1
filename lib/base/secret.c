/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/log.h"

void secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

int secret_mode_check(const char *path, const struct stat *st, uid_t self, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EINVAL, "%s is not a file", path);
	if (st->st_uid != 0 && st->st_uid != self)
		return err_set(err, -EPERM,
			       "%s belongs to user %u: a secret must belong to root or to us", path,
			       (unsigned)st->st_uid);
	if (st->st_mode & (S_IRWXO | S_IWGRP))
		return err_set(err, -EPERM,
			       "%s has mode %04o: others can read or change it, so it is not used; "
			       "chmod 0600 %s",
			       path, (unsigned)(st->st_mode & 07777), path);
	return 0;
}

int secret_text_check(const char *path, char *text, size_t len, struct err *err)
{
	if (len > SECRET_SIZE_MAX)
		return err_set(err, -E2BIG, "%s holds more than %u bytes, that is no password",
			       path, SECRET_SIZE_MAX);
	if (len && text[len - 1] == '\n')
		text[--len] = '\0';
	if (len && text[len - 1] == '\r')
		text[--len] = '\0';
	if (len == 0)
		return err_set(err, -EINVAL, "%s is empty", path);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return err_set(err, -EINVAL, "%s holds a control character at byte %zu",
				       path, i + 1);
	return 0;
}

static int read_some(int fd, char *text, size_t room, size_t *ret_len)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, text + len, room - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len < room);
	text[len] = '\0';
	*ret_len = len;
	return 0;
}

/* NONBLOCK: a pipe put in its place must not hold us up. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static int read_open(int fd, const char *path, char **ret, bool *ret_group_reads, struct err *err)
{
	AUTO(secret_free) char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = secret_mode_check(path, &st, geteuid(), err);
	if (r < 0)
		return r;

	text = calloc(1, SECRET_SIZE_MAX + 2);
	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	r = read_some(fd, text, SECRET_SIZE_MAX + 1, &len);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	r = secret_text_check(path, text, len, err);
	if (r < 0) {
		explicit_bzero(text, len);
		return r;
	}

	r = log_hide(text);
	if (r == -EINVAL)
		return err_set(err, r,
			       "%s is too short: fewer than 4 bytes cannot be kept out of the log",
			       path);
	if (r < 0)
		return err_set(err, r, "out of memory");
	if (ret_group_reads)
		*ret_group_reads = st.st_mode & S_IRGRP;
	*ret = TAKE(text);
	return 0;
}

int secret_read(const char *path, char **ret, bool *ret_group_reads, struct err *err)
{
	AUTO(close) int fd = open(path, OPEN_FLAGS);

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return read_open(fd, path, ret, ret_group_reads, err);
}

/* --- within directories --------------------------------------------------------------------- */

/* What follows the directory in the path; NULL if the path does not begin with it. */
static const char *rest_in(const char *dir, size_t n, const char *path)
{
	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 0 || strncmp(path, dir, n) != 0 || path[n] != '/')
		return NULL;
	path += n + strspn(path + n, "/");
	return *path ? path : NULL;
}

/* Links are followed as long as they stay within: so Kubernetes mounts secrets. */
static int open_beneath(const char *dir, size_t n, const char *rest)
{
	const struct open_how how = { .flags = OPEN_FLAGS,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	AUTO(free) char *name = strndup(dir, n);
	AUTO(close) int at = name ? open(name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return at < 0 ? -1 : (int)syscall(SYS_openat2, at, rest, &how, sizeof(how));
}

int secret_read_in(const char *dirs, const char *path, char **ret, struct err *err)
{
	AUTO(close) int fd = -1;
	const char *rest = NULL;
	size_t n = 0;

	for (const char *dir = dirs; *dir && !rest; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		rest = rest_in(dir, n, path);
		if (rest)
			fd = open_beneath(dir, n, rest);
	}
	if (!rest)
		return err_set(err, -EACCES,
			       "%s is in none of the directories for passwords (%s): move it "
			       "there, or add its directory to --secret-dir",
			       path, dirs);
	if (fd < 0 && errno == EXDEV)
		return err_set(err, -EXDEV,
			       "%s leads out of the directories for passwords (%s), by \"..\" or "
			       "a link: put the file itself there",
			       path, dirs);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return read_open(fd, path, ret, NULL, err);
}
