/* SPDX-License-Identifier: Apache-2.0 */
/* A resource file is read or refused with a sentence; what was read keeps its promises. */
#include <stdint.h>
#include <string.h>

#include "confd/resource.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(resource_done) struct resource r = { 0 };
	struct err err = { "" };

	if (resource_read("x", (const char *)data, size, &r, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (r.dest[0] != '/' || !r.source[0] || r.keys.n + r.prefixes.n == 0 || r.mode > 0777 ||
	    (r.check.line && r.check.words.n))
		abort();
	return 0;
}
