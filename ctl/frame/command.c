/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/command.h"

#include <errno.h>
#include <string.h>

#include "ctl/frame/settings.h"
#include "lib/base/nearest.h"

const char *command_name(const struct command *c, char *text)
{
	snprintf(text, COMMAND_TEXT, "%s%s%s", c->noun, c->verb ? " " : "", c->verb ?: "");
	return text;
}

/* --- by its words --------------------------------------------------------------------------- */

static int unknown_noun(const struct command *table, const char *word, struct err *err)
{
	struct nearest near = nearest_to(word, strlen(word));
	char shown[SHOW_TEXT];

	for (const struct command *c = table; c->noun; c++)
		if (!c->hidden)
			nearest_try(&near, c->noun);
	text_show(word, shown);
	if (near.name[0])
		return err_set(err, CTL_USAGE,
			       "unknown command \"%s\": perhaps \"%s\"? See roostctl --help", shown,
			       near.name);
	return err_set(err, CTL_USAGE, "unknown command \"%s\", see roostctl --help", shown);
}

/* "list, show, create" */
static const char *verbs_of(const struct command *table, const char *noun, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (const struct command *c = table; c->noun; c++)
		if (strcmp(c->noun, noun) == 0 && c->verb && !c->hidden && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						c->verb);
	return text;
}

static int unknown_verb(const struct command *table, const char *noun, const char *verb,
			struct err *err)
{
	struct nearest near = nearest_to(verb ?: "", strlen(verb ?: ""));
	char shown[SHOW_TEXT], all[160];

	verbs_of(table, noun, all, sizeof(all));
	if (!verb)
		return err_set(err, CTL_USAGE, "roostctl %s needs a verb: %s", noun, all);
	for (const struct command *c = table; c->noun; c++)
		if (strcmp(c->noun, noun) == 0 && c->verb && !c->destroys)
			nearest_try(&near, c->verb);
	text_show(verb, shown);
	if (near.name[0])
		return err_set(err, CTL_USAGE, "unknown verb \"%s\" of %s: perhaps \"%s\"?", shown,
			       noun, near.name);
	return err_set(err, CTL_USAGE, "unknown verb \"%s\" of %s, which has: %s", shown, noun,
		       all);
}

int command_find(const struct command *table, const char *const *words, size_t n,
		 const struct command **ret, size_t *ret_used, struct err *err)
{
	bool noun = false;

	if (n == 0)
		return err_set(err, CTL_USAGE, "no command given, see roostctl --help");
	for (const struct command *c = table; c->noun; c++) {
		if (strcmp(c->noun, words[0]) != 0)
			continue;
		noun = true;
		if (c->verb && (n < 2 || strcmp(c->verb, words[1]) != 0))
			continue;
		*ret = c;
		*ret_used = c->verb ? 2 : 1;
		return 0;
	}
	return noun ? unknown_verb(table, words[0], n > 1 ? words[1] : NULL, err)
		    : unknown_noun(table, words[0], err);
}

/* --- what it takes -------------------------------------------------------------------------- */

bool command_takes(const struct command *c, const char *flag)
{
	if (strcmp(flag, "watch") == 0 && c->list)
		return c->list->watches || c->list->beginning;
	for (size_t i = 0; c->flags && c->flags[i]; i++)
		if (strcmp(c->flags[i], flag) == 0)
			return true;
	return false;
}

bool command_flag_given(const struct option_def *def, const struct ctl_settings *s)
{
	const char *at = (const char *)s + def->at;

	if (def->kind == OPTION_TEXT || def->kind == OPTION_PATH)
		return *(const char *const *)at && **(const char *const *)at;
	return *(const uint32_t *)at;
}

int command_check(const struct command *c, size_t n_arguments, const struct ctl_settings *s,
		  struct err *err)
{
	char name[COMMAND_TEXT];

	command_name(c, name);
	if (n_arguments < c->min || n_arguments > c->max)
		return err_set(err, CTL_USAGE, "%s arguments: roostctl %s %s",
			       n_arguments < c->min ? "missing" : "too many", name,
			       c->usage ?: "takes none");
	for (size_t i = 0; i < ctl_settings_table.n; i++) {
		const struct option_def *def = &ctl_settings_table.defs[i];

		if (def->only_flag && command_flag_given(def, s) && !command_takes(c, def->name))
			return err_set(err, CTL_USAGE,
				       "--%s is not a flag of \"%s\", see roostctl %s --help",
				       def->name, name, name);
	}
	return 0;
}
