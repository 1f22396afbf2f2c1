/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_parse_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- version -------------------------------------------------------------------------------- */

/* At most six digits: no version has more, and nothing overflows. */
static bool take_number(const char **text, unsigned *ret)
{
	unsigned n = 0, digits = 0;

	for (; **text >= '0' && **text <= '9' && digits < 6; (*text)++, digits++)
		n = n * 10 + (unsigned)(**text - '0');
	if (digits)
		*ret = n;
	return digits > 0;
}

int bird_version_parse(const char *text, struct bird_version *ret)
{
	struct bird_version v = { 0 };
	unsigned *const parts[] = { &v.major, &v.minor, &v.patch };

	if (strncmp(text, "BIRD ", 5) != 0)
		return -EBADMSG;
	text += 5;
	text += *text == 'v';
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!take_number(&text, parts[i]))
			return -EBADMSG;
		if (*text != '.')
			break;
		text++;
	}
	*ret = v;
	return 0;
}

/* --- show status ---------------------------------------------------------------------------- */

static void copy(char *to, const char *text)
{
	snprintf(to, BIRD_STATUS_TEXT, "%s", text);
}

static void take_fact(const char *text, struct bird_status *s)
{
	const struct {
		const char *start;
		char *to;
	} facts[] = {
		{ "Router ID is ", s->router_id },
		{ "Hostname is ", s->hostname },
		{ "Current server time is ", s->server_time },
		{ "Last reboot on ", s->last_reboot },
		{ "Last reconfiguration on ", s->last_reconfiguration },
	};

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		if (strncmp(text, facts[i].start, strlen(facts[i].start)) == 0)
			copy(facts[i].to, text + strlen(facts[i].start));
}

static void take_recovery(const char *text, struct bird_status *s)
{
	static const char waiting[] = "Waiting for ";

	s->recovering = true;
	text += strspn(text, " ");
	if (strncmp(text, waiting, strlen(waiting)) == 0) {
		text += strlen(waiting);
		take_number(&text, &s->waiting_for);
	}
}

int bird_status_parse(const struct bird_reply *reply, struct bird_status *ret)
{
	struct bird_status s = { .state = "" };
	struct bird_line line = { 0 };
	bool version = false;

	while (bird_line_next(reply, &line)) {
		switch (line.code) {
		case 1000:
			version = bird_version_parse(line.text, &s.version) == 0;
			break;
		case 1011:
			take_fact(line.text, &s);
			break;
		case 24:
			take_recovery(line.text, &s);
			break;
		case 13:
			copy(s.state, line.text);
			break;
		}
	}
	if (!version || !s.state[0])
		return -EBADMSG;
	*ret = s;
	return 0;
}

static int time_ms(const char *text, int64_t *ret)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
	unsigned ms = 0;

	if (!end)
		return -EBADMSG;
	if (*end == '.') {
		const char *digits = ++end;

		if (!take_number(&end, &ms) || end != digits + 3)
			return -EBADMSG;
	}
	*ret = (int64_t)timegm(&tm) * 1000 + ms;
	return *end ? -EBADMSG : 0;
}

int bird_status_age_ms(const struct bird_status *s, int64_t *ret)
{
	int64_t now, then;

	if (time_ms(s->server_time, &now) < 0 || time_ms(s->last_reconfiguration, &then) < 0)
		return -EBADMSG;
	*ret = now - then;
	return 0;
}

/* --- configure ------------------------------------------------------------------------------ */

const char *bird_progress_name(enum bird_progress p)
{
	static const char *const names[] = {
		[BIRD_PROGRESS_DONE] = "done",       [BIRD_PROGRESS_RUNNING] = "running",
		[BIRD_PROGRESS_QUEUED] = "queued",   [BIRD_PROGRESS_SHUTDOWN] = "shutdown",
		[BIRD_PROGRESS_REFUSED] = "refused", [BIRD_PROGRESS_DENIED] = "denied",
		[BIRD_PROGRESS_UNKNOWN] = "unknown",
	};

	return names[p];
}

static enum bird_progress progress_of(int code)
{
	switch (code) {
	case BIRD_RECONFIGURED:
		return BIRD_PROGRESS_DONE;
	case BIRD_IN_PROGRESS:
		return BIRD_PROGRESS_RUNNING;
	case BIRD_QUEUED:
		return BIRD_PROGRESS_QUEUED;
	case BIRD_SHUTTING_DOWN:
		return BIRD_PROGRESS_SHUTDOWN;
	case BIRD_REFUSED:
		return BIRD_PROGRESS_REFUSED;
	case BIRD_DENIED:
		return BIRD_PROGRESS_DENIED;
	default:
		return BIRD_PROGRESS_UNKNOWN;
	}
}

enum bird_progress bird_configure_parse(const struct bird_reply *reply)
{
	return progress_of(reply->code);
}

enum bird_progress bird_configure_status_parse(const struct bird_reply *reply)
{
	struct bird_line line = { 0 };

	/* "0003-Daemon is up and running", then perhaps an unconfirmed undo, then "0000 ". */
	return bird_line_next(reply, &line) ? progress_of(line.code) : BIRD_PROGRESS_UNKNOWN;
}
