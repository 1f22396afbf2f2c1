/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable arrays, and binary search in sorted ones.
 *
 * Pure. A growable array is any struct with the members v, n and room: `ARRAY(struct route) routes;`
 * or a struct of its own that has more members. All zero is an empty array. Growing doubles the room,
 * so appending is cheap. room may be less than n where v was allocated to fit; it then grows like any
 * other. Elements are moved by memmove(): no pointer to an element outlives the next change.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define ARRAY(type)                                                                                \
	struct {                                                                                   \
		typeof(type) *v;                                                                   \
		size_t n, room;                                                                    \
	}

/* A new element of zeros, at place i or at the end. NULL: no memory, nothing has changed. */
#define array_insert(a, i)                                                                         \
	((typeof((a)->v))array_open(&(a)->v, &(a)->n, &(a)->room, sizeof(*(a)->v), (i)))
#define array_add(a) array_insert((a), (a)->n)

/* Appends a value, which is evaluated only if there is memory. 0 or -ENOMEM. */
#define array_append(a, ...)                                                                       \
	({                                                                                         \
		typeof((a)->v) added_ = array_add(a);                                              \
		if (added_)                                                                        \
			*added_ = (__VA_ARGS__);                                                   \
		added_ ? 0 : -ENOMEM;                                                              \
	})

/* Room for so many more, so that adding them cannot fail. 0 or -ENOMEM. */
#define array_reserve(a, more) array_make_room(&(a)->v, (a)->n, &(a)->room, sizeof(*(a)->v), (more))

/* The caller has released what the element owns. */
#define array_remove(a, i) array_close((a)->v, &(a)->n, sizeof(*(a)->v), (i))

/* Empty, and without memory. */
#define array_done(a)                                                                              \
	({                                                                                         \
		free((a)->v);                                                                      \
		(a)->v = NULL;                                                                     \
		(a)->n = (a)->room = 0;                                                            \
	})

/*
 * The index of the first of n sorted elements that does not come before the wanted one; n if all do.
 * `order` is an expression about x, a pointer to an element: below 0 if it comes before the wanted
 * one, 0 if it is the wanted one:
 *
 *     i = array_place(t->v, t->n, x, strcmp(x->name, name));
 */
#define array_place(array, count, x, order)                                                        \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
		while (low_ < high_) {                                                             \
			size_t middle_ = low_ + (high_ - low_) / 2;                                \
			typeof(&(array)[0]) x = &(array)[middle_];                                 \
			if ((order) < 0)                                                           \
				low_ = middle_ + 1;                                                \
			else                                                                       \
				high_ = middle_;                                                   \
		}                                                                                  \
		low_;                                                                              \
	})

/* The first of the sorted elements with order 0, or NULL. */
#define array_find(array, count, x, order)                                                         \
	({                                                                                         \
		size_t place_ = array_place(array, count, x, order);                               \
		typeof(&(array)[0]) x = place_ < (count) ? &(array)[place_] : NULL;                \
		x && (order) == 0 ? x : NULL;                                                      \
	})

/* What the macros are made of; v points to the pointer to the elements. */
void *array_open(void *v, size_t *n, size_t *room, size_t size, size_t i);
int array_make_room(void *v, size_t n, size_t *room, size_t size, size_t more);
void array_close(void *v, size_t *n, size_t size, size_t i);
