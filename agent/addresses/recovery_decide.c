/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/addresses/recovery_decide.h"

const char *recovery_step_name(enum recovery_step step)
{
	static const char *const names[] = {
		[RECOVERY_NONE] = "none",     [RECOVERY_BEGIN] = "begin",
		[RECOVERY_ACCEPT] = "accept", [RECOVERY_EXTEND] = "extend",
		[RECOVERY_ASSERT] = "assert", [RECOVERY_SPEAK] = "speak",
		[RECOVERY_WAIT] = "wait",     [RECOVERY_END] = "end",
	};

	return names[step];
}

enum recovery_step recovery_decide(const struct recovery_seen *s)
{
	if (s->noticed && (!s->present || !s->readable || s->old))
		return RECOVERY_BEGIN;
	if (s->noticed && s->done)
		return RECOVERY_ACCEPT;
	if (!s->present || (s->readable && s->done))
		return RECOVERY_NONE;
	if (!s->readable)
		return RECOVERY_WAIT;
	if (s->longer)
		return RECOVERY_EXTEND;
	/* Who has no name holds nothing and speaks for nobody; names change machines after it. */
	if (!s->registered && s->waited)
		return RECOVERY_END;
	if (!s->certain)
		return RECOVERY_ASSERT;
	if (!s->spoken)
		return RECOVERY_SPEAK;
	if (s->waited || (s->witness && s->all_spoken))
		return RECOVERY_END;
	return RECOVERY_WAIT;
}
