/* SPDX-License-Identifier: Apache-2.0 */
/* completion: the shells' side; __complete: what they ask for at every tab. */
#include <errno.h>
#include <string.h>

#include "ctl/complete.h"
#include "ctl/frame/ctl.h"
#include "ctl/frame/verbs.h"
#include "ctl/records/kind.h"

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
	struct err ignored;

	if (!argv)
		return;
	argv[0] = "roostctl";
	for (size_t i = 0; i + 1 < ctl->n_args; i++)
		argv[i + 1] = ctl->args[i];
	if (ctl_settings_load((int)ctl->n_args, (char *const *)(uintptr_t)argv, environ, &typed,
			      &verb, &ignored) == 0 &&
	    verb == OPTIONS_RUN) {
		ctl->settings = &typed;
		ctl->timeout_ms = COMPLETE_TIMEOUT_MS;
		if (ctl_read(ctl, complete_keys(c), &kvs, &ignored) == 0)
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
