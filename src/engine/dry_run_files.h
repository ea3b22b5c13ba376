/*
 * engine/dry_run_files.h - for --dry-run: which files an input is made of, and where its tokens
 * are.
 */
#pragma once

#include <jansson.h>

struct file_index;

/*
 * Adds to `object`, an input's, where it was made of files: "files", an array of `path`, `bytes`
 * and `tokens` in the order of the input, and "folders", the same sums with `files`, how many they
 * are, by the first two folders of each path ("" for files in none), the largest first.
 */
void dry_run_add_files(json_t *object, const struct file_index *);
