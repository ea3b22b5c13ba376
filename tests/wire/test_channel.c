/* Frames over pipes: what arrives whole, what is refused, and what nobody may hold up. */
#include "wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "fake/clock.h"

/* A channel, the other ends of its pipes, and what it told. */
struct stage {
	struct event_base *base;
	struct channel *channel;
	int to, from; /* we write to it, it writes to us */
	int packets, overs;
	struct rlmd_error over;
	char type[40];        /* of the last packet */
	int64_t number;       /* its `n` */
	struct memfile *file; /* its first attachment */
	size_t attachment_count;
	size_t announced; /* bytes of the first attachment, before any of it came */
	bool admits;
	int free_at; /* frees the channel at this packet; 0: never */
	int pause_at;
};

static void note(struct stage *stage, const struct packet *packet)
{
	const struct packet_value *type = packet_field(packet, "type");
	const struct packet_value *number = packet_field(packet, "n");

	snprintf(stage->type, sizeof stage->type, "%s", type ? type->text.bytes : "");
	stage->number = number ? number->integer : 0;
}

static void on_packet(void *owner, const struct packet *packet)
{
	struct stage *stage = owner;

	assert_int_equal(stage->overs, 0);
	stage->packets++;
	assert_null(packet_field(packet, "attachments"));
	note(stage, packet);
	memfile_unref(stage->file);
	stage->file = packet->attachment_count ? memfile_ref(packet->attachments[0]) : NULL;
	stage->attachment_count = packet->attachment_count;
	if (stage->packets == stage->pause_at)
		channel_pause(stage->channel, true);
	if (stage->packets == stage->free_at) {
		channel_free(stage->channel);
		stage->channel = NULL;
		event_base_loopbreak(stage->base);
	}
}

static void on_over(void *owner, const struct rlmd_error *err)
{
	struct stage *stage = owner;

	stage->overs++;
	stage->over = *err;
	event_base_loopbreak(stage->base);
}

static int set_up(void **state)
{
	struct stage *stage = xcalloc(1, sizeof *stage);
	int in[2], out[2];

	fake_clock_speed(1);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	stage->base = event_base_new();
	stage->to = in[1];
	stage->from = out[0];
	stage->channel = channel_new(stage->base, in[0], out[1], on_packet, on_over, stage);
	*state = stage;
	return 0;
}

static int tear_down(void **state)
{
	struct stage *stage = *state;

	channel_free(stage->channel);
	if (stage->to >= 0)
		close(stage->to);
	if (stage->from >= 0)
		close(stage->from);
	memfile_unref(stage->file);
	event_base_free(stage->base);
	free(stage);
	return 0;
}

static bool on_announce(void *owner, const struct packet *packet, struct rlmd_error *err)
{
	struct stage *stage = owner;

	stage->announced = packet->attachment_count ? packet->sizes[0] : 0;
	return stage->admits || error_set(err, RLMD_ERROR_WORKER, "not admitted");
}

/* Lets everything happen that can happen now. */
static void turn(struct stage *stage)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(stage->base, EVLOOP_NONBLOCK);
}

static void run(struct stage *stage)
{
	event_base_loop(stage->base, 0);
}

static void put(struct stage *stage, const void *bytes, size_t size)
{
	assert_int_equal(write(stage->to, bytes, size), size);
}

static void put_length(struct stage *stage, uint32_t length)
{
	length = htonl(length);
	put(stage, &length, sizeof length);
}

static void put_frame(struct stage *stage, const char *json)
{
	put_length(stage, (uint32_t)strlen(json));
	put(stage, json, strlen(json));
}

static void end(struct stage *stage)
{
	close(stage->to);
	stage->to = -1;
	run(stage);
}

static void assert_refused(struct stage *stage, const char *why)
{
	turn(stage);
	assert_int_equal(stage->packets, 0);
	assert_int_equal(stage->overs, 1);
	assert_int_equal(stage->over.kind, RLMD_ERROR_WORKER);
	if (!strstr(stage->over.text, why))
		fail_msg("'%s' does not say '%s'", stage->over.text, why);
}

/* A frame is delivered once it is whole, however its bytes were cut. */
static void test_byte_by_byte(void **state)
{
	static const char frame[] = "\0\0\0\xc{\"type\":\"x\"}";
	struct stage *stage = *state;

	for (size_t i = 0; i < sizeof frame - 1; i++) {
		assert_int_equal(stage->packets, 0);
		put(stage, frame + i, 1);
		turn(stage);
	}
	assert_int_equal(stage->packets, 1);
	assert_string_equal(stage->type, "x");
	assert_int_equal(stage->overs, 0);
}

/* All frames of one read are delivered, in order, more than one turn takes too. */
static void test_many_in_one_read(void **state)
{
	struct stage *stage = *state;
	char json[64];

	for (int i = 1; i <= 1000; i++) {
		snprintf(json, sizeof json, "{\"n\":%d}", i);
		put_frame(stage, json);
	}
	end(stage);
	assert_int_equal(stage->packets, 1000);
	assert_int_equal(stage->number, 1000);
	assert_int_equal(stage->over.kind, RLMD_ERROR_NONE);
	assert_true(channel_ended(stage->channel));
}

/* A callback may free the channel while more frames lie in the same read. */
static void test_free_in_callback(void **state)
{
	struct stage *stage = *state;

	stage->free_at = 2;
	for (int i = 0; i < 5; i++)
		put_frame(stage, "{}");
	run(stage);
	assert_int_equal(stage->packets, 2);
	turn(stage);
	assert_int_equal(stage->packets, 2);
	assert_int_equal(stage->overs, 0);
}

/* A length beyond the limit is refused on sight, before one byte of it has come. */
static void test_huge_length(void **state)
{
	put_length(*state, 0xffffffff);
	assert_refused(*state, "a frame of 4294967295 bytes");
}

/* The largest frame passes, one byte more does not. */
static void test_largest_frame(void **state)
{
	struct stage *stage = *state;
	char *json = xcalloc(FRAME_MAX, 1);
	size_t sent = 0;

	memset(json, ' ', FRAME_MAX);
	memcpy(json, "{\"n\":1}", 7);
	put_length(stage, FRAME_MAX);
	while (sent < FRAME_MAX) {
		put(stage, json + sent, 32768);
		sent += 32768;
		assert_int_equal(stage->packets, 0);
		turn(stage);
	}
	assert_int_equal(stage->packets, 1);
	stage->packets = 0;
	put_length(stage, FRAME_MAX + 1);
	assert_refused(stage, "at most 1048576");
	free(json);
}

/* JSON that a strict reader refuses is refused (sandbox.md, section 4). */
static void test_bad_json(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"7",
		"\"text\"",
		"{\"a\":1}{",
		"{\"a\":1,\"a\":2}",
		"{\"a\":NaN}",
		"{\"a\":1e999999}",
		"{\"a\":18446744073709551616}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\\ud800\"}",
		"\xef\xbb\xbf{}",
		"{\"a\":[[[[[[[[[]]]]]]]]]}",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_frame(*state, bad[i]);
		assert_refused(*state, "");
		tear_down(state);
		set_up(state);
	}
}

/* End of file between two frames is orderly; inside one it is not. */
static void test_end_inside(void **state)
{
	struct stage *stage = *state;

	put_frame(stage, "{}");
	put_length(stage, 10);
	put(stage, "{\"a", 3);
	end(stage);
	assert_int_equal(stage->packets, 1);
	assert_int_equal(stage->over.kind, RLMD_ERROR_WORKER);
	assert_string_equal(stage->over.text, "the stream ended in the middle of a frame");
}

/* A frame that is begun and never ended is given up; one at rest between two is not. */
static void test_stalled_frame(void **state)
{
	struct stage *stage = *state;

	fake_clock_speed(1000);
	put(stage, "\0\0", 2);
	run(stage);
	assert_int_equal(stage->overs, 1);
	assert_int_equal(stage->over.kind, RLMD_ERROR_WORKER);
	assert_non_null(strstr(stage->over.text, "not ended in its time"));
}

/* One that is given byte by byte, always another in time, is given up likewise. */
static void test_dripping_frame(void **state)
{
	struct stage *stage = *state;
	int dripped = 0;

	fake_clock_speed(1000);
	put_length(stage, 1 << 20);
	while (!stage->overs && dripped++ < 1 << 20) {
		put(stage, " ", 1);
		event_base_loop(stage->base, EVLOOP_ONCE);
	}
	assert_int_equal(stage->overs, 1);
	assert_non_null(strstr(stage->over.text, "not ended in its time"));
}

/* A large attachment gets the time that it takes, and no more. */
static void test_dripping_attachment(void **state)
{
	struct stage *stage = *state;
	int64_t begun;

	fake_clock_speed(1000);
	begun = clock_ms();
	put_frame(stage, "{\"attachments\":[50000000]}");
	run(stage);
	assert_int_equal(stage->overs, 1);
	assert_true(clock_ms() - begun >= 30000 + 50000);
}

/* Attachments that weigh more than is allowed now wait in the pipe, for as long as it takes; and
 * so does what is behind them. */
static void test_allowance(void **state)
{
	static char bytes[200000];
	struct stage *stage = *state;
	size_t sent = 0;
	ssize_t more;

	fcntl(stage->to, F_SETFL, O_NONBLOCK);
	channel_allow(stage->channel, 10 + ATTACHMENT_WEIGHT);
	put_frame(stage, "{\"attachments\":[10]}");
	put(stage, "0123456789", 10);
	turn(stage);
	assert_int_equal(stage->packets, 1);
	put_frame(stage, "{\"attachments\":[200000]}");
	while ((more = write(stage->to, bytes + sent, sizeof bytes - sent)) > 0) {
		sent += (size_t)more;
		turn(stage);
	}
	assert_true(sent < sizeof bytes);
	event_base_loop(stage->base, 0); /* returns, for nothing is waited for */
	assert_int_equal(stage->packets, 1);
	assert_int_equal(stage->overs, 0);

	channel_allow(stage->channel, ATTACHED_MAX);
	while (sent < sizeof bytes) {
		turn(stage);
		more = write(stage->to, bytes + sent, sizeof bytes - sent);
		sent += more > 0 ? (size_t)more : 0;
	}
	turn(stage);
	assert_int_equal(stage->packets, 2);
	assert_int_equal(memfile_size(stage->file), sizeof bytes);
}

/* A worker that is paused is no slowpoke: the half frame of before waits as long as we like. */
static void test_pause_stops_the_clock(void **state)
{
	struct stage *stage = *state;

	put(stage, "\0\0", 2);
	event_base_loop(stage->base, EVLOOP_NONBLOCK);
	channel_pause(stage->channel, true);
	event_base_loop(stage->base, 0); /* returns, for nothing is waited for */
	assert_int_equal(stage->overs, 0);
	fake_clock_speed(10000);
	channel_pause(stage->channel, false);
	run(stage);
	assert_int_equal(stage->overs, 1);
}

/* Attachments arrive as sealed memory files, whatever their size, in order, beside the JSON. */
static void test_attachments(void **state)
{
	struct stage *stage = *state;
	char *big = xcalloc(1, 300000);
	size_t sent = 0;

	memset(big, 'b', 300000);
	put_frame(stage, "{\"a\":1,\"attachments\":[300000,0,3]}");
	while (sent < 300000) {
		put(stage, big + sent, 30000);
		sent += 30000;
		turn(stage);
	}
	assert_int_equal(stage->packets, 0);
	put(stage, "end", 3);
	put_frame(stage, "{\"type\":\"next\"");
	turn(stage);
	assert_int_equal(stage->packets, 1);
	assert_int_equal(stage->attachment_count, 3);
	assert_int_equal(memfile_size(stage->file), 300000);
	assert_memory_equal(memfile_text(stage->file).bytes, big, 300000);
	assert_int_equal(pwrite(memfile_fd(stage->file, NULL), "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(stage->overs, 1);
	free(big);
}

/* Ten thousand empty attachments are legal; each turn of the loop takes a bounded part. */
static void test_many_attachments(void **state)
{
	struct stage *stage = *state;
	char *json = xcalloc(1, 40000);
	size_t used = (size_t)snprintf(json, 40000, "{\"attachments\":[0");
	int turns = 0;

	for (int i = 1; i < 10000; i++)
		used += (size_t)snprintf(json + used, 40000 - used, ",0");
	snprintf(json + used, 40000 - used, "]}");
	put_frame(stage, json);
	while (!stage->packets && !stage->overs && turns++ < 1000)
		event_base_loop(stage->base, EVLOOP_ONCE);
	assert_int_equal(stage->overs, 0);
	assert_int_equal(stage->attachment_count, 10000);
	assert_true(turns >= 10000 / 64);
	free(json);
}

/* Sizes are checked before anything is made: form, sign, number, sum. */
static void test_bad_sizes(void **state)
{
	static const char *const bad[] = {
		"{\"attachments\":{}}",
		"{\"attachments\":3}",
		"{\"attachments\":[-1]}",
		"{\"attachments\":[1.5]}",
		"{\"attachments\":[\"1\"]}",
		"{\"attachments\":[null]}",
		"{\"attachments\":[134217729]}",
		"{\"attachments\":[134209537]}",
		"{\"attachments\":[134209536,0]}",
		"{\"attachments\":[9223372036854775807,9223372036854775807]}",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_frame(*state, bad[i]);
		assert_refused(*state, "attachments");
		tear_down(state);
		set_up(state);
	}
}

/* The listener decides about a frame before a byte of its attachments is taken in. */
static void test_admission(void **state)
{
	struct stage *stage = *state;

	channel_on_announce(stage->channel, on_announce);
	stage->admits = true;
	put_frame(stage, "{\"a\":0,\"attachments\":[3]}");
	put(stage, "abc", 3);
	turn(stage);
	assert_int_equal(stage->packets, 1);
	assert_int_equal(stage->announced, 3);
	stage->packets = 0;
	stage->admits = false;
	put_frame(stage, "{\"a\":0,\"attachments\":[134209536]}");
	assert_refused(stage, "not admitted");
	assert_int_equal(stage->announced, ATTACHED_MAX - ATTACHMENT_WEIGHT);
}

/* A paused channel reads nothing and delivers nothing; then all of it, nothing lost. */
static void test_pause(void **state)
{
	struct stage *stage = *state;

	stage->pause_at = 2;
	for (int i = 0; i < 5; i++)
		put_frame(stage, "{}");
	turn(stage);
	assert_int_equal(stage->packets, 2);
	close(stage->to);
	stage->to = -1;
	turn(stage);
	assert_int_equal(stage->packets, 2);
	channel_pause(stage->channel, false);
	run(stage);
	assert_int_equal(stage->packets, 5);
	assert_int_equal(stage->over.kind, RLMD_ERROR_NONE);
}

static struct frame *text_frame(const char *bytes, size_t size)
{
	struct frame *frame = frame_new("value");

	frame_text(frame, "text", text_from(bytes, size));
	return frame;
}

static size_t take(struct stage *stage, char *out, size_t size)
{
	size_t got = 0;
	ssize_t more;

	while (got < size && (more = read(stage->from, out + got, size - got)) > 0) {
		got += (size_t)more;
		turn(stage);
	}
	return got;
}

/* A frame goes out at once where the pipe has room, as documented to the byte. */
static void test_send(void **state)
{
	static const char wanted[] = "\0\0\0\x1d{\"type\":\"value\",\"text\":\"h\xc3\xa9\"}";
	struct stage *stage = *state;
	char got[64];

	channel_send(stage->channel, text_frame("h\xc3\xa9", 3));
	assert_int_equal(read(stage->from, got, sizeof got), sizeof wanted - 1);
	assert_memory_equal(got, wanted, sizeof wanted - 1);
}

/* Long texts follow as attachments; what is no UTF-8 is repaired, inline or not (LIB-9). */
static void test_send_attachment(void **state)
{
	static const char head[] = "{\"type\":\"value\",\"text\":0,\"attachments\":[200002]}";
	struct stage *stage = *state;
	size_t size = 4 + sizeof head - 1 + 200002;
	char *text = xcalloc(1, 200000), *got = xcalloc(1, size);

	memset(text, 't', 200000);
	text[100000] = '\xff';
	channel_send(stage->channel, text_frame(text, 200000));
	assert_int_equal(take(stage, got, size), size);
	assert_memory_equal(got + 4, head, sizeof head - 1);
	assert_memory_equal(got + 4 + sizeof head - 1 + 100000, "\xef\xbf\xbdt", 4);
	free(text);
	free(got);
}

/* A long text that is given away goes as it lies there; a short one stays its owner's. */
static void test_send_owned(void **state)
{
	struct frame *frame = frame_new("reply");
	char *text = xcalloc(1, 2 * TEXT_INLINE_MAX), *gone = text, *kept = xstrdup("short");
	struct evbuffer *out = evbuffer_new();
	struct evbuffer_iovec pieces[4];
	int count, found = 0;

	(void)state;
	memset(text, 'x', 2 * TEXT_INLINE_MAX);
	frame_array(frame, "values");
	frame_text_owned(frame, NULL, &gone, 2 * TEXT_INLINE_MAX);
	frame_text_owned(frame, NULL, &kept, 5);
	frame_array_end(frame);
	frame_encode(frame, out);
	frame_free(frame);
	assert_null(gone);
	assert_string_equal(kept, "short");
	count = evbuffer_peek(out, -1, NULL, pieces, 4);
	for (int i = 0; i < count; i++)
		found += pieces[i].iov_base == text && pieces[i].iov_len == 2 * TEXT_INLINE_MAX;
	assert_int_equal(found, 1);
	evbuffer_drain(out, sizeof(uint32_t));
	assert_true(text_starts(text_in(out), "{\"type\":\"reply\",\"values\":[0,\"short\"],"
					      "\"attachments\":[2048]}xxx"));
	evbuffer_free(out);
	free(kept);
}

/* However many short texts: the JSON stays within its limit, the rest is attached. */
static void test_send_batch(void **state)
{
	struct frame *frame = frame_new("reply");
	char *text = xcalloc(1, TEXT_INLINE_MAX); /* of NULs: six bytes each in JSON */
	struct evbuffer *out = evbuffer_new();
	uint32_t length;

	(void)state;
	frame_array(frame, "values");
	for (int i = 0; i < 10000; i++)
		frame_text(frame, NULL, text_from(text, TEXT_INLINE_MAX));
	frame_array_end(frame);
	frame_encode(frame, out);
	evbuffer_copyout(out, &length, sizeof length);
	assert_true(ntohl(length) <= FRAME_MAX);
	frame_free(frame);
	evbuffer_free(out);
	free(text);
}

/* A side that does not read is written to up to a bound; then it is over, told by the loop. */
static void test_does_not_read(void **state)
{
	struct stage *stage = *state;
	size_t size = 1 << 20;
	char *text = xcalloc(1, size);

	memset(text, 'x', size);
	for (int i = 0; i < 66; i++)
		channel_send(stage->channel, text_frame(text, size));
	turn(stage);
	assert_int_equal(stage->overs, 0);
	channel_send(stage->channel, text_frame(text, size));
	assert_int_equal(stage->overs, 0);
	turn(stage);
	assert_int_equal(stage->overs, 1);
	assert_int_equal(stage->over.kind, RLMD_ERROR_WORKER);
	assert_non_null(strstr(stage->over.text, "does not read"));
	channel_send(stage->channel, text_frame(text, size));
	channel_pause(stage->channel, true);
	channel_pause(stage->channel, false);
	turn(stage);
	assert_int_equal(stage->overs, 1);
	free(text);
}

/* A side that reads late, in a long computation perhaps, is heard again when it has read. */
static void test_crowded(void **state)
{
	struct stage *stage = *state;
	size_t size = 9 << 20;
	char *text = xcalloc(1, size);

	memset(text, 'x', size);
	channel_send(stage->channel, text_frame(text, size));
	for (int i = 0; i < 5; i++)
		put_frame(stage, "{}");
	turn(stage);
	assert_int_equal(stage->packets, 1);
	take(stage, text, 2 << 20);
	turn(stage);
	assert_int_equal(stage->packets, 5);
	assert_int_equal(stage->overs, 0);
	free(text);
}

/* A worker that closed its ears is still heard to the end. */
static void test_deaf(void **state)
{
	struct stage *stage = *state;

	close(stage->from);
	stage->from = -1;
	channel_send(stage->channel, text_frame("x", 1));
	put_frame(stage, "{\"type\":\"done\"}");
	end(stage);
	assert_int_equal(stage->packets, 1);
	assert_int_equal(stage->overs, 1);
	assert_int_equal(stage->over.kind, RLMD_ERROR_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_byte_by_byte),
		TEST(test_many_in_one_read),
		TEST(test_free_in_callback),
		TEST(test_huge_length),
		TEST(test_largest_frame),
		TEST(test_bad_json),
		TEST(test_end_inside),
		TEST(test_stalled_frame),
		TEST(test_dripping_frame),
		TEST(test_dripping_attachment),
		TEST(test_allowance),
		TEST(test_pause_stops_the_clock),
		TEST(test_attachments),
		TEST(test_many_attachments),
		TEST(test_bad_sizes),
		TEST(test_admission),
		TEST(test_pause),
		TEST(test_send),
		TEST(test_send_attachment),
		TEST(test_send_owned),
		TEST(test_send_batch),
		TEST(test_does_not_read),
		TEST(test_crowded),
		TEST(test_deaf),
	};

	signal(SIGPIPE, SIG_DFL);
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
