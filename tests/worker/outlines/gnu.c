/* In the style of GNU: the name is at the beginning of its line, a blank before the parenthesis. */
#include <config.h>

#if HAVE_A
# define A(x) \
  do { \
    use (x); \
  } while (0)	/* DEF: not here, but above */
#endif

LIBX_PUBLIC int
libx_run (struct context *ctx, const char *id,
          libx_error_t *err)	/* of the line above: the name */
{
  size_t i;

  for (i = 0; i < 10; i++)
    {
#ifdef HAVE_B
      if (b (i)) {
#else
      if (c (i)) {
#endif
        call (i);
      }
    }
  return 0;
}

static char *
copy (char const *s) __attribute__ ((malloc));

static void __attribute__ ((noreturn))
usage (int status)	/* DEF function usage */
{
  exit (status);
}

int
old (a, b)	/* DEF function old */
     int a;
     char *b;
{
  return a;
}

#if 0
int
never (void)
{
#endif

static int
#ifdef HAVE_WIDE
width (wchar_t c)	/* DEF function width */
#else
width (int c)
#endif
{
  return 1;
}

int (*handler (int which)) (int)	/* DEF function handler */
{
  return NULL;
}

DECLARE_API (int)
exported (void)	/* DEF function exported */
{
  return new (1);
}

void *
new (int delete)	/* DEF function new */
{
  return NULL;
}

extern "C" {
int (plain) (int x)	/* DEF function plain */
{
  return x;
}
}
