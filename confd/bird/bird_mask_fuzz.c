/* SPDX-License-Identifier: Apache-2.0 */
/* Of any text a copy is made; a known secret is never in it, whatever stands around it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "confd/bird/bird_mask.h"

#define SECRET "qX9"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *secret = SECRET;
	const struct texts known = { &secret, 1 };
	size_t half = size / 2;
	char *text = malloc(size + strlen(SECRET) + 1), *masked;

	if (!text)
		return 0;
	memcpy(text, data, half);
	memcpy(text + half, SECRET, strlen(SECRET));
	memcpy(text + half + strlen(SECRET), data + half, size - half);
	text[size + strlen(SECRET)] = '\0';
	masked = bird_mask(text, size + strlen(SECRET), &known);
	if (!masked || strstr(masked, SECRET))
		abort();
	free(masked);
	free(text);
	return 0;
}
