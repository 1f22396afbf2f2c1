/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the lease API: the first byte chooses the verb, then path, a NUL, and the body. */
#include <stdint.h>
#include <string.h>

#include "controller/leases/lease_api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "DELETE", "HEAD" };
	static const enum lease_verb verbs[] = { LEASE_ACQUIRE, LEASE_RENEW, LEASE_RESERVE };
	AUTO_DONE(lease_wish_done) struct lease_wish wish = { 0 };
	AUTO(free) char *path = NULL;
	struct lease_call call;
	struct err err = { "" };
	size_t n;

	if (size < 1)
		return 0;
	path = strndup((const char *)data + 1, size - 1);
	n = strlen(path);
	if (lease_call_parse(methods[data[0] % ARRAY_SIZE(methods)], path, &call, &err) < 0 &&
	    !err.text[0])
		__builtin_trap();
	if (n + 2 <= size &&
	    lease_wish_parse(verbs[data[0] % ARRAY_SIZE(verbs)], (const char *)data + n + 2,
			     size - n - 2, &wish, &err) == 0) {
		struct block block = { .lease = { .public_ip = wish.public_ip,
						  .backend_type = wish.backend_type,
						  .backend_data = wish.backend_data } };
		AUTO(free) char *text = NULL, *record = NULL;

		/* What was understood can be stored and told. */
		prefix_parse("10.5.34.0/24", &block.block);
		block.node = "lease-192.0.2.5";
		if (lease_render(&block, NULL, NULL, &text, NULL) < 0 ||
		    block_encode(&block, &record) < 0)
			__builtin_trap();
	}
	return 0;
}
