/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attachment as a file under /run/roost/attachments, and as records in etcd.
 *
 *   {"version":1,"network":"pods","container":"3f9c","interface":"eth0",...,
 *    "addresses":[{"address":"10.1.0.5","length":32,"pool":"web","network":"default"}]}
 *
 * Pure. Strict in both directions: what decodes encodes to an equal one, a file
 * damaged by hand or written by a later version is refused as a whole with a
 * sentence. The name of a file is a hash of its key, 32 hex digits; who opens one
 * compares the key inside with the one that was meant.
 */
#pragma once

#include "ipam/attachments/attachments.h"
#include "lib/base/hash.h"

#define ATTACHMENT_FILE_VERSION 1

/* HASH_TEXT bytes; returns text. */
const char *attachment_file_name(const struct attachment_key *key, char *text);

/* 0, -ENOMEM, or -EINVAL (-E2BIG) with a sentence; *ret is for attachment_free(). */
int attachment_decode(const char *json, size_t len, struct attachment **ret, struct err *err);
/* 0 or -ENOMEM; free() the text. */
int attachment_encode(const struct attachment *a, char **ret);
bool attachment_equal(const struct attachment *a, const struct attachment *b);

/*
 * The record of its index-th address for address_record_encode() and key_address(). Its texts
 * lie in the attachment, node and boot: never call address_record_done() on it. boot_time is
 * what CLOCK_REALTIME shows above CLOCK_BOOTTIME, in nanoseconds. An address whose network is
 * "" (a mark for a mere route, another IPAM plugin's) has no key in etcd: leave it out.
 */
struct address_record attachment_record(const struct attachment *a, size_t index, const char *node,
					const char *boot, int64_t boot_time);
