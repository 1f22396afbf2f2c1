/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model/vtep.h"

#include "lib/base/hash.h"

/* Apart from whatever else is derived from a node's name. */
#define PURPOSE "vtep"

struct mac vtep_mac(const char *node)
{
	struct hash h = HASH_TEXTS(PURPOSE, node);
	struct mac mac;

	for (size_t i = 0; i < sizeof(mac.bytes); i++)
		mac.bytes[i] = (uint8_t)(h.low >> (8 * i));
	mac.bytes[0] = (uint8_t)((mac.bytes[0] & ~1u) | 2u);
	return mac;
}
