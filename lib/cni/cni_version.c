/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_version.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	enum cni_version since;
} verbs[CNI_VERBS] = {
	[CNI_ADD] = { "ADD", CNI_0_1_0 },       [CNI_DEL] = { "DEL", CNI_0_1_0 },
	[CNI_CHECK] = { "CHECK", CNI_0_4_0 },   [CNI_GC] = { "GC", CNI_1_1_0 },
	[CNI_STATUS] = { "STATUS", CNI_1_1_0 }, [CNI_VERSION] = { "VERSION", CNI_0_1_0 },
};

static const char *const versions[CNI_VERSIONS] = {
	[CNI_0_1_0] = "0.1.0", [CNI_0_2_0] = "0.2.0", [CNI_0_3_0] = "0.3.0", [CNI_0_3_1] = "0.3.1",
	[CNI_0_4_0] = "0.4.0", [CNI_1_0_0] = "1.0.0", [CNI_1_1_0] = "1.1.0",
};

const char *cni_verb_name(enum cni_verb verb)
{
	return verbs[verb].name;
}

int cni_verb_parse(const char *text, enum cni_verb *ret)
{
	for (int i = 0; i < CNI_VERBS; i++)
		if (strcmp(text, verbs[i].name) == 0) {
			*ret = (enum cni_verb)i;
			return 0;
		}
	return -EINVAL;
}

enum cni_version cni_verb_since(enum cni_verb verb)
{
	return verbs[verb].since;
}

const char *cni_version_name(enum cni_version version)
{
	return versions[version];
}

int cni_version_parse(const char *text, enum cni_version *ret)
{
	if (text[0] == '\0')
		text = "0.1.0";
	for (int i = 0; i < CNI_VERSIONS; i++)
		if (strcmp(text, versions[i]) == 0) {
			*ret = (enum cni_version)i;
			return 0;
		}
	return -EINVAL;
}

bool cni_version_is_one(const char *text)
{
	for (int part = 0; part < 3; part++) {
		size_t n = strspn(text, "0123456789");

		if (n == 0)
			return false;
		if (text[n] == '\0')
			return true;
		if (text[n] != '.')
			return false;
		text += n + 1;
	}
	return false;
}
