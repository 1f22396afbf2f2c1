/* SPDX-License-Identifier: Apache-2.0 */
/* The thin part: which file, and its text. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/daemon/options_parts.h"
#include "lib/json/json.h"

static int read_all(int fd, char **ret, size_t *ret_len)
{
	AUTO(free) char *text = malloc(JSON_SIZE_MAX + 1);
	size_t len = 0;
	ssize_t n;

	if (!text)
		return -ENOMEM;
	do {
		n = read(fd, text + len, JSON_SIZE_MAX + 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len <= JSON_SIZE_MAX);
	*ret = TAKE(text);
	*ret_len = len;
	return 0;
}

static int read_file(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	AUTO(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	/* A pipe or a device would hold the start up, or feed us for ever. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is not a file", path);
	r = read_all(fd, ret, ret_len);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int options_load(const struct option_table *table, int argc, char *const *argv, char *const *env,
		 void *record, enum options_verb *ret, struct err *err)
{
	const struct option_def *config = option_find(table, "config", strlen("config"), false);
	struct option_sources from = { .argc = argc, .argv = argv, .env = env };
	AUTO(free) char *text = NULL, *path = NULL;
	bool named;
	int r;

	r = options_parse(table, &from, record, ret, err);
	if (r < 0 || *ret != OPTIONS_RUN || !config || !table->config_path)
		return r;

	path = strdup(*(const char *const *)((char *)record + config->at));
	options_done(table, record);
	named = path && *path;
	if (path && !named) {
		free(path);
		path = strdup(table->config_path);
	}
	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	from.file_name = path;
	r = read_file(path, &text, &from.file_len, err);
	/* Nobody asked for the usual one. */
	if (r < 0 && (named || (r != -ENOENT && !(table->borrowed_file && r == -EACCES))))
		return r;
	from.file = text;
	return options_parse(table, &from, record, ret, err);
}
