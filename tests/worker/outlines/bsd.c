/*	$Id$ */
#include <sys/queue.h>

#define ENTRIES 10	/* DEF macro ENTRIES */

struct session *find(const char *);
struct	window_pane *
		 pane_find(struct session *, u_int);
static int	compare(struct session *, struct session *);
RB_GENERATE_STATIC(sessions, session, entry, compare);

struct sessions	sessions = RB_INITIALIZER(&sessions);
static const struct option options[] = {
	{ "name", 0, "a { in a string" },
	{ NULL, 0, NULL }
};

enum state {	/* DEF enum state */
	NONE,
	SOME,
};

typedef struct pane_list {	/* DEF struct pane_list */
	struct entry {	/* DEF struct entry */
		int	 x;
	} entries[ENTRIES];
} pane_list, *pane_lists;	/* DEF typedef pane_list; typedef pane_lists */

typedef int (*compare_fn)(const void *, const void *);	/* DEF typedef compare_fn */
typedef void log_fn(int, const char *);	/* DEF typedef log_fn */

static int
compare(struct session *a, struct session *b)	/* DEF function compare */
{
	return (strcmp(a->name, b->name));
}

struct session *
find(const char *name)	/* DEF function find */
{
	struct session	*s;
	char		 c = '{', d = '"', e = '\'';

	RB_FOREACH(s, sessions, &sessions) {
		if (strcmp(s->name, name) == 0)
			return (s);
	}
	return (NULL);
}

void printflike(2, 3)
log_line(int level, const char *fmt, ...)	/* DEF function log_line */
{
	while (level--) {
		/* } */
	}
}

__dead void
fatal(const char *msg)	/* DEF function fatal */
{
	_exit(1);
}

int
main(int argc, char **argv)	/* DEF function main */
{
	struct { int a; } x;
	struct local {	/* DEF struct local */
		int	 y;
	} l;

	return (0);
}
