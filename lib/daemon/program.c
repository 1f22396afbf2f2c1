/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/daemon/program.h"

#include "lib/base/log_journal.h"

void program_choose_log(enum log_level level, enum log_format format)
{
	log_set_level(level);
	if (format == LOG_FORMAT_JSON)
		log_set_sink(log_to_stderr_json);
	else if (log_journal_connected())
		log_set_sink(log_to_journal);
}

int program_tell(char *text)
{
	if (!text)
		return 1;
	fputs(text, stdout);
	free(text);
	return 0;
}
