/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failure as CNI wants to hear it: a code, a sentence, details.
 *
 * Pure. Runtimes show "msg; details", drop the code and act on none of it, so the
 * sentence stands alone and says what to do. It never holds the words "not found":
 * go-cni takes a DEL that fails with them for a success. Functions that fill a
 * struct cni_error return a negative errno; cni_fail() gives them one to return.
 */
#pragma once

#include <stdarg.h>

#include "lib/base/cni_code.h"
#include "lib/base/err.h"
#include "lib/cni/cni_version.h"

struct cni_error {
	enum cni_code code; /* another plugin's may be any number */
	struct err msg, details;
};

/* Each returns -EINVAL. */
int cni_fail(struct cni_error *e, enum cni_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* More for the same failure, after cni_fail. */
int cni_details(struct cni_error *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* {"cniVersion", "code", "msg", "details"}, one line; free() it. 0 or -ENOMEM. */
int cni_error_print(const struct cni_error *e, enum cni_version version, char **ret);
