#include "net/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 200 };

/* A pair that is connected; `here` is ours, with its port. */
struct pair {
	int here, there, port;
};

static struct sockaddr_in address_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return address;
}

static int open_at(const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
	if (!bind(fd, (struct sockaddr *)&address, sizeof address))
		return fd;
	close(fd);
	return -1;
}

/* `fd` connects to a server of its own. */
static struct pair connect_one(int fd)
{
	int server = open_at("127.0.0.1", 0);
	struct sockaddr_in address = address_of(server);
	struct pair pair = {.here = fd};

	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	pair.there = accept(server, NULL, NULL);
	assert_true(pair.there >= 0);
	pair.port = ntohs(address_of(fd).sin_port);
	close(server);
	return pair;
}

static void close_pair(const struct pair *pair)
{
	close(pair->here);
	close(pair->there);
}

static void say(const struct pair *pair)
{
	char byte;

	assert_int_equal(write(pair->there, ".", 1), 1);
	assert_int_equal(recv(pair->here, &byte, 1, MSG_PEEK), 1); /* waits until it is there */
}

static void hear(const struct pair *pair)
{
	char byte;

	assert_int_equal(read(pair->here, &byte, 1), 1);
}

static void test_each_is_found_among_many(void **state)
{
	struct sockets *sockets = sockets_new();
	struct pair pairs[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		pairs[i] = connect_one(open_at("127.0.0.1", 0));
		sockets_add(sockets, pairs[i].here);
	}
	for (int i = 0; i < MANY; i++) {
		assert_false(sockets_unread(sockets, pairs[i].port));
		say(&pairs[i]);
		assert_true(sockets_unread(sockets, pairs[i].port));
		assert_false(sockets_unread(sockets, pairs[(i + 1) % MANY].port));
		hear(&pairs[i]);
	}
	for (int i = 0; i < MANY; i += 2) { /* a number is used again, with another port */
		sockets_remove(sockets, pairs[i].here);
		close_pair(&pairs[i]);
		pairs[i] = connect_one(open_at("127.0.0.1", 0));
		sockets_add(sockets, pairs[i].here);
	}
	for (int i = 0; i < MANY; i++) {
		say(&pairs[i]);
		assert_true(sockets_unread(sockets, pairs[i].port));
		sockets_remove(sockets, pairs[i].here);
		assert_false(sockets_unread(sockets, pairs[i].port));
		close_pair(&pairs[i]);
	}
	sockets_free(sockets);
}

static void test_two_have_one_port(void **state)
{
	struct sockets *sockets = sockets_new();
	struct pair one = {0}, other;
	int fd = -1;

	(void)state;
	while (fd < 0) { /* until it is free at the other address, too */
		one = connect_one(open_at("127.0.0.1", 0));
		fd = open_at("127.0.0.2", one.port);
		if (fd < 0)
			close_pair(&one);
	}
	sockets_add(sockets, one.here);
	sockets_add(sockets, fd); /* it has no peer yet */
	assert_false(sockets_unread(sockets, one.port));
	other = connect_one(fd);
	assert_int_equal(one.port, other.port);
	say(&one);
	assert_true(sockets_unread(sockets, one.port));
	hear(&one);
	assert_false(sockets_unread(sockets, one.port));
	say(&other);
	assert_true(sockets_unread(sockets, one.port));
	sockets_remove(sockets, other.here);
	assert_false(sockets_unread(sockets, one.port));
	close_pair(&one);
	close_pair(&other);
	sockets_free(sockets);
}

static void test_what_comes_behind_a_greeting(void **state)
{
	struct sockets *sockets = sockets_new();
	struct pair pair = connect_one(open_at("127.0.0.1", 0));

	(void)state;
	sockets_add(sockets, pair.here);
	say(&pair);
	sockets_greet(sockets, pair.port);
	assert_false(sockets_unread(sockets, pair.port)); /* once */
	assert_true(sockets_unread(sockets, pair.port));
	sockets_greet(sockets, pair.port);
	close(pair.there);
	assert_int_equal(poll(&(struct pollfd){.fd = pair.here, .events = POLLRDHUP}, 1, -1), 1);
	assert_true(sockets_unread(sockets, pair.port));
	sockets_remove(sockets, pair.here);
	close(pair.here);
	sockets_free(sockets);
}

/* The number of a descriptor that was greeted, and closed before anybody looked, is used again. */
static void test_a_greeting_ends_with_its_connection(void **state)
{
	struct sockets *sockets = sockets_new();
	struct pair old = connect_one(open_at("127.0.0.1", 0)), new;

	(void)state;
	sockets_add(sockets, old.here);
	sockets_greet(sockets, old.port);
	sockets_remove(sockets, old.here);
	close_pair(&old);
	new = connect_one(open_at("127.0.0.1", 0));
	assert_int_equal(new.here, old.here);
	sockets_add(sockets, new.here);
	say(&new);
	assert_true(sockets_unread(sockets, new.port));
	sockets_remove(sockets, new.here);
	close_pair(&new);
	sockets_free(sockets);
}

/* A socket that libcurl closed without a word is no socket any more when its number comes again. */
static void test_a_number_that_comes_again(void **state)
{
	struct sockets *sockets = sockets_new();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pair pair;

	(void)state;
	sockets_add(sockets, fd);
	close(fd);
	assert_int_equal(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd);
	sockets_add(sockets, fd);
	pair = connect_one(fd);
	assert_false(sockets_unread(sockets, pair.port));
	say(&pair);
	assert_true(sockets_unread(sockets, pair.port));
	sockets_remove(sockets, fd);
	assert_false(sockets_unread(sockets, pair.port));
	close_pair(&pair);
	sockets_free(sockets);
}

static void test_what_was_never_added(void **state)
{
	struct sockets *sockets = sockets_new();
	int fd = open_at("127.0.0.1", 0);

	(void)state;
	sockets_remove(sockets, fd);
	sockets_add(sockets, fd);
	sockets_remove(sockets, fd);
	sockets_remove(sockets, fd);
	sockets_remove(sockets, fd + 1);
	assert_false(sockets_unread(sockets, ntohs(address_of(fd).sin_port)));
	close(fd);
	sockets_free(sockets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_found_among_many),
		cmocka_unit_test(test_two_have_one_port),
		cmocka_unit_test(test_what_comes_behind_a_greeting),
		cmocka_unit_test(test_a_greeting_ends_with_its_connection),
		cmocka_unit_test(test_a_number_that_comes_again),
		cmocka_unit_test(test_what_was_never_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
