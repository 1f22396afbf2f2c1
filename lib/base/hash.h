/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-2-4 with 128 bits of result and a fixed key: names for files, places for claims.
 *
 * Pure. The result is the same on every machine and for ever: file names and the
 * start of a node's search for blocks depend on it. It is no secret, so it keeps
 * nobody from making collisions on purpose; who uses it for names compares the
 * contents as well.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash {
	uint64_t low, high;
};

/* 32 hex digits and the NUL. */
#define HASH_TEXT 33

struct hash siphash128(const uint8_t key[16], const void *data, size_t len);

/* Of a list of texts; ("ab", "c") and ("a", "bc") differ. NULL counts as "". */
struct hash hash_texts(const char *const *texts, size_t n);
#define HASH_TEXTS(...)                                                                            \
	hash_texts((const char *const[]){ __VA_ARGS__ },                                           \
		   sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* The digits in the order of the bytes as the algorithm's authors print them. Returns text. */
const char *hash_print(struct hash h, char *text);
