/* SPDX-License-Identifier: Apache-2.0 */
/* A list printed once, or again whenever etcd says that something under it has changed. */
#include <errno.h>
#include <string.h>

#include "ctl/frame/watch.h"
#include "lib/json/json.h"

/* Only what differs from the last time; *last is the text of that. */
static int print_if_new(struct ctl *ctl, struct json_object *array, char **last)
{
	const struct command_list *list = ctl->command->list;
	AUTO(free) char *text = NULL;
	int r = 0;

	text = strdup(json_object_to_json_string_ext(array, JSON_C_TO_STRING_PLAIN) ?: "");
	if (!text)
		return -ENOMEM;
	if (*last && strcmp(*last, text) == 0)
		return 0;
	if (*last && ctl->out.format != OUT_JSON)
		fputc('\n', ctl->out.to);
	r = out_list_again(&ctl->out, array, list->columns, list->none);
	fflush(ctl->out.to);
	free(*last);
	*last = TAKE(text);
	return r;
}

static int watch(struct ctl *ctl, struct err *err)
{
	struct ctl_watch w = { 0 };
	AUTO(free) char *last = NULL;
	int r = ctl_watch(ctl, ctl->command->list->watches, &w, err);

	while (r >= 0 && !ferror(ctl->out.to)) {
		AUTO(json_put) struct json_object *array = NULL;

		r = ctl->command->list->read(ctl, &array, err);
		r = r < 0 ? r : print_if_new(ctl, array, &last);
		r = r < 0 ? r : ctl_watch_next(ctl, &w);
	}
	return r < 0 ? r : 0;
}

int ctl_list(struct ctl *ctl, struct err *err)
{
	const struct command_list *list = ctl->command->list;
	AUTO(json_put) struct json_object *array = NULL;
	int r;

	if (ctl->settings->watch)
		return watch(ctl, err);
	r = list->read(ctl, &array, err);
	return r < 0 ? r : out_list(&ctl->out, array, list->columns, list->none);
}
