/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of netlink messages, for kernel_message*.c alone. */
#pragma once

#include "agent/kernel/kernel_message.h"

struct attribute {
	unsigned type;
	const uint8_t *data;
	size_t length;
};

/* What is left of a list of attributes. */
struct attributes {
	const uint8_t *at;
	size_t left;
};

bool next_attribute(struct attributes *list, struct attribute *ret);
struct attributes nested(const struct attribute *a);
/* Copies the family's header and gives what follows it; -EBADMSG if it is cut short. */
int open_message(const struct nlmsghdr *hdr, void *body, size_t size, struct attributes *ret);
uint32_t read_u32(const struct attribute *a, uint32_t otherwise);
bool read_address(const struct attribute *a, sa_family_t family, struct address *ret);
