/*
 * batch/id_map.h - a number for each custom_id, in 24 bytes or so for each, however long they are.
 *
 * An id is known by half of its SHA-256: of a billion ids no two have the same, but by a chance of
 * one in 10^20. A million take 32 to 64 MB.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_map;

struct id_map *id_map_new(void);
void id_map_free(struct id_map *); /* NULL is fine */

/* The number of an id, to be read or set, lent until the next is added; NULL: it is not there. */
uint64_t *id_map_find(const struct id_map *, const char *custom_id);

/* The same; one that is not there is added, with 0. `ret_new` may be NULL. */
uint64_t *id_map_add(struct id_map *, const char *custom_id, bool *ret_new);

size_t id_map_count(const struct id_map *);
