/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"
#include "ctl/verbs.h"
int completion_run(struct ctl *ctl, struct err *err)
{
	(void)ctl;
	(void)err;
	return 0;
}
int complete_run(struct ctl *ctl, struct err *err)
{
	(void)ctl;
	(void)err;
	return 0;
}
