/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define FIRST_ROOM 4

int array_make_room(void *v, size_t n, size_t *room, size_t size, size_t more)
{
	void **elements = v, *grown;
	/* Twice the room, not the elements: who reserves ahead, one more each time, moves them as rarely. */
	size_t have = n > *room ? n : *room, want = have <= SIZE_MAX / 2 ? 2 * have : SIZE_MAX;

	if (n <= *room && more <= *room - n)
		return 0;
	if (more > SIZE_MAX - n)
		return -ENOMEM;
	if (want < n + more)
		want = n + more;
	if (want < FIRST_ROOM)
		want = FIRST_ROOM;
	grown = reallocarray(*elements, want, size);
	if (!grown)
		return -ENOMEM;
	*elements = grown;
	*room = want;
	return 0;
}

void *array_open(void *v, size_t *n, size_t *room, size_t size, size_t i)
{
	char **elements = v, *at;

	if (array_make_room(v, *n, room, size, 1) < 0)
		return NULL;
	at = *elements + i * size;
	memmove(at + size, at, (*n - i) * size);
	(*n)++;
	return memset(at, 0, size);
}

void array_close(void *v, size_t *n, size_t size, size_t i)
{
	char *at = (char *)v + i * size;

	(*n)--;
	memmove(at, at + size, (*n - i) * size);
}
