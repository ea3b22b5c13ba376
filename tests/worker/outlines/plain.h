#ifdef __cplusplus
extern "C" {
#endif
struct point { int x; };	/* DEF struct point */
typedef struct point class;	/* DEF typedef class */
int area(struct point *a);
static inline int twice(int x) { return 2 * x; }	/* DEF function twice */
#ifdef __cplusplus
}
#endif
