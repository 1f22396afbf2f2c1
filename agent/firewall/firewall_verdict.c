/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/firewall/firewall_child.h"

void firewall_job_done(struct firewall_job *j)
{
	for (size_t i = 0; i < FIREWALL_TEXTS; i++)
		free(j->texts[i]);
	*j = (struct firewall_job){ 0 };
}

const char *firewall_did_name(enum firewall_did did)
{
	static const char *const names[] = { "same", "set", "gone", "busy" };

	return did <= FIREWALL_BUSY ? names[did] : "?";
}

int firewall_verdict(const struct child_result *result, struct firewall_verdict *ret,
		     struct err *err)
{
	struct firewall_verdict v = { 0 };
	const char *line = strchr(result->output, '\n');
	char word[8];
	int r;

	if (result->end == CHILD_EXITED && result->number == 1) {
		char text[sizeof(err->text)];

		return err_set(err, -EINVAL, "%s", child_words(result, text, sizeof(text)));
	}
	r = child_verdict(result, err);
	if (r < 0)
		return r;
	if (!line || sscanf(result->output, "%7s %u %" SCNu32 " %" SCNx64 " %" SCNx64, word,
			    &v.parts, &v.generation, &v.digest.high, &v.digest.low) != 5)
		return err_set(err, -EINVAL, "an answer that cannot be read");
	while (v.did < FIREWALL_BUSY && strcmp(firewall_did_name(v.did), word) != 0)
		v.did++;
	err_set(&v.refused, 0, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
	*ret = v;
	return 0;
}
