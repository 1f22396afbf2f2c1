/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/verbs.h"

int main(void)
{
	static cni_verb_fn *const verbs[CNI_VERBS] = {
		[CNI_ADD] = roost_add, [CNI_DEL] = roost_del,       [CNI_CHECK] = roost_check,
		[CNI_GC] = roost_gc,   [CNI_STATUS] = roost_status,
	};

	return cni_main("roost", verbs);
}
