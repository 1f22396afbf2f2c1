/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/complete.h"

#include <string.h>

#include "ctl/frame/settings.h"
#include "ctl/records/fields_text.h"
#include "ctl/records/kind.h"

/* --- what is wanted ------------------------------------------------------------------------- */

/* The option that a word names, with or without its value. */
static const struct option_def *flag_of(const char *word)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < ctl_settings_table.n; i++) {
		const struct option_def *def = &ctl_settings_table.defs[i];

		if (strncmp(word, "--", 2) == 0 && strlen(def->name) == len - 2 &&
		    memcmp(def->name, word + 2, len - 2) == 0)
			return def;
		if (def->letter && word[0] == '-' && word[1] == def->letter && !word[2])
			return def;
	}
	return NULL;
}

/* The words before the last, without flags: how many, and the first few. */
static size_t plain_words(const char *const *words, size_t n, const char **first, size_t max,
			  const struct option_def **ret_open)
{
	size_t count = 0;

	*ret_open = NULL;
	for (size_t i = 0; i + 1 < n; i++) {
		const struct option_def *def = words[i][0] == '-' ? flag_of(words[i]) : NULL;

		if (def && def->kind != OPTION_FLAG && !strchr(words[i], '=')) {
			*ret_open = i + 2 == n ? def : NULL;
			i++;
		} else if (words[i][0] != '-') {
			if (count < max)
				first[count] = words[i];
			count++;
		}
	}
	return count;
}

static void find_argument(struct completion *c, const char *const *words, size_t n, size_t used)
{
	size_t i = n - used;

	c->what = COMPLETE_ARGUMENT;
	if (i >= c->command->max)
		c->argument = ARG_NONE;
	else
		c->argument = c->command->arguments[i > 0];
	if (c->argument == ARG_NAME_OF_KIND)
		c->kind = words[used];
}

struct completion complete_find(const struct command *table, const char *const *words, size_t n)
{
	struct completion c = { .current = n ? words[n - 1] : "" };
	const char *first[3] = { "", "", "" };
	struct err ignored;
	size_t used = 0, plain = plain_words(words, n, first, 3, &c.flag);

	if (plain &&
	    command_find(table, first, plain < 3 ? plain : 3, &c.command, &used, &ignored) < 0)
		c.command = NULL;
	c.noun = first[0];
	if (c.flag)
		c.what = COMPLETE_VALUE;
	else if (c.current[0] == '-')
		c.what = COMPLETE_FLAG;
	else if (plain == 0)
		c.what = COMPLETE_NOUN;
	else if (c.command)
		find_argument(&c, first, plain, used);
	else if (plain == 1)
		c.what = COMPLETE_VERB;
	return c;
}

/* --- candidates ----------------------------------------------------------------------------- */

void complete_offer(FILE *out, const struct completion *c, const char *word, const char *about)
{
	if (strncmp(word, c->current, strlen(c->current)) == 0)
		fprintf(out, "%s\t%s\n", word, about ?: "");
}

static void offer_nouns(FILE *out, const struct command *table, const struct completion *c)
{
	const char *last = "";

	for (const struct command *d = table; d->noun; d++) {
		if (!d->hidden && strcmp(last, d->noun) != 0)
			complete_offer(out, c, d->noun, d->verb ? NULL : d->help);
		last = d->noun;
	}
}

static void offer_verbs(FILE *out, const struct command *table, const struct completion *c)
{
	for (const struct command *d = table; d->noun; d++)
		if (!d->hidden && d->verb && strcmp(d->noun, c->noun) == 0)
			complete_offer(out, c, d->verb, d->help);
}

static void offer_flags(FILE *out, const struct completion *c)
{
	for (size_t i = 0; i < ctl_settings_table.n; i++) {
		const struct option_def *def = &ctl_settings_table.defs[i];
		char word[OPTION_NAME + 2];

		if (def->only_flag && (!c->command || !command_takes(c->command, def->name)))
			continue;
		snprintf(word, sizeof(word), "--%s", def->name);
		complete_offer(out, c, word, def->help);
	}
	complete_offer(out, c, "--help", "what may be typed here");
}

static void offer_values(FILE *out, const struct completion *c, const char *name,
			 const char *const *values)
{
	for (size_t i = 0; values[i]; i++) {
		char word[160];

		snprintf(word, sizeof(word), "%s%s", name, values[i]);
		complete_offer(out, c, word, NULL);
	}
}

static void offer_fields(FILE *out, const struct completion *c, const struct field *fields,
			 size_t n, const char *before)
{
	static const char *const yes_or_no[] = { "true", "false", NULL };

	for (const struct field *f = fields; f < fields + n; f++) {
		char word[96], form[96];

		snprintf(word, sizeof(word), "%s%s%s", before, f->name,
			 f->type == &field_object ? "." : "=");
		if (f->type == &field_object)
			offer_fields(out, c, f->fields, f->n_fields, word);
		else if (strncmp(c->current, word, strlen(word)) != 0)
			complete_offer(out, c, word, field_form(f, form));
		else if (f->type == &field_choice)
			offer_values(out, c, word, f->choices);
		else if (f->type == &field_flag || f->type == &field_maybe)
			offer_values(out, c, word, yes_or_no);
	}
}

static void offer_argument(FILE *out, const struct completion *c)
{
	const struct record *record = fields_of_noun(c->noun);

	if (c->argument == ARG_FIELD && record)
		offer_fields(out, c, record->fields, record->n_fields, "");
	if (c->argument == ARG_SHELL)
		offer_values(out, c, "", (const char *const[]){ "bash", "zsh", NULL });
	if (c->argument == ARG_KIND)
		for (const struct kind *k = kinds; k->name; k++)
			complete_offer(out, c, k->name, NULL);
}

void complete_print(FILE *out, const struct command *table, const struct completion *c)
{
	switch (c->what) {
	case COMPLETE_NOUN:
		offer_nouns(out, table, c);
		break;
	case COMPLETE_VERB:
		offer_verbs(out, table, c);
		break;
	case COMPLETE_FLAG:
		offer_flags(out, c);
		break;
	case COMPLETE_VALUE:
		if (c->flag->choices)
			offer_values(out, c, "", c->flag->choices);
		break;
	case COMPLETE_ARGUMENT:
		offer_argument(out, c);
		break;
	case COMPLETE_NOTHING:
		break;
	}
}

const char *complete_keys(const struct completion *c)
{
	static const char *const beginnings[] = {
		[ARG_POOL] = KEYS_POOL,          [ARG_PEER] = KEYS_PEER,
		[ARG_FILTER] = KEYS_FILTER,      [ARG_NODE] = KEYS_NODE,
		[ARG_BLOCK] = KEYS_BLOCK,        [ARG_ADDRESS] = KEYS_HOST,
		[ARG_ROUTE] = KEYS_STATIC_ROUTE, [ARG_SHELL] = NULL,
	};
	const struct kind *kind = c->kind ? kind_find(c->kind) : NULL;

	if (c->what != COMPLETE_ARGUMENT)
		return NULL;
	return kind ? kind->beginning : beginnings[c->argument];
}
