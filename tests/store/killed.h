/* killed.h - processes that work with a store are killed, and what they were told is there. */
#pragma once

/* A test of cmocka, for whatever store where.h gives. */
void test_killed(void **state);
