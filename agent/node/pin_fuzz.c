/* SPDX-License-Identifier: Apache-2.0 */
/* A node file of any bytes is taken or refused with a sentence; what is taken survives a round. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/node/pin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(free) char *text = NULL, *again = NULL;
	struct identity a = { 0 }, b = { 0 };
	struct err err = { "" };
	int r = pin_decode((const char *)data, size, &a, &err);

	if (r < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (pin_encode(&a, &text) < 0 || pin_decode(text, strlen(text), &b, NULL) < 0 ||
	    pin_encode(&b, &again) < 0 || strcmp(text, again) != 0)
		abort();
	return 0;
}
