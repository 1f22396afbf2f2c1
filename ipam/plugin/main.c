/* SPDX-License-Identifier: Apache-2.0 */
#include "ipam/plugin/plugin.h"

int main(void)
{
	static cni_verb_fn *const verbs[CNI_VERBS] = {
		[CNI_ADD] = plugin_add, [CNI_DEL] = plugin_del,       [CNI_CHECK] = plugin_check,
		[CNI_GC] = plugin_gc,   [CNI_STATUS] = plugin_status,
	};

	return cni_main("roost-ipam", verbs);
}
