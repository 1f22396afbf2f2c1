/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret from a file, for those who must have it: etcd's password, BIRD's.
 *
 * Fails closed: no file, a file that others can read or change, an empty or an
 * unprintable one is an error, never an empty secret. What is returned has
 * been registered with log_hide(), and neither the file's content nor any part
 * of it appears in an error text.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define SECRET_SIZE_MAX 1024U

/*
 * 0 and *ret to release with secret_free(), or a negative errno with a sentence. One newline at
 * the end is not part of it. *ret_group_reads (NULL: not asked) says that the file's group can
 * read it: allowed, since that is how Kubernetes mounts secrets for a group, but worth a line.
 */
int secret_read(const char *path, char **ret, bool *ret_group_reads, struct err *err);
/*
 * The same for a path that others chose, such as the writer of a record: it must lie in one of
 * dirs (absolute, ':' between) and no part of it, link or "..", may lead out. -EACCES and -EXDEV
 * if not; such a file is never opened.
 */
int secret_read_in(const char *dirs, const char *path, char **ret, struct err *err);
/* Overwrites it first. */
void secret_free(char *secret);
AUTO_DEFINE(char *, secret_free)

/* The decisions alone. */
int secret_mode_check(const char *path, const struct stat *st, uid_t self, struct err *err);
/* Cuts the newline; len may be 0. The text is NUL-ended behind len. */
int secret_text_check(const char *path, char *text, size_t len, struct err *err);
