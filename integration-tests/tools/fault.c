/* SPDX-License-Identifier: Apache-2.0 */
/* In place of cni/fault.c: the ROOST_FAULT-th place of a call fails, if there are as many. */
#include "cni/fault.h"

#include <stdlib.h>

int fault(struct cni_error *e)
{
	static long passed;
	const char *which = getenv("ROOST_FAULT");

	if (!which || ++passed != strtol(which, NULL, 10))
		return 0;
	return cni_fail(e, 999, "fault %ld, as the test wanted it", passed);
}
