#include "demand_paging.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	KEPT = TEXT_WINDOW / PAGING_PART,
	AGAIN_MAX =
		1000, /* faults at one place that is there: it cannot be read, or was written to */
};

struct paged_text {
	struct paged_text *next;  /* owned */
	char *characters;         /* lent */
	size_t room, count, part; /* bytes; characters in all, and in a part */
	enum text_form form;
	const uint8_t *begin, *end; /* lent */
	size_t *starts; /* owned: the byte where each part begins, as far as it is known */
	size_t known;   /* of these */
};

/*
 * Whatever thread touches a part runs the handler; Python's lock need not be held. A part is
 * decoded elsewhere and moved to its place when it is whole, so that no thread sees half of it.
 */
static struct {
	atomic_flag lock;
	struct paged_text *texts; /* owned */
	char *kept[KEPT];         /* the parts that are there; NULL: fewer */
	size_t next;              /* of them, the one to be forgotten */
	char *stage;              /* the next part is decoded here; NULL: there was no memory */
	const void *last;         /* place of the last fault at a part that was there */
	unsigned again;           /* how often, since a part was decoded */
} paging = {.lock = ATOMIC_FLAG_INIT};

static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&paging.lock, memory_order_acquire))
		sched_yield();
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&paging.lock, memory_order_release);
}

static char *aligned(char *at)
{
	return at + (-(uintptr_t)at & (PAGING_PART - 1));
}

/*
 * It is had before it is needed: at the limit of memory a fault could not be told of. It is
 * aligned, and so are the places of parts, so that a huge page can be moved from one to the other.
 */
static void set_stage(void)
{
	char *room = mmap(NULL, 2 * PAGING_PART, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *stage;

	paging.stage = NULL;
	if (room == MAP_FAILED)
		return;
	stage = aligned(room);
	if (stage > room)
		munmap(room, (size_t)(stage - room));
	munmap(stage + PAGING_PART, (size_t)(room + PAGING_PART - stage));
	if (!mprotect(stage, PAGING_PART, PROT_READ | PROT_WRITE))
		paging.stage = stage;
	else
		munmap(stage, PAGING_PART);
}

static bool is_kept(const char *part)
{
	for (size_t i = 0; i < KEPT; i++)
		if (paging.kept[i] == part)
			return true;
	return false;
}

static void forget(char **kept)
{
	if (*kept)
		mmap(*kept, PAGING_PART, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	*kept = NULL;
}

/* Where a part's bytes begin: found by counting, from the last one that is known. */
static const uint8_t *find_start(struct paged_text *text, size_t number)
{
	while (text->known <= number) {
		const uint8_t *at = text->begin + text->starts[text->known - 1];

		fixed_width_skip(&at, text->end, text->part);
		text->starts[text->known++] = (size_t)(at - text->begin);
	}
	return text->begin + text->starts[number];
}

static bool show_stage(char *place)
{
	if (mprotect(paging.stage, PAGING_PART, PROT_READ) ||
	    mremap(paging.stage, PAGING_PART, PAGING_PART, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
		    MAP_FAILED)
		return false;
	set_stage();
	return true;
}

/* New pages are most of what a part takes, so a whole one gets a huge page, where there is one. */
static bool decode_part(struct paged_text *text, size_t number)
{
	char **kept = &paging.kept[paging.next];
	size_t first = number * text->part;
	size_t left = text->count - (first < text->count ? first : text->count);
	const uint8_t *at;

	forget(kept);
	if (!paging.stage)
		set_stage();
	if (!paging.stage)
		return false;
	at = find_start(text, number);
	madvise(paging.stage, PAGING_PART, left < text->part ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	fixed_width_take(text->form, &at, text->end, paging.stage,
			 left < text->part ? left : text->part);
	if (text->known == number + 1 && left > text->part) /* the next one begins here */
		text->starts[text->known++] = (size_t)(at - text->begin);
	*kept = text->characters + number * PAGING_PART;
	paging.next = (paging.next + 1) % KEPT;
	return show_stage(*kept);
}

/* Another thread may have decoded the part just now; a write to it is tried again and again. */
static bool is_there_now(const void *at)
{
	paging.again = at == paging.last ? paging.again + 1 : 0;
	paging.last = at;
	return paging.again < AGAIN_MAX;
}

static bool handle(const void *address)
{
	const char *at = address;
	struct paged_text *text = paging.texts;
	size_t number;

	while (text && (at < text->characters || at >= text->characters + text->room))
		text = text->next;
	if (!text)
		return false;
	number = (size_t)(at - text->characters) / PAGING_PART;
	if (is_kept(text->characters + number * PAGING_PART))
		return is_there_now(address);
	paging.last = NULL;
	return decode_part(text, number);
}

/*
 * A fault that is none of ours is met again behind the handler, and ends the process. A signal that
 * was sent is no fault: faulthandler sends one when it has reported, and gives its place back to
 * us.
 */
static void on_fault(int number, siginfo_t *info, void *context)
{
	int error = errno;
	bool handled;

	(void)context;
	if (info->si_code <= 0)
		return;
	lock();
	handled = handle(info->si_addr);
	unlock();
	if (!handled)
		signal(number, SIG_DFL);
	errno = error;
}

bool paging_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigfillset(&action.sa_mask);
	return !sigaction(SIGSEGV, &action, NULL);
}

bool paging_add(char *characters, size_t room, enum text_form form, size_t count,
		const uint8_t *begin, const uint8_t *end)
{
	struct paged_text *text = calloc(1, sizeof *text);
	size_t *starts = calloc(room / PAGING_PART + 1, sizeof *starts);

	if (!paging.stage)
		set_stage();
	if (!text || !starts || !paging.stage) {
		free(text);
		free(starts);
		errno = ENOMEM;
		return false;
	}
	*text = (struct paged_text){
		.next = paging.texts,
		.characters = characters,
		.room = room,
		.count = count,
		.part = PAGING_PART / text_form_width(form),
		.form = form,
		.begin = begin,
		.end = end,
		.starts = starts,
		.known = 1,
	};
	lock();
	paging.texts = text;
	unlock();
	return true;
}

void paging_remove(const char *characters)
{
	struct paged_text **at = &paging.texts, *text;

	lock();
	while (*at && (*at)->characters != characters)
		at = &(*at)->next;
	text = *at;
	if (text) {
		*at = text->next;
		for (size_t i = 0; i < KEPT; i++)
			if (paging.kept[i] >= text->characters &&
			    paging.kept[i] < text->characters + text->room)
				forget(&paging.kept[i]);
	}
	unlock();
	if (text)
		free(text->starts);
	free(text);
}
