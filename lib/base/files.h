/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files published whole: written to a temporary name, then renamed.
 *
 * A reader sees the old content or the new, never a half. Nothing is synced:
 * what we keep lies on /run, a tmpfs that lives exactly as long as the pods do.
 * Names that begin with a dot are temporary; the readers skip them.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/auto.h"

/* Opens a directory, made with its parents (mode 0700) if absent. A descriptor or -errno. */
int dir_open(const char *path);
int dir_open_at(int dir, const char *name);

/* 0 or -errno. */
int fd_write_all(int fd, const char *text, size_t len);
/* 0 or -errno; on failure the old content stays and no temporary file is left. */
int file_publish(int dir, const char *name, mode_t mode, const char *text, size_t len);
/* The whole content with a NUL behind it; free() it. -EFBIG over max, -EINVAL for what is not a file,
 * -ELOOP for a symbolic link. */
int file_read(int dir, const char *name, size_t max, char **ret, size_t *ret_len);
/* The same for a file of the operator's; links are followed, because Kubernetes mounts files as such. */
int file_read_path(const char *path, size_t max, char **ret, size_t *ret_len);
/* 0 also if it is not there. */
int file_remove(int dir, const char *name);

/* Each entry that is no temporary one, in no order; a negative return of fn ends it. */
typedef int dir_entry_fn(int dir, const char *name, void *arg);
int dir_each(int dir, dir_entry_fn *fn, void *arg);
