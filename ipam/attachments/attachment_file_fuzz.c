/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever decodes must encode, and decode again to an equal; what does not says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipam/attachments/attachment_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(attachment_free) struct attachment *a = NULL, *b = NULL;
	AUTO(free) char *text = NULL;
	struct err err = { "" };

	if (attachment_decode((const char *)data, size, &a, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (attachment_encode(a, &text) < 0 ||
	    attachment_decode(text, strlen(text), &b, &err) < 0 || !attachment_equal(a, b))
		abort();
	for (size_t i = 0; i < a->addresses.n; i++)
		attachment_record(a, i, "n1", "b", INT64_MAX / 2);
	return 0;
}
