/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/names.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
/* Lists instead of isalnum(): a locale must not widen a name. */
#define ALNUM LOWER UPPER DIGITS

const char *text_show(const char *text, char *ret)
{
	size_t n = 0;

	for (; n < SHOW_TEXT - 1 && text[n]; n++)
		ret[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	ret[n] = '\0';
	if (text[n])
		memcpy(ret + n - 3, "...", 3);
	return ret;
}

const char *text_printable(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		ret[n++] = *text;
	ret[n] = '\0';
	for (char *c = ret; *c; c++)
		if (*c < 0x20 || *c >= 0x7f)
			*c = '?';
	return ret;
}

size_t utf8_length(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static int refuse(const char *text, struct err *err, const char *rule)
{
	char shown[SHOW_TEXT];

	return err_set(err, -EINVAL, "\"%s\" is not %s", text_show(text, shown), rule);
}

/* min to max bytes, all of one set. */
static bool made_of(const char *text, const char *set, size_t min, size_t max)
{
	size_t n = strspn(text, set);

	return text[n] == '\0' && n >= min && n <= max;
}

static bool printable(const char *text, size_t min, size_t max)
{
	size_t n = 0;

	while (text[n] >= 0x20 && text[n] < 0x7f)
		n++;
	return text[n] == '\0' && n >= min && n <= max;
}

static bool is_name(const char *text, size_t max)
{
	static const char edge[] = LOWER DIGITS;
	size_t n = strlen(text);

	return made_of(text, LOWER DIGITS ".-", 1, max) && strchr(edge, text[0]) &&
	       strchr(edge, text[n - 1]);
}

int name_check(const char *text, struct err *err)
{
	if (is_name(text, NAME_TEXT - 1))
		return 0;
	return refuse(text, err,
		      "a name: 1 to 63 of a-z, 0-9, '.', '-', with a letter or digit at both ends");
}

int network_check(const char *text, struct err *err)
{
	if (is_name(text, NAME_TEXT - 1))
		return 0;
	return refuse(text, err,
		      "a network name: 1 to 63 of a-z, 0-9, '.', '-', with a letter or digit at "
		      "both ends");
}

int node_name_check(const char *text, struct err *err)
{
	if (is_name(text, NODE_NAME_TEXT - 1))
		return 0;
	return refuse(text, err,
		      "a node name: 1 to 253 of a-z, 0-9, '.', '-', with a letter or digit at both "
		      "ends");
}

int interface_check(const char *text, struct err *err)
{
	if (made_of(text, ALNUM "_.-", 1, IF_NAME_TEXT - 1) && strcmp(text, ".") != 0 &&
	    strcmp(text, "..") != 0)
		return 0;
	return refuse(text, err,
		      "an interface name: 1 to 15 of A-Z, a-z, 0-9, '_', '.', '-', and not '.' or "
		      "'..'");
}

int pod_interface_check(const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (n >= 1 && n < IF_NAME_TEXT && strcspn(text, "/: \t\n\v\f\r") == n &&
	    strcmp(text, ".") != 0 && strcmp(text, "..") != 0)
		return 0;
	return refuse(
		text, err,
		"an interface name: 1 to 15 bytes without '/', ':' and blanks, and not '.' or "
		"'..'");
}

int interface_pattern_check(const char *text, struct err *err)
{
	if (made_of(text, ALNUM "_.-*?", 1, IF_NAME_TEXT - 1))
		return 0;
	return refuse(text, err,
		      "an interface pattern: 1 to 15 of A-Z, a-z, 0-9, '_', '.', '-', '*', '?'");
}

int container_id_check(const char *text, struct err *err)
{
	if (made_of(text, ALNUM "_.-", 1, 1024) && !strchr("_.-", text[0]))
		return 0;
	return refuse(text, err,
		      "a container id: 1 to 1024 of A-Z, a-z, 0-9, '_', '.', '-', beginning with a "
		      "letter or digit");
}

int namespace_pattern_check(const char *text, struct err *err)
{
	size_t n = strspn(text, LOWER DIGITS "-");
	bool open = strcmp(text + n, "*") == 0;

	if ((open || text[n] == '\0') && n <= 63 && n + open > 0 && text[0] != '-' &&
	    (open || text[n - 1] != '-'))
		return 0;
	return refuse(
		text, err,
		"a namespace: up to 63 of a-z, 0-9, '-', with a letter or digit at both ends, "
		"or its beginning and '*'");
}

int id_check(const char *text, struct err *err)
{
	if (made_of(text, ALNUM "_.:-", 1, 128))
		return 0;
	return refuse(text, err, "an id: 1 to 128 of A-Z, a-z, 0-9, '_', '.', ':', '-'");
}

int word_check(const char *text, struct err *err)
{
	if (printable(text, 1, 253))
		return 0;
	return refuse(text, err, "1 to 253 printable ASCII characters");
}

int sentence_check(const char *text, struct err *err)
{
	if (printable(text, 1, SENTENCE_TEXT - 1))
		return 0;
	return refuse(text, err, "1 to 511 printable ASCII characters");
}

int description_check(const char *text, struct err *err)
{
	if (printable(text, 0, 128) && !strchr(text, '"'))
		return 0;
	return refuse(text, err,
		      "a description: up to 128 printable ASCII characters, no double quote");
}

int password_check(const char *text, struct err *err)
{
	if (printable(text, 1, 80) && !strchr(text, '"'))
		return 0;
	return err_set(err, -EINVAL,
		       "a password has 1 to 80 printable ASCII characters, no double quote");
}

int path_check(const char *text, struct err *err)
{
	size_t n = 0;

	while ((unsigned char)text[n] >= 0x20 && text[n] != 0x7f)
		n++;
	if (text[0] == '/' && text[n] == '\0' && n < 1024)
		return 0;
	return refuse(text, err,
		      "a path: it begins with '/', has no control characters and at most 1023 "
		      "bytes");
}

/* --- communities ---------------------------------------------------------------------------- */

/* Reads one decimal part up to max and the mark after it; NULL if it is none. */
static const char *community_part(const char *p, uint64_t max, bool *ret_last)
{
	size_t n = strspn(p, DIGITS);
	uint64_t value = 0;

	if (n == 0 || n > 10 || (p[0] == '0' && n > 1))
		return NULL;
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (uint64_t)(p[i] - '0');
	*ret_last = p[n] == '\0';
	if (value > max || (!*ret_last && p[n] != ':'))
		return NULL;
	return p + n + 1;
}

static bool is_community(const char *text, int parts, uint64_t max)
{
	bool last = false;

	for (int i = 0; i < parts; i++) {
		if (last)
			return false;
		text = community_part(text, max, &last);
		if (!text)
			return false;
	}
	return last;
}

int community_check(const char *text, struct err *err)
{
	if (is_community(text, 2, UINT16_MAX) || is_community(text, 3, UINT32_MAX))
		return 0;
	return refuse(text, err,
		      "a community: two numbers up to 65535 or three up to 4294967295 with ':' "
		      "between");
}

int plain_community_check(const char *text, struct err *err)
{
	if (is_community(text, 2, UINT16_MAX))
		return 0;
	return refuse(text, err, "a community: two numbers up to 65535 with ':' between");
}

int large_community_check(const char *text, struct err *err)
{
	if (is_community(text, 3, UINT32_MAX))
		return 0;
	return refuse(text, err,
		      "a large community: three numbers up to 4294967295 with ':' between");
}

/* --- times ---------------------------------------------------------------------------------- */

static int two_digits(const char *p)
{
	return (p[0] - '0') * 10 + (p[1] - '0');
}

/* "2026-11-16T02:45:55": digits where the form has a 0, else the very mark. */
static bool has_form(const char *text, const char *form)
{
	for (; *form; form++, text++)
		if (*form == '0' ? !(*text >= '0' && *text <= '9') : *text != *form)
			return false;
	return true;
}

static int days_in(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

static bool is_time(const char *text)
{
	int year, month, day;

	if (!has_form(text, "0000-00-00T00:00:00"))
		return false;
	year = two_digits(text) * 100 + two_digits(text + 2);
	month = two_digits(text + 5);
	day = two_digits(text + 8);
	if (month < 1 || month > 12 || day < 1 || day > days_in(year, month))
		return false;
	if (two_digits(text + 11) > 23 || two_digits(text + 14) > 59 || two_digits(text + 17) > 59)
		return false;

	text += 19;
	if (*text == '.') {
		size_t n = strspn(text + 1, DIGITS);

		if (n < 1 || n > 9)
			return false;
		text += 1 + n;
	}
	return strcmp(text, "Z") == 0;
}

int time_check(const char *text, struct err *err)
{
	if (is_time(text))
		return 0;
	return refuse(text, err, "a time in UTC such as 2026-11-16T02:45:55Z");
}
