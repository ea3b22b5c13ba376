/*
 * OpenAI's chat completions on loopback, with as little work as can be: what a call costs its
 * client is measured against it, and not what an answer costs its server.
 *
 * It prints its port. Where it is named a file, it speaks TLS, with a certificate of its own making
 * that it writes there. The last message says what to answer: "events=N" is a text of N pieces,
 * which a stream has an event and a chunk each for, and "writes=N" in how many pieces the stream is
 * written. A task with "turns=N" is one of a run: each of its turns is answered by a block that
 * asks eight questions at once, the last of which sets the final answer. The official library runs
 * the same blocks. With "large=N", too, there is one question instead, to which the answer is a
 * text of N bytes; with "given=N" one sub-run instead, whose context has N bytes. With "alone=1" it
 * asks nothing.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "bench/measure.h"

enum { EVENTS_MAX = 100000, DAY = 24 * 60 * 60, BACKLOG = 8192, ALLOWED_OPEN = 11000 };

#define CHUNK_START                                                                                \
	"{\"id\":\"chatcmpl-Bq7nzVt0dYx5JcKqkdyLr3pmuWl2O\",\"object\":\"chat.completion.chunk\"," \
	"\"created\":1760000000,\"model\":\"bench\",\"system_fingerprint\":\"fp_07871e2ad8\","     \
	"\"choices\":["
#define BLOCK                                                                                      \
	"I ask about each part.\\n```repl\\nprint(len(llm_query_batched(['part %d' % i for i in "  \
	"range(8)])))\\n"
#define BLOCK_END "```\\n"
#define LARGE_BLOCK                                                                                \
	"```repl\\ntext = llm_query('bytes=%zu', max_tokens=10000000)\\nprint(len(text))\\n"
#define GIVING_BLOCK                                                                               \
	"```repl\\ntext = ('GET /index.html 200 ' * 4 + chr(10)) * (%zu // 81)\\n"                 \
	"print(rlm_query('How many lines? turns=1', context=text))\\n"
#define ANSWER "answer['content'] = 'done'\\nanswer['ready'] = True\\n"
#define PIECE  " piece %d" /* another one each time: who repeats himself is cut off */
#define USAGE  "\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":%d,\"total_tokens\":%d}"

struct server {
	struct event_base *base;
	struct timeval delay;
	SSL_CTX *tls;
};

struct connection {
	struct server *server;
	struct bufferevent *stream;
	struct event *timer;
	struct evbuffer *answer; /* what of it is not written yet */
	size_t piece;
};

static void connection_free(struct connection *connection)
{
	event_free(connection->timer);
	bufferevent_free(connection->stream);
	evbuffer_free(connection->answer);
	free(connection);
}

static void put_chunk(struct evbuffer *out, const char *event)
{
	evbuffer_add_printf(out, "%zx\r\ndata: %s\n\n\r\n", strlen(event) + 8, event);
}

/* Words that need no quoting in JSON, in the first event; then pieces in one each. */
static void put_stream(struct evbuffer *out, const char *words, int events)
{
	char first[1024], last[512];

	evbuffer_add_printf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
				 "Transfer-Encoding: chunked\r\n\r\n");
	snprintf(first, sizeof first,
		 CHUNK_START "{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,"
			     "\"finish_reason\":null}],\"usage\":null}",
		 words);
	if (*words)
		put_chunk(out, first);
	for (int i = 0; i < events; i++) {
		snprintf(first, sizeof first,
			 CHUNK_START "{\"index\":0,\"delta\":{\"content\":\"" PIECE
				     "\"},\"logprobs\":null,"
				     "\"finish_reason\":null}],\"usage\":null}",
			 i);
		put_chunk(out, first);
	}
	put_chunk(out, CHUNK_START "{\"index\":0,\"delta\":{},\"logprobs\":null,"
				   "\"finish_reason\":\"stop\"}],\"usage\":null}");
	snprintf(last, sizeof last, CHUNK_START "]," USAGE "}", events, events + 40);
	put_chunk(out, last);
	put_chunk(out, "[DONE]");
	evbuffer_add_printf(out, "0\r\n\r\n");
}

static void put_whole(struct evbuffer *out, const char *words, int events)
{
	auto_evbuffer struct evbuffer *body = evbuffer_new();

	evbuffer_add_printf(body,
			    "{\"id\":\"chatcmpl-Bq7nzVt0dYx5JcKqkdyLr3pmuWl2O\","
			    "\"object\":\"chat.completion\",\"created\":1760000000,"
			    "\"model\":\"bench\",\"choices\":[{\"index\":0,\"message\":"
			    "{\"role\":\"assistant\",\"content\":\"%s",
			    words);
	for (int i = 0; i < events; i++)
		evbuffer_add_printf(body, PIECE, i);
	evbuffer_add_printf(body, "\"},\"logprobs\":null,\"finish_reason\":\"stop\"}]," USAGE "}",
			    events, events + 40);
	evbuffer_add_printf(out,
			    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			    "Content-Length: %zu\r\n\r\n",
			    evbuffer_get_length(body));
	evbuffer_add_buffer(out, body);
}

/* The number behind the first `name` in a text, which ends without a NUL; 0 where there is none. */
static size_t number_behind(struct rlmd_text text, const char *name)
{
	const char *at = text_find(text, name), *end = text.bytes + text.size;
	size_t number = 0;

	for (at = at ? at + strlen(name) : end; at < end && *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (size_t)(*at - '0');
	return number;
}

/* The number behind `name` in a request; `otherwise` where there is none that is sensible. */
static int number_of(struct rlmd_text request, const char *name, int otherwise)
{
	size_t number = number_behind(request, name);

	return number > 0 && number <= EVENTS_MAX ? (int)number : otherwise;
}

/* Moves a text behind the first `word` in it; false: it has none. */
static bool pass(struct rlmd_text *text, const char *word)
{
	const char *at = text_find(*text, word);

	if (at)
		*text = text_slice(*text, (size_t)(at - text->bytes) + strlen(word), text->size);
	return at;
}

/* Which turn a request is of, from 1: ours says so in its last message ("Turn 2 of 30"); of others'
 * runs the model's messages count the turns before it. */
static size_t turn_of(struct rlmd_text request)
{
	static const char ours[] = "Turn ", said[] = "\"role\":\"assistant\"";
	struct rlmd_text rest = request;
	size_t turn = 0, before = 0;

	do {
		size_t number = number_behind(rest, ours);

		turn = number ? number : turn;
	} while (pass(&rest, ours));
	for (rest = request; pass(&rest, said);)
		before++;
	return turn ? turn : before + 1;
}

static const char *words_of(struct rlmd_text request, size_t turns)
{
	return turn_of(request) < turns ? BLOCK BLOCK_END : BLOCK ANSWER BLOCK_END;
}

/* A run's words, with one large question, a sub-run or nothing in the place of eight questions. */
static void put_words(char words[static 1024], const char *usual, struct rlmd_text request)
{
	size_t large = number_behind(request, "large="), given = number_behind(request, "given=");
	bool alone = number_behind(request, "alone=");
	const char *end = strstr(usual, ANSWER) ? ANSWER : "";

	if (large)
		snprintf(words, 1024, LARGE_BLOCK "%s" BLOCK_END, large, end);
	else if (given)
		snprintf(words, 1024, GIVING_BLOCK "%s" BLOCK_END, given, end);
	else if (alone)
		snprintf(words, 1024, "```repl\\nprint(6 * 7)\\n%s" BLOCK_END, end);
	else
		snprintf(words, 1024, "%s", usual);
}

/* Its text is so many bytes of lines, which differ from each other. */
static void put_large(struct evbuffer *out, size_t bytes)
{
	static const char line[] =
		"line %08zu \\\"GET /\\\" 200 fine, as all of them were today\\n";
	auto_evbuffer struct evbuffer *body = evbuffer_new();

	evbuffer_add_printf(body, "{\"choices\":[{\"message\":{\"content\":\"");
	for (size_t i = 0; i * (sizeof line - 5) < bytes; i++)
		evbuffer_add_printf(body, line, i);
	evbuffer_add_printf(body, "\"},\"finish_reason\":\"stop\"}]}");
	evbuffer_add_printf(out,
			    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			    "Content-Length: %zu\r\n\r\n",
			    evbuffer_get_length(body));
	evbuffer_add_buffer(out, body);
}

static void answer(struct connection *connection, struct rlmd_text request)
{
	int turns = number_of(request, "turns=", 0);
	int events = number_of(request, "events=", !turns);
	int writes = number_of(request, "writes=", 1);
	size_t large = turns ? 0 : number_behind(request, "bytes=");
	char words[1024] = "";

	if (turns)
		put_words(words, words_of(request, (size_t)turns), request);
	if (large)
		put_large(connection->answer, large);
	else if (text_find(request, "\"stream\":true"))
		put_stream(connection->answer, words, events);
	else
		put_whole(connection->answer, words, events);
	connection->piece = evbuffer_get_length(connection->answer) / (size_t)writes + 1;
	event_add(connection->timer, &connection->server->delay);
}

static void on_timer(evutil_socket_t fd, short what, void *owner)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct connection *connection = owner;

	(void)fd, (void)what;
	evbuffer_remove_buffer(connection->answer, bufferevent_get_output(connection->stream),
			       connection->piece);
	if (evbuffer_get_length(connection->answer))
		event_add(connection->timer, &soon);
}

static void on_read(struct bufferevent *stream, void *owner)
{
	static const char end[] = "\r\n\r\n";
	struct evbuffer *in = bufferevent_get_input(stream);
	struct rlmd_text request = text_in(in);
	const char *head_end = text_find(request, end);
	size_t size;

	if (!head_end)
		return;
	size = (size_t)(head_end - request.bytes) + strlen(end);
	size += number_behind(text_clip(request, size), "Content-Length: ");
	if (request.size < size)
		return;
	answer(owner, text_clip(request, size));
	evbuffer_drain(in, size);
}

static void on_event(struct bufferevent *stream, short what, void *owner)
{
	(void)stream;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		connection_free(owner);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int size, void *owner)
{
	struct server *server = owner;
	struct connection *connection = xcalloc(1, sizeof *connection);
	int one = 1;

	(void)listener, (void)address, (void)size;
	connection->server = server;
	connection->timer = evtimer_new(server->base, on_timer, connection);
	connection->answer = evbuffer_new();
	if (server->tls)
		connection->stream = bufferevent_openssl_socket_new(
			server->base, fd, SSL_new(server->tls), BUFFEREVENT_SSL_ACCEPTING,
			BEV_OPT_CLOSE_ON_FREE);
	else
		connection->stream = bufferevent_socket_new(server->base, fd,
							    BEV_OPT_CLOSE_ON_FREE);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	bufferevent_setcb(connection->stream, on_read, NULL, on_event, connection);
	bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
}

/* The port that the kernel chose. */
static int listen_on(struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	struct evconnlistener *listener = evconnlistener_new_bind(
		server->base, on_accept, server, LEV_OPT_CLOSE_ON_FREE, BACKLOG,
		(struct sockaddr *)&address, (int)sizeof address);

	if (!listener ||
	    getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &size))
		measure_fail("no port on loopback");
	return ntohs(address.sin_port);
}

static void extend(X509 *certificate, int kind, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

	if (!extension || !X509_add_ext(certificate, extension, -1))
		measure_fail("no certificate for %s", value);
	X509_EXTENSION_free(extension);
}

/* For 127.0.0.1, by itself, for a day. */
static X509 *certify(EVP_PKEY *key)
{
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -DAY);
	X509_gmtime_adj(X509_getm_notAfter(certificate), DAY);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"bench", -1, -1,
				   0);
	X509_set_issuer_name(certificate, name);
	X509_set_pubkey(certificate, key);
	extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
	extend(certificate, NID_subject_alt_name, "IP:127.0.0.1");
	return X509_sign(certificate, key, EVP_sha256()) ? certificate : NULL;
}

static SSL_CTX *tls_new(const char *path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = key ? certify(key) : NULL;
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
	FILE *file = fopen(path, "w");

	if (!certificate || !tls || !file || !PEM_write_X509(file, certificate) ||
	    SSL_CTX_use_certificate(tls, certificate) != 1 || SSL_CTX_use_PrivateKey(tls, key) != 1)
		measure_fail("no certificate in %s", path);
	fclose(file);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return tls;
}

int main(int argc, char **argv)
{
	struct server server = {.base = event_base_new()};

	if (argc != 2 && argc != 3)
		measure_fail("usage: answers DELAY_MS [CERTIFICATE]");
	if (!measure_descriptors("14", ALLOWED_OPEN))
		return measure_end();
	signal(SIGPIPE, SIG_IGN);
	server.delay = clock_timeval(strtol(argv[1], NULL, 10));
	server.tls = argc == 3 ? tls_new(argv[2]) : NULL;
	printf("%d\n", listen_on(&server));
	fflush(stdout);
	event_base_dispatch(server.base);
	return 0;
}
