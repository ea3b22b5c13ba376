/* async/plan_file.h - what plans as JSON will take, before any of it is taken. */
#pragma once

#include <rlmd/plan.h>

/* The most values that the text can hold; each is a hundred bytes and more once it is read. */
size_t plan_file_values(struct rlmd_text);
