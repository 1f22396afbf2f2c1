/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the parser accepts, the builder prints back byte for byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(free) char *text = strndup((const char *)data, size);
	char printed[KEY_TEXT];
	struct key key;

	if (!text || key_parse(text, &key) < 0)
		return 0;
	if (key_print(&key, printed) < 0 || strcmp(printed, text) != 0)
		abort();
	return 0;
}
