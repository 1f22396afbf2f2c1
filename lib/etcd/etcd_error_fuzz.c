/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server says, it is an error that store.h lists, with a text for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/etcd/etcd_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const int listed[] = { -ENOTCONN, -ETIMEDOUT, -EAGAIN,  -EACCES, -EKEYREJECTED,
			      -ENOENT,   -EEXIST,    -ESTALE,  -ERANGE, -E2BIG,
			      -ENOSPC,   -EINVAL,    -EBADMSG, -EIO };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = { 200, 204, 302, 400, 401, 404, 429, 500, 503 };
	struct etcd_error e;
	bool found = false;
	char *body;

	if (!size)
		return 0;
	body = malloc(size - 1 ?: 1);
	MUST(body);
	memcpy(body, data + 1, size - 1);
	e = etcd_classify(statuses[data[0] % ARRAY_SIZE(statuses)], body, size - 1);
	free(body);
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
		found = found || e.err == listed[i];
	MUST(found);
	MUST(memchr(e.text, '\0', sizeof(e.text)) && e.text[0]);
	/* A new login is for refused tokens alone, and never after something may have been done. */
	MUST(!e.login_again || (e.err == -EKEYREJECTED && !e.maybe_done));
	return 0;
}
