/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen, as it is typed: "9641", "192.0.2.7:9641", "[fd00::7]:9641". Pure. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/prefix.h"

struct listen_address {
	struct address address; /* loopback where only a port is given */
	uint16_t port;
};

/* 0, or -EINVAL with the sentence. */
int listen_address_parse(const char *text, struct listen_address *ret, struct err *err);
/* As an option's check. */
int listen_address_check(const char *text, struct err *err);
