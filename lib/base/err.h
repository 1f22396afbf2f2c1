/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A negative errno with the sentence that a person gets to read.
 *
 * Used where a failure must name things: decoding of records and
 * configuration, the CNI and command-line edges, etcd's own words. Inside,
 * functions return a plain negative errno. The text lies in the struct, so
 * that reporting a failure never fails itself; a text that does not fit is
 * cut and ends in "...". A NULL struct err is accepted everywhere.
 */
#pragma once

#include "lib/base/auto.h"

struct err {
	char text[512];
};

/* Sets the text; returns code, so that "return err_set(e, -EINVAL, ...)" reads well. */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts context in front of what is there: "context: text". */
int err_wrap(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
