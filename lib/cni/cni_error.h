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

#include "lib/base/err.h"
#include "lib/cni/cni_version.h"

/* 0 to 99 are the specification's, from 100 on ours; the agent's are in docs/API.md. */
enum cni_code {
	CNI_CODE_VERSION = 1,           /* cniVersion not supported, or too old for the verb */
	CNI_CODE_FIELD = 2,             /* a field's value is not supported */
	CNI_CODE_UNKNOWN_CONTAINER = 3, /* nothing to clean up */
	CNI_CODE_ENVIRONMENT = 4,       /* a CNI_* variable is missing or wrong */
	CNI_CODE_IO = 5,                /* stdin, files, the agent's words */
	CNI_CODE_DECODE = 6,            /* not JSON, or a value of another type */
	CNI_CODE_CONFIG = 7,            /* well-formed and wrong */
	CNI_CODE_NETNS = 8,             /* known to the library only */
	CNI_CODE_TRY_AGAIN = 11,        /* the agent is away or busy */
	CNI_CODE_UNAVAILABLE = 50,      /* STATUS: an ADD would fail */
	CNI_CODE_IMPAIRED = 51,         /* the same, and running pods suffer */
	CNI_CODE_NO_ADDRESS = 100,      /* every pool that fits is full */
	CNI_CODE_ATTACHED = 101,        /* the interface already carries its addresses */
	CNI_CODE_ADDRESS_IN_USE = 102,  /* the requested one */
	CNI_CODE_OTHER_ADDRESSES = 103, /* CHECK: the attachment holds others */
};

struct cni_error {
	unsigned code;
	struct err msg, details;
};

/* Each returns -EINVAL. */
int cni_fail(struct cni_error *e, unsigned code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* More for the same failure, after cni_fail. */
int cni_details(struct cni_error *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* {"cniVersion", "code", "msg", "details"}, one line; free() it. 0 or -ENOMEM. */
int cni_error_print(const struct cni_error *e, enum cni_version version, char **ret);
