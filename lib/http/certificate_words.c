/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/http/certificate_words.h"

#include "lib/base/clock.h"

#define DAY 86400

bool certificate_words(const struct certificate *c, const char *what, const char *todo, int64_t now,
		       enum log_level *ret_level, struct err *ret)
{
	int64_t left = c->not_after - now;
	char time[TIME_TEXT];

	if (!c->not_after)
		return false;
	*ret_level = LOG_LEVEL_ERROR;
	if (now < c->not_before)
		err_set(ret, 0, "%s is valid only from %s on: check the clocks, or %s", what,
			clock_utc_of(c->not_before, time), todo);
	else if (left <= 0)
		err_set(ret, 0, "%s expired on %s: %s", what, clock_utc_of(c->not_after, time),
			todo);
	else if (left > CERTIFICATE_WARN_DAYS * DAY)
		return false;
	else
		err_set(ret, 0, "%s expires on %s, in %lld day%s: %s", what,
			clock_utc_of(c->not_after, time), (long long)(left / DAY),
			left / DAY == 1 ? "" : "s", todo);
	if (left > 0 && now >= c->not_before)
		*ret_level = LOG_LEVEL_WARNING;
	return true;
}
