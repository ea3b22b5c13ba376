@interface Shelf : NSObject // DEF class Shelf
- (void)open:(int)a; // DEF method open
@end
@protocol Named <NSObject> // DEF protocol Named
@end
/* @protocol No <NSObject> */
static int twice(int x) { // DEF function twice
    if (x) {
    }
    return 2 * x;
}
