/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard padded base64, as etcd's gateway wants it and nothing laxer.
 *
 * glibc's b64_pton is undocumented, skips blanks and costs a strchr per
 * letter; OpenSSL's decoder accepts blanks and pads its output. Keys and
 * values are all that we ever read from etcd, so this is strict and fast.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define BASE64_LENGTH(n) (((n) + 2) / 3 * 4)

/* Writes BASE64_LENGTH(n) letters and a NUL. */
void base64_encode(const void *data, size_t n, char *text);

/*
 * Decodes n letters into data, which holds n / 4 * 3 bytes. Returns the number
 * of bytes, or -EINVAL for a wrong letter, length or padding.
 */
ssize_t base64_decode(const char *text, size_t n, void *data);
