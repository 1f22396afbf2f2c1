/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

int dir_open_at(int dir, const char *name)
{
	int fd;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int dir_open(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, n + 1);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return dir_open_at(AT_FDCWD, path);
}

int fd_write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_publish(int dir, const char *name, mode_t mode, const char *text, size_t len)
{
	char temporary[NAME_MAX + 1];
	AUTO(close) int fd = -1;
	int r;

	if (snprintf(temporary, sizeof(temporary), ".%s.new", name) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, len);
	if (r == 0 && renameat(dir, temporary, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

static int read_opened(int fd, size_t max, char **ret, size_t *ret_len)
{
	AUTO(free) char *text = NULL;
	struct stat st;
	size_t have = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((size_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (have < (size_t)st.st_size) {
		ssize_t n = read(fd, text + have, (size_t)st.st_size - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	text[have] = '\0';
	*ret = TAKE(text);
	if (ret_len)
		*ret_len = have;
	return 0;
}

int file_read(int dir, const char *name, size_t max, char **ret, size_t *ret_len)
{
	AUTO(close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return read_opened(fd, max, ret, ret_len);
}

int file_read_path(const char *path, size_t max, char **ret, size_t *ret_len)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return read_opened(fd, max, ret, ret_len);
}

int file_remove(int dir, const char *name)
{
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int dir_each(int dir, dir_entry_fn *fn, void *arg)
{
	AUTO(closedir) DIR *d = NULL;
	const struct dirent *entry;
	int r = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while (r >= 0 && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			r = fn(dir, entry->d_name, arg);
	return r < 0 ? r : 0;
}
