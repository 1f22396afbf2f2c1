/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <stdarg.h>
#include <string.h>

static void mark_cut(struct err *e, int length)
{
	if (length >= (int)sizeof(e->text))
		memcpy(e->text + sizeof(e->text) - 4, "...", 4);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;

	va_start(ap, fmt);
	mark_cut(e, vsnprintf(e->text, sizeof(e->text), fmt, ap));
	va_end(ap);
	return code;
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
	struct err context;
	struct err inner;
	va_list ap;

	if (!e)
		return code;

	inner = *e;
	va_start(ap, fmt);
	mark_cut(&context, vsnprintf(context.text, sizeof(context.text), fmt, ap));
	va_end(ap);
	mark_cut(e, snprintf(e->text, sizeof(e->text), "%s: %s", context.text, inner.text));
	return code;
}
