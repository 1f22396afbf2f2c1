/* SPDX-License-Identifier: Apache-2.0 */
/* What can be read is written in a form that reads the same. */
#include <stdlib.h>
#include <string.h>

#include "agent/overlay/overlay_pools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct overlay_pools first = { 0 }, second = { 0 };
	AUTO(free) char *text = NULL;
	struct err err;

	if (overlay_pools_decode((const char *)data, size, &first, &err) < 0)
		return 0;
	if (overlay_pools_encode(&first, &text) < 0 ||
	    overlay_pools_decode(text, strlen(text), &second, &err) < 0 ||
	    !overlay_pools_equal(&first, &second))
		abort();
	overlay_pools_done(&first);
	overlay_pools_done(&second);
	return 0;
}
