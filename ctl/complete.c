/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/complete.h"

#include <errno.h>
#include <string.h>

#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/kind.h"
#include "ctl/records/record_fields.h"

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
	size_t used = 0, plain = plain_words(words, n, first, 3, &c.flag);

	if (plain && command_find(table, first, plain < 3 ? plain : 3, &c.command, &used, NULL) < 0)
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

#define COMPLETE_TIMEOUT_MS 1000U

/* bash cuts words at '=' and ':' too, so the line is split anew and the part before is cut off. */
static const char bash[] =
	"_roostctl()\n"
	"{\n"
	"	local line=${COMP_LINE:0:COMP_POINT} current cut breaks= candidate rest\n"
	"	local -a words\n"
	"	IFS=$' \\t' read -ra words <<< \"$line\"\n"
	"	case $line in *[[:blank:]]) words+=('') ;; esac\n"
	"	current=${words[${#words[@]} - 1]}\n"
	"	case $COMP_WORDBREAKS in *=*) breaks+='=' ;; esac\n"
	"	case $COMP_WORDBREAKS in *:*) breaks+=':' ;; esac\n"
	"	cut=${current%\"${current##*[$breaks]}\"}\n"
	"	COMPREPLY=()\n"
	"	while IFS=$'\\t' read -r candidate rest; do\n"
	"		COMPREPLY+=(\"${candidate#\"$cut\"}\")\n"
	"	done < <(\"${words[0]}\" __complete -- \"${words[@]:1}\" 2> /dev/null)\n"
	"	case ${COMPREPLY[0]-} in *=) compopt -o nospace 2> /dev/null ;; esac\n"
	"}\n"
	"complete -o default -F _roostctl roostctl\n";

static const char zsh[] =
	"#compdef roostctl\n"
	"_roostctl()\n"
	"{\n"
	"	local candidate about\n"
	"	local -a whole open\n"
	"	while IFS=$'\\t' read -r candidate about; do\n"
	"		case $candidate in\n"
	"		*=) open+=(\"${candidate//:/\\\\:}:$about\") ;;\n"
	"		*) whole+=(\"${candidate//:/\\\\:}:$about\") ;;\n"
	"		esac\n"
	"	done < <(\"${words[1]}\" __complete -- \"${(@)words[2,CURRENT]}\" 2> /dev/null)\n"
	"	if (( ! $#whole && ! $#open )); then\n"
	"		_files\n"
	"		return\n"
	"	fi\n"
	"	if (( $#whole )); then _describe roostctl whole; fi\n"
	"	if (( $#open )); then _describe roostctl open -S ''; fi\n"
	"}\n"
	"if [ \"$funcstack[1]\" = _roostctl ]; then\n"
	"	_roostctl \"$@\"\n"
	"else\n"
	"	compdef _roostctl roostctl\n"
	"fi\n";

int completion_run(struct ctl *ctl, struct err *err)
{
	const char *shell = ctl->args[0];
	char shown[SHOW_TEXT];

	if (strcmp(shell, "bash") == 0)
		fputs(bash, ctl->out.to);
	else if (strcmp(shell, "zsh") == 0)
		fputs(zsh, ctl->out.to);
	else
		return err_set(err, CTL_USAGE, "\"%s\" is neither bash nor zsh",
			       text_show(shell, shown));
	return 0;
}

/* --- names from etcd ------------------------------------------------------------------------ */

static void offer_key(struct ctl *ctl, const struct completion *c, const char *key)
{
	const struct kind *kind = c->kind ? kind_find(c->kind) : NULL;
	char text[PREFIX_TEXT];
	struct key k;

	if (key_parse(key, &k) < 0)
		return;
	if (kind && kind_name(kind, key))
		complete_offer(ctl->out.to, c, kind_name(kind, key), NULL);
	else if (!kind && c->argument == ARG_BLOCK)
		complete_offer(ctl->out.to, c, prefix_print(&k.block, text), k.network);
	else if (!kind && c->argument == ARG_ADDRESS && k.kind == KEY_ADDRESS)
		complete_offer(ctl->out.to, c, address_print(&k.address, text), k.node);
	else if (!kind && c->argument != ARG_ADDRESS)
		complete_offer(ctl->out.to, c, strrchr(key, '/') + 1, NULL);
}

/* With the flags that stand on the line. */
static void offer_names(struct ctl *ctl, const struct completion *c)
{
	AUTO_DONE(ctl_settings_done) struct ctl_settings typed = { 0 };
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs kvs = { 0 };
	const struct ctl_settings *before = ctl->settings;
	const char **argv = calloc(ctl->n_args + 2, sizeof(*argv));
	enum options_verb verb = OPTIONS_RUN;

	if (!argv)
		return;
	argv[0] = "roostctl";
	for (size_t i = 0; i + 1 < ctl->n_args; i++)
		argv[i + 1] = ctl->args[i];
	if (ctl_settings_load((int)ctl->n_args, (char *const *)(uintptr_t)argv, environ, &typed,
			      &verb, NULL) == 0 &&
	    verb == OPTIONS_RUN) {
		ctl->settings = &typed;
		ctl->timeout_ms = COMPLETE_TIMEOUT_MS;
		if (ctl_read(ctl, complete_keys(c), &kvs, NULL) == 0)
			for (size_t i = 0; i < kvs.n; i++)
				offer_key(ctl, c, kvs.v[i].key);
		ctl->settings = before;
	}
	free(argv);
}

/* Never complains: nobody would read it, and the shell goes on without. */
int complete_run(struct ctl *ctl, struct err *err)
{
	struct completion c;

	if (ctl->n_args == 0)
		return 0;
	c = complete_find(commands, ctl->args, ctl->n_args);
	complete_print(ctl->out.to, commands, &c);
	if (complete_keys(&c))
		offer_names(ctl, &c);
	return 0;
}
