/* SPDX-License-Identifier: Apache-2.0 */
/* How messages are made, for kernel_request*.c alone. */
#pragma once

#include "agent/kernel/kernel_request.h"

struct nl_msg *request(int type, unsigned flags, const void *body, size_t length);
/* The message, or NULL if something did not fit: never half of one. */
struct nl_msg *whole(struct nl_msg *m, int err);
int put_address(struct nl_msg *m, int type, const struct address *a);
