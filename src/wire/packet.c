#include "wire/packet.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_scan.h"
#include "wire/bounds.h"

/* A frame on its way into a packet. */
struct packet_reading {
	struct json_scan scan;
	struct packet *packet;
	struct rlmd_error *err;
	bool refused; /* and `err` says why; the scan itself may find nothing wrong */
};

static bool refuse(struct packet_reading *reading, const char *what)
{
	reading->refused = true;
	return error_set(reading->err, RLMD_ERROR_WORKER, "%s", what);
}

/* A string takes less than it did in the frame, with its quotes: so there is room for all. */
static struct rlmd_text keep_string(struct packet *packet, const struct json_view *view)
{
	char *start = packet->strings + packet->string_size;
	size_t size = json_view_copy(view, start);

	start[size] = '\0';
	packet->string_size += size + 1;
	return text_from(start, size);
}

static struct packet_value keep_value(struct packet *packet, const struct json_view *view)
{
	struct packet_value value = {.kind = view->kind};

	if (view->kind == JSON_VIEW_STRING)
		value.text = keep_string(packet, view);
	else if (view->kind == JSON_VIEW_INTEGER)
		value.integer = json_view_integer(view, 0);
	else if (view->kind == JSON_VIEW_ARRAY) /* within another one */
		value.kind = JSON_VIEW_OBJECT;
	return value;
}

static void add_element(struct packet *packet, const struct json_view *view)
{
	if (packet->element_count == packet->element_room) {
		packet->element_room = packet->element_room ? 2 * packet->element_room : 16;
		packet->elements = xreallocarray(packet->elements, packet->element_room,
						 sizeof *packet->elements);
	}
	packet->elements[packet->element_count++] = keep_value(packet, view);
}

static bool read_array(struct packet_reading *reading, struct packet_value *ret)
{
	struct packet *packet = reading->packet;
	struct json_view view;

	*ret = (struct packet_value){.kind = JSON_VIEW_ARRAY, .first = packet->element_count};
	while (json_scan_element(&reading->scan) && json_scan_value(&reading->scan, &view)) {
		if (ret->count == ELEMENTS_MAX)
			return refuse(reading, "an array of more elements than any message has");
		add_element(packet, &view);
		ret->count++;
	}
	return true;
}

static bool read_member(struct packet_reading *reading, const struct json_view *name)
{
	struct packet *packet = reading->packet;
	struct packet_member *member = &packet->members[packet->member_count];
	struct json_view view;

	if (packet->member_count == PACKET_MEMBERS_MAX)
		return refuse(reading, "a frame with more members than any message has");
	packet->member_count++;
	member->name = keep_string(packet, name);
	if (json_scan_enter(&reading->scan, JSON_VIEW_ARRAY))
		return read_array(reading, &member->value);
	if (json_scan_value(&reading->scan, &view))
		member->value = keep_value(packet, &view);
	return true;
}

static bool read_object(struct packet_reading *reading)
{
	struct json_view name;

	if (!json_scan_enter(&reading->scan, JSON_VIEW_OBJECT))
		return json_scan_kind(&reading->scan) == JSON_VIEW_NONE ||
		       refuse(reading, "a frame that is no JSON object");
	while (json_scan_member(&reading->scan, &name))
		if (!read_member(reading, &name))
			return false;
	return true;
}

static bool is_size(const struct packet *packet, const struct packet_value *size)
{
	return size->kind == JSON_VIEW_INTEGER && size->integer >= 0 &&
	       size->integer <= ATTACHED_MAX &&
	       (size_t)size->integer + ATTACHMENT_WEIGHT <= ATTACHED_MAX - packet->weight;
}

static bool read_sizes(struct packet *packet, const struct packet_value *sizes,
		       struct rlmd_error *err)
{
	if (sizes->kind != JSON_VIEW_ARRAY || sizes->count > ATTACHMENTS_MAX)
		return error_set(err, RLMD_ERROR_WORKER,
				 "'attachments' is no list of at most %d sizes", ATTACHMENTS_MAX);
	packet->sizes = xcalloc(sizes->count + 1, sizeof *packet->sizes);
	packet->attachments = xcalloc(sizes->count + 1, sizeof(struct memfile *));
	packet->attachment_count = sizes->count;
	for (size_t i = 0; i < sizes->count; i++) {
		const struct packet_value *size = packet_element(packet, sizes, i);

		if (!is_size(packet, size))
			return error_set(err, RLMD_ERROR_WORKER,
					 "attachments of a wrong size, or of more than %d bytes",
					 ATTACHED_MAX);
		packet->sizes[i] = (size_t)size->integer;
		packet->weight += packet->sizes[i] + ATTACHMENT_WEIGHT;
	}
	return true;
}

/* Takes the member away that is none of the message's. */
static bool take_sizes(struct packet *packet, struct rlmd_error *err)
{
	for (size_t i = 0; i < packet->member_count; i++) {
		struct packet_member *member = &packet->members[i];
		struct packet_value sizes = member->value;

		if (!text_equal(member->name, "attachments"))
			continue;
		*member = packet->members[--packet->member_count];
		return read_sizes(packet, &sizes, err);
	}
	return true;
}

bool packet_read(struct packet *packet, struct rlmd_text json, struct rlmd_error *err)
{
	struct packet_reading reading = {.packet = packet, .err = err};
	struct rlmd_error wrong;
	bool good;

	packet->strings = xreallocarray(NULL, json.size + 1, 1);
	json_scan_init(&reading.scan, json, &(struct json_scan_bounds){.depth = PACKET_DEPTH_MAX});
	read_object(&reading);
	good = json_scan_end(&reading.scan, &wrong);
	if (reading.refused)
		return false;
	if (!good)
		return error_set(err, RLMD_ERROR_WORKER, "%s", wrong.text);
	return take_sizes(packet, err);
}

void packet_done(struct packet *packet)
{
	for (size_t i = 0; i < packet->attachment_count; i++)
		memfile_unref(packet->attachments[i]);
	free(packet->attachments);
	free(packet->sizes);
	free(packet->elements);
	free(packet->strings);
	*packet = (struct packet){0};
}

const struct packet_value *packet_field(const struct packet *packet, const char *name)
{
	for (size_t i = 0; i < packet->member_count; i++)
		if (text_equal(packet->members[i].name, name))
			return &packet->members[i].value;
	return NULL;
}

const struct packet_value *packet_element(const struct packet *packet,
					  const struct packet_value *array, size_t index)
{
	return &packet->elements[array->first + index];
}

int64_t packet_integer(const struct packet *packet, const char *name)
{
	const struct packet_value *value = packet_field(packet, name);

	return value->kind == JSON_VIEW_INTEGER ? value->integer : 0;
}

const char *packet_string(const struct packet *packet, const char *name)
{
	const struct packet_value *value = packet_field(packet, name);

	return value->kind == JSON_VIEW_STRING ? value->text.bytes : NULL;
}

bool packet_is_null(const struct packet *packet, const char *name)
{
	return packet_field(packet, name)->kind == JSON_VIEW_NULL;
}

struct rlmd_text packet_text(const struct packet *packet, const struct packet_value *value,
			     struct memfile **ret_file)
{
	struct memfile *file = NULL;

	if (value->kind == JSON_VIEW_INTEGER)
		file = packet->attachments[value->integer];
	if (ret_file)
		*ret_file = file;
	if (file)
		return memfile_text(file);
	return value->kind == JSON_VIEW_STRING ? value->text : (struct rlmd_text){0};
}
