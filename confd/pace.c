/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/pace.h"

uint64_t pace_wait(const struct pace *pace, uint64_t now_us)
{
	return pace->not_before > now_us ? pace->not_before - now_us : 0;
}

void pace_hold(struct pace *pace, uint64_t now_us, uint64_t hold_us)
{
	if (now_us + hold_us > pace->not_before)
		pace->not_before = now_us + hold_us;
}
