/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/frame/note.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/model/keys.h"
#include "lib/model/model.h"

#define WHO_TEXT     254 /* word_check */
#define COMMAND_MAX  500
#define DELETED_MAX  10
#define MENTIONS_MAX 20 /* keys in one note: a forced deletion has a hundred */

/* Printable, so that the record can be read back. */
static void clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void user_of(char *text)
{
	const struct passwd *user = getpwuid(getuid());

	snprintf(text, WHO_TEXT, "%s", user ? user->pw_name : "");
	if (!user)
		snprintf(text, WHO_TEXT, "uid %u", getuid());
	clean(text);
}

static void host_of(char *text)
{
	memset(text, 0, WHO_TEXT);
	gethostname(text, WHO_TEXT - 1);
	clean(text);
}

void note_who(char *text, size_t size)
{
	const char *sudo = getenv("SUDO_USER");
	char user[WHO_TEXT], host[WHO_TEXT];

	user_of(user);
	host_of(host);
	snprintf(text, size, "%s@%s", sudo && *sudo ? sudo : user, host);
}

static void command_of(const struct ctl *ctl, char *text)
{
	const struct option_words *words = &ctl->settings->words;
	size_t n = 0;

	for (size_t i = 0; i < words->n && n < COMMAND_MAX; i++)
		n += (size_t)snprintf(text + n, COMMAND_MAX - n, "%s%s", i ? " " : "", words->v[i]);
	/* Flags of single commands: --force is another thing than none. */
	for (size_t i = 0; i < ctl_settings_table.n && n < COMMAND_MAX; i++) {
		const struct option_def *def = &ctl_settings_table.defs[i];

		if (def->only_flag && command_flag_given(def, ctl->settings))
			n += (size_t)snprintf(text + n, COMMAND_MAX - n, " --%s", def->name);
	}
	if (n >= COMMAND_MAX)
		memcpy(text + COMMAND_MAX - 4, "...", 4);
	clean(text);
}

static bool is_new(const struct txn *t, const char *key)
{
	for (size_t i = 0; i < t->compares.n; i++)
		if (strcmp(t->compares.v[i].key, key) == 0 && t->compares.v[i].number == 0)
			return true;
	return false;
}

static int entry_text(const struct ctl *ctl, const struct txn *t, const char *name, char **ret)
{
	struct history_change changes[MENTIONS_MAX];
	char user[WHO_TEXT], host[WHO_TEXT], sudo[WHO_TEXT], command[COMMAND_MAX] = "";
	struct history_entry e = { .name = name,
				   .user = user,
				   .host = host,
				   .sudo_user = sudo,
				   .command = command,
				   .changes = { changes, 0 } };

	clock_utc_text(e.when);
	user_of(user);
	host_of(host);
	snprintf(sudo, sizeof(sudo), "%s", getenv("SUDO_USER") ?: "");
	clean(sudo);
	command_of(ctl, command);
	for (size_t i = 0; i < t->ops.n && e.changes.n < MENTIONS_MAX; i++) {
		const struct store_op *op = &t->ops.v[i];

		if (op->kind != STORE_GET)
			changes[e.changes.n++] = (struct history_change){
				op->key, op->kind == STORE_DELETE ? "deleted"
					 : is_new(t, op->key)     ? "created"
								  : "changed"
			};
	}
	return history_entry_encode(&e, ret);
}

static int name_entry(char *name, size_t size)
{
	struct timespec now;
	struct tm tm;
	uint32_t random;
	size_t n;

	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || !gmtime_r(&now.tv_sec, &tm) ||
	    getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	n = strftime(name, size, "%Y%m%dt%H%M%S", &tm);
	snprintf(name + n, size - n, ".%06ldz-%08x", now.tv_nsec / 1000, random);
	return 0;
}

int note_command(struct ctl *ctl, struct txn *t, struct err *err)
{
	AUTO_DONE(ctl_kvs_done) struct ctl_kvs old = { 0 };
	AUTO(free) char *text = NULL;
	char key[KEY_TEXT], name[NAME_TEXT];
	int r = ctl_read(ctl, KEYS_HISTORY, &old, err);

	if (r < 0)
		return r;
	if (name_entry(name, sizeof(name)) < 0 || key_history(key, name) < 0)
		return err_set(err, -EIO, "no name for the record of history");
	if (entry_text(ctl, t, name, &text) < 0)
		return -ENOMEM;
	txn_then(t, op_put(key, text));
	for (size_t i = 0; i + HISTORY_MAX <= old.n && i < DELETED_MAX; i++)
		txn_then(t, op_delete(old.v[i].key));
	return t->failed ? -ENOMEM : 0;
}
