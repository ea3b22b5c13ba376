let text = "class No"
public final class Shelf { // DEF class Shelf
    static func make() -> Shelf { // DEF function make
    }
}
extension Shelf: Named { // DEF extension Shelf
}
