/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/authority.h"

uint32_t authority_allowed(uint32_t promise)
{
	return promise > AUTHORITY_MARGIN_S ? promise - AUTHORITY_MARGIN_S : 0;
}

int64_t authority_end(const struct authority *a)
{
	/* In ms first: seconds of a shortened minute are not whole. */
	return a->proved + (int64_t)authority_allowed(a->promise) * a->minute / 60 * 1000000;
}

enum authority_verdict authority_decide(const struct authority *a, int64_t now)
{
	if (a->removed)
		return AUTHORITY_REMOVED;
	if (!a->proved)
		return AUTHORITY_UNPROVEN;
	/* A proof from the future is of another boot. */
	if (now < a->proved)
		return AUTHORITY_UNPROVEN;
	return now < authority_end(a) ? AUTHORITY_HELD : AUTHORITY_EXPIRED;
}
