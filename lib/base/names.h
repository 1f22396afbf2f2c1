/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which texts are names: one function per kind of name, one sentence per rule.
 *
 * Pure. Names become parts of keys in etcd, of file names and of BIRD's
 * configuration, so each kind is a small set of characters that is harmless in
 * all three; the sets for BIRD are those that its parser takes literally. The
 * checks return 0, or -EINVAL with a sentence that shows the text and states the
 * set. A secret is never shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Room with the NUL. */
#define NAME_TEXT      64
#define NODE_NAME_TEXT 254
#define IF_NAME_TEXT   16
#define TIME_TEXT      32
#define ID_TEXT        129 /* id_check()'s 128 and the NUL */
#define SHOW_TEXT      72
#define SENTENCE_TEXT  512

/* Of the character at text, 0 if it is none: overlong, surrogate, beyond Unicode, torn. */
size_t utf8_length(const char *text);

typedef int name_check_fn(const char *text, struct err *err);

name_check_fn name_check;              /* pool, peer, filter, static route */
name_check_fn network_check;           /* the same set */
name_check_fn node_name_check;         /* the same set, up to 253: host names */
name_check_fn interface_check;         /* as the kernel and BIRD take it */
name_check_fn pod_interface_check;     /* as the kernel and CNI take it: stays in the pod */
name_check_fn interface_pattern_check; /* the same with '*' and '?' */
name_check_fn container_id_check;      /* CNI's set */
name_check_fn namespace_pattern_check; /* a Kubernetes namespace, or its beginning and '*' */
name_check_fn id_check;                /* machine, boot, token, UID: no blanks, no quotes */
name_check_fn word_check;              /* printable ASCII, up to 253: pod, version, who did it */
name_check_fn sentence_check;          /* printable ASCII, up to 511: why something failed */
name_check_fn description_check;       /* may reach BIRD in quotes */
name_check_fn password_check;          /* likewise; TCP MD5 takes at most 80 bytes */
name_check_fn path_check;              /* of a file on a node */
name_check_fn community_check;         /* "65000:100", or large: "4200000000:1:2" */
name_check_fn plain_community_check;   /* the first form alone */
name_check_fn large_community_check;   /* the second */
name_check_fn time_check; /* RFC 3339 in UTC: "2026-11-16T02:45:55Z", with fraction or not */

/* The text for a message: cut to SHOW_TEXT, '?' for what a terminal might act on. Returns ret. */
const char *text_show(const char *text, char *ret);
/* As far as a record's text may go: cut to size, '?' for what is not printable ASCII. Returns ret.
 */
const char *text_printable(const char *text, char *ret, size_t size);
