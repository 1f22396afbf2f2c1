/* SPDX-License-Identifier: Apache-2.0 */
/* overlay: how this node reaches the blocks of the others, from its agent. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/overlay_rows.h"
#include "lib/model/keys.h"

static const struct out_column columns[] = {
	COLUMN("NODE", "node"),   COLUMN("AT", "underlay"),     COLUMN("BLOCK", "block"),
	COLUMN("WAY", "way"),     WIDE("TUNNEL", "vtep"),       WIDE("MAC", "mac"),
	WIDE("DEVICE", "device"), COLUMN("PROBLEM", "problem"), COLUMNS_END,
};

static int read_overlay(struct ctl *ctl, struct json_object **ret, struct err *err)
{
	AUTO(json_put) struct json_object *array = json_object_new_array();
	AUTO(json_put) struct json_object *said = NULL;
	unsigned code = 0;
	int r = array ? ctl_agent(ctl, "GET", "/v1/overlay", NULL, &code, &said, err) : -ENOMEM;

	if (r < 0)
		return r;
	if (overlay_rows(said, array) < 0)
		return -ENOMEM;
	*ret = TAKE(array);
	return 0;
}

const struct command_list overlay_list = {
	.read = read_overlay,
	.columns = columns,
	.watches = (const char *const[]){ KEYS_NODE, KEYS_BLOCK, KEYS_POOL, NULL },
	.none = "No other node is reached through an overlay: no pool has an encapsulation, or no "
		"other node has a block of one.",
};
