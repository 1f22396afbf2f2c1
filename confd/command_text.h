/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator writes as a command. Pure; command.h runs it.
 *
 * {} in it becomes the file's path. Words are executed as they are; a line goes to /bin/sh -c,
 * and since the path is put into it without quotes, it may have none but harmless characters
 * (command_path_check()).
 */
#pragma once

#include "lib/base/names.h"
#include "lib/json/values.h"

/* One of both; neither: no command. */
struct command_text {
	struct texts words;
	const char *line;
};

/* Letters, digits and "/._-+:@%,=": the same in and out of any quotes. */
name_check_fn command_path_check;
/* text with every {} replaced; free() it. NULL: no memory. */
char *command_fill(const char *text, const char *path);
