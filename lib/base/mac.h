/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet addresses. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* All zero: none. */
struct mac {
	uint8_t bytes[6];
};

static inline int mac_compare(const struct mac *a, const struct mac *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* "0a:58:0a:01:00:05"; returns text. */
#define MAC_TEXT 18
static inline const char *mac_print(const struct mac *mac, char text[MAC_TEXT])
{
	const uint8_t *b = mac->bytes;

	snprintf(text, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
		 b[5]);
	return text;
}

/* Of either case. */
static inline bool mac_parse(const char *text, struct mac *ret)
{
	for (size_t i = 0; i < sizeof(ret->bytes); i++, text += 3)
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]) ||
		    text[2] != (i + 1 < sizeof(ret->bytes) ? ':' : '\0') ||
		    sscanf(text, "%2hhx", &ret->bytes[i]) != 1)
			return false;
	return true;
}

/* Neither zero nor a group's, which the lowest bit of the first byte marks. */
static inline bool mac_is_of_device(const struct mac *mac)
{
	return !(mac->bytes[0] & 1) && mac_compare(mac, &(const struct mac){ { 0 } }) != 0;
}
