/* class No /* { */
data class Shelf(val a: Int) { // DEF class Shelf
    private suspend fun <T> load(x: T): T { // DEF function load
    }
    companion object Maker { // DEF object Maker
    }
}
fun interface Named { // DEF interface Named
}
