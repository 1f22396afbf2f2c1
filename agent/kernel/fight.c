/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/fight.h"

#define REPAIR_EVERY_MS    200
#define REPAIR_AHEAD_MS    (4 * REPAIR_EVERY_MS)
#define REPAIR_SLOWLY_MS   2000
#define FIGHT_LASTING_MS   120000
#define FIGHT_OVER_MS      10000 /* without a repair */
#define FIGHT_FORGOTTEN_MS 60000

void fight_repaired(struct fight *f, uint64_t now)
{
	if (now > f->paid + FIGHT_FORGOTTEN_MS)
		f->repairs = 0;
	if (now > f->paid + FIGHT_OVER_MS)
		f->began = now;
	if (f->repairs < UINT8_MAX)
		f->repairs++;
	f->paid = (f->paid > now ? f->paid : now) + REPAIR_EVERY_MS;
	if (now - f->began >= FIGHT_LASTING_MS)
		f->not_before = now + REPAIR_SLOWLY_MS;
	else if (f->paid > now + REPAIR_AHEAD_MS)
		f->not_before = f->paid - REPAIR_AHEAD_MS;
	else
		f->not_before = now;
}
