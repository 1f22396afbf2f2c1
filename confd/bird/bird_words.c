/* SPDX-License-Identifier: Apache-2.0 */
#include "confd/bird/bird_words.h"

#include <stdbool.h>
#include <string.h>

static const char blanks[] = " \t\r";

char *bird_word(char **rest)
{
	char *word = *rest + strspn(*rest, blanks);
	char *end = word + strcspn(word, blanks);

	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

char *bird_rest(char *rest)
{
	size_t n;

	rest += strspn(rest, blanks);
	n = strlen(rest);
	while (n && strchr(blanks, rest[n - 1]))
		n--;
	rest[n] = '\0';
	return rest;
}

/* form has '0' for any digit. */
static bool starts_like(const char *word, const char *form)
{
	for (; *form; word++, form++)
		if (*form == '0' ? *word < '0' || *word > '9' : *word != *form)
			return false;
	return true;
}

char *bird_time(char **rest)
{
	char *word = bird_word(rest);
	char *next = *rest;

	if (strlen(word) != 10 || !starts_like(word, "0000-00-00") ||
	    !starts_like(next, "00:00:00"))
		return word;
	bird_word(rest);
	next[-1] = ' ';
	return word;
}
