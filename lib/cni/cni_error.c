/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cni/cni_error.h"

#include <errno.h>

#include "lib/base/json_out.h"

PRINTF_LIKE(2, 0)
static void format(struct err *e, const char *fmt, va_list ap)
{
	char text[sizeof(e->text) + 1];

	vsnprintf(text, sizeof(text), fmt, ap);
	err_set(e, 0, "%s", text);
}

int cni_fail(struct cni_error *e, enum cni_code code, const char *fmt, ...)
{
	va_list ap;

	*e = (struct cni_error){ .code = code };
	va_start(ap, fmt);
	format(&e->msg, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int cni_details(struct cni_error *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format(&e->details, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int cni_error_print(const struct cni_error *e, enum cni_version version, char **ret)
{
	struct json_out out = { 0 };

	json_out_open(&out, NULL, '{');
	json_out_text(&out, "cniVersion", cni_version_name(version));
	json_out_number(&out, "code", e->code);
	json_out_text(&out, "msg", e->msg.text);
	json_out_text(&out, "details", e->details.text);
	json_out_close(&out, '}');
	return json_out_take(&out, ret);
}
