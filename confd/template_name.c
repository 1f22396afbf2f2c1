/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "confd/template_dir.h"
#include "lib/base/names.h"

int template_name_check(const char *name, struct err *err)
{
	char shown[SHOW_TEXT];
	bool good = *name && strlen(name) <= 200;

	for (const char *part = name; part && good; part = strchr(part, '/')) {
		part += part != name;
		/* "", "." and "..": not the start of a name. Hidden files are no templates. */
		good = *part && *part != '/' && *part != '.';
	}
	for (const char *p = name; *p && good; p++)
		good = (unsigned char)*p >= 0x20 && *p != 0x7f;
	if (good)
		return 0;
	return err_set(
		err, -EINVAL,
		"\"%s\" is not the name of a template: parts with '/' between, none empty, none "
		"beginning with '.', at most 200 bytes",
		text_show(name, shown));
}
