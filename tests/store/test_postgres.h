/* test_postgres.h - what only a server does: it goes away, and it lets in or not. */
#pragma once

void test_the_server_is_killed(void **state);
void test_a_late_back_end(void **state);
void test_no_server(void **state);
void test_strange_servers(void **state);
void test_many_open_at_once(void **state);
void test_locked_out(void **state);
void test_others_write_during_a_query(void **state);
